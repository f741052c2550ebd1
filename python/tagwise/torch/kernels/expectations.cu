// Expectations of linear chains from the recursions of `chain.cu`. `numbers.cuh` is prepended.
//
// Expectations are normalised at each token: with z_t = log sum_j exp(a_t(j) + b_t(j)),
//   p_t(j) = exp(a_t(j) + b_t(j) - z_t),   p_t(i, j) = exp(a_{t-1}(i) - m_t + W(i, j) + e_t(j) + b_t(j) - z_t).
// The result is the gradient of score - log Z with tags, or of log Z without, times `scale` of the sentence. Blocks process pieces of
// TOKENS tokens, gridDim.x apart, and write separate sums over pairs, which `expectations_sum` adds in a fixed order.
// Pairs are sums of products exp(a - m) exp(e + b - z + c) in tiles of 4 x 4, times exp(W - c), c the maximum of a column.
// Tokens whose second factor exceeds RANGE, or whose m is unknown, are summed in logarithms.
#define TOKENS 32
#define SIDE (LP / 4)
#define TILES (SIDE * SIDE)
#define THREADS (TILES <= 128 ? 128 : 256)
#define GROUPS (THREADS / TILES)
#define SUB (L <= 8 ? 8 : L <= 16 ? 16 : 32)   // threads per token
#define JL ((L + SUB - 1) / SUB)
#define RANGE (DOUBLE ? (real)900 : (real)100)
#if L <= 64

__device__ __forceinline__ real sub_max(real x) {
  if (SUB == 32) return warp_max(x);
  for (int d = SUB / 2; d; d >>= 1) x = larger(x, __shfl_xor_sync(ALL, x, d));
  return x;
}
__device__ __forceinline__ bool sub_any(bool x) {
  const unsigned all = __ballot_sync(ALL, x);
  return SUB == 32 ? all : (all >> (threadIdx.x % 32 / SUB * SUB)) & ((1u << (SUB % 32)) - 1);
}
__device__ __forceinline__ real sub_sum(real x) {
  for (int d = SUB / 2; d; d >>= 1) x += __shfl_xor_sync(ALL, x, d);
  return x;
}

extern "C" __global__ void __launch_bounds__(THREADS, DOUBLE ? 1 : THREADS == 128 ? 8 : 2)
expectations_pairs(CHAIN, const real* A, const real* R, const real* scale, i64 scale_stride, input_t* grad, i64 gb, i64 gt, i64 gl,
             real* pairs, real* starts, real* ends) {
  __shared__ Quad before[TOKENS][SIDE], after[TOKENS][SIDE];
  __shared__ real tops[LP], norms[TOKENS];
  __shared__ int gold[TOKENS + 1], seen[L * L], rare[TOKENS], odd;
  __shared__ real first[L], last[L];  // sums over first and last tokens: a piece has at most one of each
  const int self = threadIdx.x, lane = self % SUB, group = self / TILES, tile = self % TILES, row = tile / SIDE, col = tile % SIDE;
  const i64 pieces = (T + TOKENS - 1) / TOKENS;
  real sum[4][4], more[4][4];
#pragma unroll
  for (int u = 0; u < 4; u++)
#pragma unroll
    for (int v = 0; v < 4; v++) sum[u][v] = more[u][v] = 0;
  for (int k = self; k < L * L; k += THREADS) seen[k] = 0;
  for (int k = self; k < L; k += THREADS) first[k] = last[k] = 0;
  for (int k = self; k < LP; k += THREADS) {
    real top = -INF;
    for (int i = 0; k < L && i < L; i++) top = larger(top, W[i * L + k] * LOG2E);
    tops[k] = bounded(top);
  }
  for (i64 at = blockIdx.x; at < B * pieces; at += gridDim.x) {
    // The first pieces of all sentences, then the second ones: with the longest sentences first, this balances the work of blocks.
    const i64 b = at % B, t0 = (at / B) * TOKENS, n = lengths ? lengths[b] : T, stop = places ? n : T;
    const int many = stop - t0 < TOKENS ? (int)(stop - t0) : TOKENS;
    const int rounds = (many + THREADS / SUB - 1) / (THREADS / SUB) * (THREADS / SUB);  // shuffles need all threads
    const real g = scale ? scale[b * scale_stride] : (real)1, w = tags ? -g : g;
    const input_t* scores = FROM(e, b, eb, et);
    const i64* y = FROM(tags, b, tb, tt);
    input_t* const changes = FROM(grad, b, gb, gt);
    if (places && t0 >= n) continue;  // the tokens that follow belong to another sentence
    __syncthreads();
    if (tags && self <= many && t0 + self - 1 < n) gold[self] = t0 + self > 0 ? (int)y[(t0 + self - 1) * tt] : -1;
    if (self == 0) odd = 0;
    __syncthreads();
    if (tags && self < many && t0 + self > 0 && t0 + self < n && gold[self] >= 0 && gold[self] < L && gold[self + 1] >= 0 &&
        gold[self + 1] < L)
      atomicAdd(&seen[gold[self] * L + gold[self + 1]], 1);
    const real *const a0 = A + (PLACE(b) + t0) * ROW + lane, *const r0 = R + (PLACE(b) + t0) * L + lane;
    const input_t* const e0 = scores + t0 * et + lane * el;
    input_t* const c0 = changes + t0 * gt + lane * gl;
    const int left = n - t0 < TOKENS ? (int)(n - t0) : TOKENS, final_ = n - 1 - t0 < TOKENS ? (int)(n - 1 - t0) : -1;
#pragma unroll 2
    for (int k = self / SUB; k < rounds; k += THREADS / SUB) {
      const bool inside = k < left && k < many, follows = inside && (k || t0);
      real both[JL], top = -INF, z = 0;
#pragma unroll
      for (int v = 0; v < JL; v++) {
        both[v] = inside && lane + SUB * v < L ? a0[k * ROW + SUB * v] + r0[k * L + SUB * v] : -INF;
        top = larger(top, both[v]);
      }
      top = bounded(sub_max(top));
#pragma unroll
      for (int v = 0; v < JL; v++) z += ex2(both[v] - top);
      z = sub_sum(z);
      const real zt = z > 0 ? lg2(z) + top : (real)0, m = follows ? a0[k * ROW + L - lane] : (real)0;
      real to[JL];
      bool far = false;
#pragma unroll
      for (int v = 0; v < JL; v++) {
        const int j = lane + SUB * v;
        to[v] = -INF;
        if (follows && j < L) to[v] = (real)to_real(e0[k * et + (SUB * v) * el]) * LOG2E + r0[k * L + SUB * v] - zt + tops[j];
        far = far || to[v] > RANGE;
      }
      const bool out = sub_any(far), strange = follows && (out || !(m < INF));  // `sub_any` needs all threads
#pragma unroll
      for (int v = 0; v < JL; v++) {
        const int j = lane + SUB * v;
        if (k < many && j < L) {
          const real p = w * ex2(both[v] - zt) + (tags && k < left && gold[k + 1] == j ? g : (real)0);
          c0[k * gt + (SUB * v) * gl] = to_input(p);
          if (inside && !follows) first[j] += p;
          if (k == final_) last[j] += p;
        }
        if (j < LP) {
          ((real*)before[k])[j] = follows && j < L && !strange ? w * ex2(a0[(k - 1) * ROW + SUB * v] - m) : (real)0;
          ((real*)after[k])[j] = strange ? (real)0 : ex2(to[v]);
        }
      }
      if (lane == 0) { rare[k] = strange; norms[k] = m < INF ? zt + m : INF; if (strange) odd = 1; }
      if (JL * SUB < LP && lane < LP - JL * SUB) ((real*)before[k])[JL * SUB + lane] = ((real*)after[k])[JL * SUB + lane] = 0;
    }
    __syncthreads();
    if (group < GROUPS)
#pragma unroll 2
      for (int k = group; k < many; k += GROUPS) {
        const Quad x = before[k][row], y = after[k][col];
#pragma unroll
        for (int u = 0; u < 4; u++)
#pragma unroll
          for (int v = 0; v < 4; v++) sum[u][v] += x.v[u] * y.v[v];
      }
    if (odd)
#pragma unroll 1
      for (int k = 0; k < many; k++)
        if (rare[k]) {  // equal in all threads
          const i64 t = t0 + k, place = PLACE(b) + t;
          const real* from = A + (place - 1) * ROW;
          real norm = norms[k];
          if (!(norm < INF)) {  // each thread computes it: this is one token per piece of a long sentence
            real m = -INF, s = 0;
#pragma unroll 1
            for (int i = 0; i < L; i++)
#pragma unroll 1
              for (int j = 0; j < L; j++)
                m = larger(m, from[i] + (W[i * L + j] + (real)to_real(scores[t * et + j * el])) * LOG2E + R[place * L + j]);
            m = bounded(m);
#pragma unroll 1
            for (int i = 0; i < L; i++)
#pragma unroll 1
              for (int j = 0; j < L; j++)
                s += ex2(from[i] + (W[i * L + j] + (real)to_real(scores[t * et + j * el])) * LOG2E + R[place * L + j] - m);
            norm = s > 0 ? lg2(s) + m : (real)0;
          }
          if (group == 0)
#pragma unroll
            for (int u = 0; u < 4; u++)
#pragma unroll
              for (int v = 0; v < 4; v++) {
                const int i = 4 * row + u, j = 4 * col + v;
                if (i < L && j < L)
                  more[u][v] += w * ex2(from[i] + (W[i * L + j] + (real)to_real(scores[t * et + j * el])) * LOG2E + R[place * L + j] - norm);
              }
        }
    if (tags && group == 0)
#pragma unroll
      for (int u = 0; u < 4; u++)
#pragma unroll
        for (int v = 0; v < 4; v++) {
          const int i = 4 * row + u, j = 4 * col + v;
          if (i < L && j < L && seen[i * L + j]) { more[u][v] += g * (real)seen[i * L + j]; seen[i * L + j] = 0; }
        }
  }
  __syncthreads();
  for (int k = self; k < L; k += THREADS) {
    starts[(i64)blockIdx.x * L + k] = first[k];
    ends[(i64)blockIdx.x * L + k] = last[k];
  }
  // Add the groups in order, then multiply by the factor of the pair.
  __shared__ real parts[GROUPS > 1 ? GROUPS * TILES : 1];
#pragma unroll
  for (int u = 0; u < 4; u++)
#pragma unroll
    for (int v = 0; v < 4; v++) {
      real all = sum[u][v];
      if (GROUPS > 1) {
        __syncthreads();
        if (group < GROUPS) parts[group * TILES + tile] = all;
        __syncthreads();
        all = 0;
        for (int h = 0; h < GROUPS; h++) all += parts[h * TILES + tile];
      }
      const int i = 4 * row + u, j = 4 * col + v;
      if (group == 0 && i < L && j < L)
        pairs[((i64)blockIdx.x * L + i) * L + j] = all * ex2(W[i * L + j] * LOG2E - tops[j]) + more[u][v];
    }
}
#endif

// Column sums of `pairs`, `starts` and `ends`, and the sum of the values of sentences if given. Each warp adds rows 8 apart, then the warps
// are added in order.
extern "C" __global__ void expectations_sum(const real* pairs, i64 blocks, const real* starts, const real* ends, real* gW,
                                        real* gstart, real* gend, const real* values, i64 many, real* total) {
  __shared__ real part[8][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int column = blockIdx.x * 32 + lane, all = L * L + 2 * L + (values ? 1 : 0);
  const int which = column < L * L ? 0 : column < L * L + L ? 1 : column < L * L + 2 * L ? 2 : 3;
  const real* from = which == 0 ? pairs + column : which == 1 ? starts + column - L * L
                   : which == 2 ? ends + column - L * L - L : values;
  const int rows = which == 3 ? many : blocks, width = which == 0 ? L * L : which == 3 ? 1 : L;
  real s = 0;
  if (column < all)
#pragma unroll 8
    for (int r = warp; r < rows; r += 8) s += from[(i64)r * width];
  part[warp][lane] = s;
  __syncthreads();
  if (warp || column >= all) return;
  s = 0;
  for (int v = 0; v < 8; v++) s += part[v][lane];
  (which == 0 ? gW + column : which == 1 ? gstart + column - L * L : which == 2 ? gend + column - L * L - L : total)[0] = s;
}

// Multiply a gradient, `many` numbers of emissions and those of the parameters, by a number on the device, in place. The number is 1 if the
// loss itself is differentiated: then return at once.
extern "C" __global__ void expectations_scale(const real* by, input_t* grad, i64 many, real* gW, real* gstart, real* gend) {
  const real x = *by;
  if (x == 1) return;
  for (i64 k = (i64)blockIdx.x * blockDim.x + threadIdx.x; k < many + L * L + 2 * L; k += (i64)gridDim.x * blockDim.x) {
    const i64 j = k - many;
    if (j < 0) grad[k] = to_input(to_real(grad[k]) * x);
    else (j < L * L ? gW + j : j < L * L + L ? gstart + j - L * L : gend + j - L * L - L)[0] *= x;
  }
}
