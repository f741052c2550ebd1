// Chains of many labels: one launch per step, forward and backward together. `numbers.cuh` is prepended.
//
//   a_t(j) = e_t(j) + c_j + log sum_i exp(a_{t-1}(i) - m_{t-1}) exp(W(i, j) - c_j),    m_t = max a_t, c_j the maximum of a column
//
// and backward accordingly. A block computes TILE labels of GROUP sentences. Its threads share the sum over i, for GROUP sentences at a
// time, and the parts are added in a fixed order. Each step subtracts m, so that numbers stay near 0, and `tops` keeps m for log Z.
// A sum below TINY is computed again in logarithms by the thread that owns it.
// Step k is token k forward, and token n - 1 - k backward. Rows of both recursions are natural logarithms.
#define TILE 16
#define GROUP (DOUBLE ? 8 : 16)
#define QUADS (GROUP / 4)
#define CREW 256
#define SPLIT (CREW / TILE)      // threads that share a sum
#define CHUNK (DOUBLE ? 128 : 256)  // labels whose exponentials are in shared memory at a time
#define EACH (CHUNK / SPLIT)     // labels of a chunk per thread
#define TILES ((L + TILE - 1) / TILE)

__device__ __forceinline__ real natural(real x) { return ex2(x * (real)LOG2E); }
__device__ __forceinline__ real logarithm(real x) { return lg2(x) * (real)0.6931471805599453; }

// Call `take(i, g, factor, number)` for every label i of this thread and every sentence g of the group, to reduce over i. `factor` is an
// entry of a column of a matrix (L, L), or `outside` for i >= L. `number` is `vector(g, i)`, which is evaluated once per block.
template <class Vector, class Take>
__device__ __forceinline__ void over_labels(Quad (*x)[QUADS + 1], const real* column, int part, real outside, Vector vector, Take take) {
  const int self = threadIdx.x;
  for (int i0 = 0; i0 < L; i0 += CHUNK) {
    real f[EACH];  // prefetched while the vectors are computed
#pragma unroll
    for (int u = 0; u < EACH; u++) {
      const int i = i0 + part + u * SPLIT;
      f[u] = i < L ? column[(i64)i * L] : outside;
    }
    __syncthreads();
#pragma unroll
    for (int at = self; at < CHUNK * QUADS; at += CREW) {
      const int i = i0 + at % CHUNK;
      Quad quad;
#pragma unroll
      for (int u = 0; u < 4; u++) quad.v[u] = vector(at / CHUNK * 4 + u, i);
      x[at % CHUNK][at / CHUNK] = quad;
    }
    __syncthreads();
#pragma unroll
    for (int u = 0; u < EACH; u++)
#pragma unroll
      for (int q = 0; q < QUADS; q++) {
        const Quad quad = x[part + u * SPLIT][q];
#pragma unroll
        for (int v = 0; v < 4; v++) take(i0 + part + u * SPLIT, 4 * q + v, f[u], quad.v[v]);
      }
  }
}

struct Side {  // of one sentence and direction: the previous row, and the scores to add to it
  const real *row, *scores;
  i64 el;
  __device__ __forceinline__ real at(int i) const { return row[i] + (scores ? scores[i * el] : (real)0); }
};

//   A, R (B, T, L)  rows of the recursions         F (2, L, L)  exp(W - c), backward of W^T         crests (2, L)  c
//   heights (2 parities, 2, B, TILES)  maximum of each tile of a row                                tops (B, T)  m of token t - 1, forward
// Blocks: tiles x groups of sentences x directions.
extern "C" __global__ void __launch_bounds__(CREW) many_labels_step(const real* e, i64 eb, i64 et, i64 el, const real* W, const real* start,
                                                              const real* end, const int* lengths, i64 B, i64 T, i64 k, const real* F,
                                                              const real* crests, real* heights, real* A, real* R, real* tops) {
  __shared__ Quad x[CHUNK][QUADS + 1];  // padded by one to avoid bank conflicts
  __shared__ real parts[SPLIT][TILE][GROUP + 1], m[GROUP], high[TILE][GROUP + 1];
  __shared__ Side sides[GROUP];
  const int self = threadIdx.x, backward = blockIdx.z, tile = blockIdx.x, b0 = blockIdx.y * GROUP;
  const int column = self % TILE, part = self / TILE, j = tile * TILE + column;
  const i64 old = ((((k + 1) & 1) * 2 + backward) * B), now = (((k & 1) * 2 + backward) * B);
  // Token of sentence b at this step, -1 after its end.
#define TOKEN(b) (lengths ? (k < lengths[b] ? (backward ? lengths[b] - 1 - k : k) : -1) : (backward ? T - 1 - k : k))
  if (k) {
    if (self < GROUP) {
      const i64 b = b0 + self, t = b < B ? TOKEN(b) : -1, from = backward ? t + 1 : t - 1;
      sides[self].row = t >= 0 ? (backward ? R : A) + (b * T + from) * L : (const real*)0;
      sides[self].scores = t >= 0 && backward ? e + b * eb + from * et : (const real*)0;
      sides[self].el = el;
    }
    for (int g = self / 32; g < GROUP; g += CREW / 32) {
      real top = -INF;
      if (b0 + g < B)
        for (int i = self % 32; i < TILES; i += 32) top = larger(top, heights[(old + b0 + g) * TILES + i]);
      top = bounded(warp_max(top));
      if (self % 32 == 0) {
        m[g] = top;
        if (!backward && tile == 0 && b0 + g < B && TOKEN(b0 + g) >= 0) tops[(b0 + g) * T + k] = top;
      }
    }
    __syncthreads();
    real sum[GROUP];
#pragma unroll
    for (int g = 0; g < GROUP; g++) sum[g] = 0;
    over_labels(
        x, F + (i64)backward * L * L + (j < L ? j : 0), part, (real)0,
        [&](int g, int i) { return natural(i < L && sides[g].row ? sides[g].at(i) - m[g] : -INF); },
        [&](int, int g, real factor, real number) { sum[g] += number * factor; });
#pragma unroll
    for (int g = 0; g < GROUP; g++) parts[part][column][g] = sum[g];
    __syncthreads();
  }
  // From here on a thread handles one label of one sentence.
  const int g = self / TILE, b = b0 + g;
  real top = -INF;
  if (g < GROUP && b < B && j < L) {
    const i64 t = TOKEN(b);
    if (t >= 0) {
      const real scored = e[b * eb + t * et + j * el];
      real grown;
      if (!k) {
        grown = backward ? end[j] : start[j];
      } else {
        real all = 0;
#pragma unroll
        for (int q = 0; q < SPLIT; q++) all += parts[q][column][g];
        if (all >= (real)TINY) {
          grown = logarithm(all) + crests[backward * L + j];
        } else {
          const Side side = sides[g];
          const real* weights = W + (i64)j * (backward ? L : 1);
          const i64 near_ = backward ? 1 : L;
          real most = -INF, some = 0;
          for (int i = 0; i < L; i++) most = larger(most, side.at(i) + weights[i * near_]);
          if (most > -INF)
            for (int i = 0; i < L; i++) some += natural(side.at(i) + weights[i * near_] - most);
          grown = most > -INF ? logarithm(some) + most - m[g] : most;
        }
      }
      (backward ? R : A)[(b * T + t) * L + j] = backward ? grown : grown + scored;
      top = grown + scored;
    }
  }
  if (g < GROUP) high[column][g] = top;
  __syncthreads();
  if (self < GROUP && b0 + self < B) {
    real most = -INF;
    for (int c = 0; c < TILE; c++) most = larger(most, high[c][self]);
    heights[(now + b0 + self) * TILES + tile] = most;
  }
}

// log Z of each sentence from the last rows, one block per sentence.
extern "C" __global__ void __launch_bounds__(CREW) many_labels_value(const real* end, const int* lengths, i64 B, i64 T, const real* A,
                                                               const real* tops, real* value) {
  __shared__ real most[CREW / 32];
  __shared__ double sums[CREW / 32], past[CREW / 32];
  const int self = threadIdx.x;
  const i64 b = blockIdx.x, n = lengths ? lengths[b] : T;
  if (n <= 0) { if (self == 0) value[b] = 0; return; }
  const real* row = A + (b * T + n - 1) * L;
  real top = -INF;
  for (int j = self; j < L; j += CREW) top = larger(top, row[j] + end[j]);
  top = warp_max(top);
  if (self % 32 == 0) most[self / 32] = top;
  __syncthreads();
  for (int w = 0; w < CREW / 32; w++) top = larger(top, most[w]);
  double some = 0, before = 0;
  if (top > -INF)
    for (int j = self; j < L; j += CREW) some += (double)natural(row[j] + end[j] - top);
  for (i64 t = 1 + self; t < n; t += CREW) before += (double)tops[b * T + t];
  some = warp_sum(some);
  before = warp_sum(before);
  if (self % 32 == 0) { sums[self / 32] = some; past[self / 32] = before; }
  __syncthreads();
  if (self) return;
  some = before = 0;
  for (int w = 0; w < CREW / 32; w++) { some += sums[w]; before += past[w]; }
  value[b] = (real)(top > -INF ? log(some) + (double)top + before : (double)top);
}

// One step of the Viterbi recursion: rows (2 parities, B, L) of scores, and back pointers (B, T, L). The lowest label wins ties.
// total (2, B): the sum of the amounts subtracted, and NaN for sentences with a NaN score, which comparisons do not detect.
extern "C" __global__ void __launch_bounds__(CREW) many_labels_viterbi(const real* e, i64 eb, i64 et, i64 el, const real* W, const real* start,
                                                              const int* lengths, i64 B, i64 T, i64 k, real* rows, unsigned short* back,
                                                              double* total) {
  __shared__ Quad x[CHUNK][QUADS + 1];
  __shared__ real parts[SPLIT][TILE][GROUP + 1];
  __shared__ unsigned short froms[SPLIT][TILE][GROUP + 1];
  const int self = threadIdx.x, tile = blockIdx.x, b0 = blockIdx.y * GROUP;
  const int column = self % TILE, part = self / TILE, j = tile * TILE + column;
  const real* old = rows + ((k + 1) & 1) * B * L;
  real* now = rows + (k & 1) * B * L;
  if (k) {
    real top[GROUP];
    int from[GROUP];
#pragma unroll
    for (int g = 0; g < GROUP; g++) { top[g] = -INF; from[g] = part; }
    over_labels(
        x, W + (j < L ? j : 0), part, -INF,
        [&](int g, int i) { return i < L && b0 + g < B ? old[(b0 + g) * L + i] : -INF; },
        [&](int i, int g, real weight, real number) {
          const real s = number + weight;
          if (s > top[g]) { top[g] = s; from[g] = i; }
        });
#pragma unroll
    for (int g = 0; g < GROUP; g++) { parts[part][column][g] = top[g]; froms[part][column][g] = (unsigned short)from[g]; }
    __syncthreads();
  }
  const int g = self / TILE, b = b0 + g;
  if (g >= GROUP || b >= B || j >= L) return;
  const i64 n = lengths ? lengths[b] : T;
  if (k >= n) { now[b * L + j] = k ? old[b * L + j] : (real)0; return; }
  const real scored = e[b * eb + k * et + j * el];
  if (scored != scored) total[B + b] = scored;
  if (!k) { now[b * L + j] = start[j] + scored; return; }
  real top = parts[0][column][g];
  int from = froms[0][column][g];
#pragma unroll
  for (int q = 1; q < SPLIT; q++) {
    const real s = parts[q][column][g];
    const int i = froms[q][column][g];
    if (s > top || (s == top && i < from)) { top = s; from = i; }
  }
  if (is_due(k - 1)) {
    real best = -INF;
    for (int i = 0; i < L; i++) best = larger(old[b * L + i], best);
    best = shift(best);
    top -= best;
    if (j == 0) total[b] += best;
  }
  now[b * L + j] = top + scored;
  back[(b * T + k) * L + j] = (unsigned short)from;
}

// The path, from the last row of scores, one block per sentence.
extern "C" __global__ void __launch_bounds__(CREW) many_labels_path(const real* end, const int* lengths, i64 B, i64 T, const real* last,
                                                              const unsigned short* back, const double* total, i64* path, real* value) {
  __shared__ real most[CREW];
  __shared__ int where[CREW];
  const int self = threadIdx.x;
  const i64 b = blockIdx.x, n = lengths ? lengths[b] : T;
  for (i64 t = (n > 0 ? n : 0) + self; t < T; t += CREW) path[b * T + t] = -1;
  if (n <= 0) { if (self == 0) value[b] = 0; return; }
  real top = -INF;
  int at = self < L ? self : 0;
  for (int j = self; j < L; j += CREW)
    if (last[b * L + j] + end[j] > top) { top = last[b * L + j] + end[j]; at = j; }
  most[self] = top;
  where[self] = at;
  __syncthreads();
  if (self) return;
  for (int w = 1; w < CREW; w++)
    if (most[w] > top || (most[w] == top && where[w] < at)) { top = most[w]; at = where[w]; }
  value[b] = (real)((double)top + total[b] + total[B + b]);
  for (i64 t = n - 1; t >= 0; t--) {
    path[b * T + t] = at;
    if (t) at = back[(b * T + t) * L + at];
  }
}
