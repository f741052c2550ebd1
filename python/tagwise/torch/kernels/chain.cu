// Linear chains on a GPU. One source for every type and number of labels; compiled at run time with
//   L      number of labels                  WARPS  ceil(L / 32): threads of a recursion are 32 * WARPS
//   WIDE   1: double, 0: float               INPUT  type of the emissions: 0 float, 1 half, 2 bfloat16, 3 double
// Logarithms are to the base 2 throughout, the unit of the hardware's ex2 and lg2.
//
//   logs a_t(j) = e_t(j) + log sum_i exp(a_{t-1}(i) - m_t + W(i, j)),  m_t = max_i a_{t-1}(i),  a_0 = start + e_0
//        b_{t-1}(i) = log sum_j exp(W(i, j) + e_t(j) + b_t(j) - m'_t),                          b_last = end
//   log Z = log sum_j exp(a_last(j) + end(j)) + sum_t m_t
//
// The sums are taken of exp(a - m) times a column of exp(W) that a thread keeps in registers. Where such a sum is below
// TINY, what was lost to underflow may be all there is: that state is summed again in logarithms (`careful`), so that
// no range of scores is refused and nothing but rounding is lost.
typedef long long i64;
#define INF __int_as_float(0x7f800000)
#if WIDE
typedef double real;
#define TINY 1e-280
#define LOG2E 1.4426950408889634
#define LN2 0.6931471805599453
__device__ __forceinline__ real ex2(real x) { return exp2(x); }
__device__ __forceinline__ real lg2(real x) { return log2(x); }
#else
typedef float real;
#define TINY 1e-30f
#define LOG2E 1.4426950408889634f
#define LN2 0.6931471805599453f
__device__ __forceinline__ real ex2(real x) { real y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
__device__ __forceinline__ real lg2(real x) { real y; asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
#endif

#if INPUT == 1
typedef unsigned short given;
__device__ __forceinline__ float wide(given h) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h)); return f; }
__device__ __forceinline__ given narrow(real f) { given h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"((float)f)); return h; }
#elif INPUT == 2
typedef unsigned short given;
__device__ __forceinline__ float wide(given h) { return __int_as_float((int)h << 16); }
__device__ __forceinline__ given narrow(real f) {
  unsigned u = __float_as_uint((float)f);
  return (u & 0x7fffffffu) > 0x7f800000u ? 0x7fff : (given)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
#elif INPUT == 3
typedef double given;
__device__ __forceinline__ double wide(given x) { return x; }
__device__ __forceinline__ given narrow(real x) { return x; }
#else
typedef float given;
__device__ __forceinline__ float wide(given x) { return x; }
__device__ __forceinline__ given narrow(real x) { return (float)x; }
#endif

#define ALL 0xffffffffu
#define LP ((L + 3) / 4 * 4)
#define LANES (32 * WARPS)
#define AHEAD 8          // tokens whose scores are loaded before they are needed

__device__ __forceinline__ real larger(real x, real y) { return x > y ? x : y; }

// The largest of a warp. Integers have an instruction for it; floats are ordered as integers once negatives are turned.
__device__ __forceinline__ real warp_max(real x) {
#if !WIDE && __CUDA_ARCH__ >= 800
  int k = __float_as_int(x);
  k ^= (k >> 31) & 0x7fffffff;
  k = __reduce_max_sync(ALL, k);
  return __int_as_float(k ^ ((k >> 31) & 0x7fffffff));
#else
  for (int d = 16; d; d >>= 1) x = larger(x, __shfl_xor_sync(ALL, x, d));
  return x;
#endif
}
template <class T> __device__ __forceinline__ T warp_sum(T x) {
  for (int d = 16; d; d >>= 1) x += __shfl_xor_sync(ALL, x, d);
  return x;
}
__device__ __forceinline__ real bounded(real m) { return m > -INF ? m : (real)0; }

// One step of either recursion for state j: log sum_i exp(x_i + W_i), x in `logs` less its warp's `tops`.
struct Step {
  real x[2][LP > LANES ? LP : LANES];
  real logs[2][LANES];
  real tops[2][WARPS];
};

__device__ real careful(const real* logs, const real* tops, const real* weights, i64 stride) {
  real m = -INF, s = 0;
  for (int i = 0; i < L; i++) m = larger(m, logs[i] + tops[i / 32] + weights[i * stride] * LOG2E);
  if (!(m > -INF)) return -INF;
  for (int i = 0; i < L; i++) s += ex2(logs[i] + tops[i / 32] + weights[i * stride] * LOG2E - m);
  return lg2(s) + m;
}

// Returns log sum less the largest of all, which goes to `top`.
__device__ __forceinline__ real step(Step& at, int p, int j, real value, const real (&column)[LP], real columns_top,
                                     const real* weights, i64 stride, real& top) {
  const int w = j / 32;
  const real highest = warp_max(value), mine = bounded(highest);
  at.x[p][j] = j < L ? ex2(value - mine) : (real)0;
  at.logs[p][j] = value - mine;
  if (WARPS > 1 && j % 32 == 0) at.tops[p][w] = highest;
  if (WARPS > 1) __syncthreads(); else __syncwarp();
  real s = 0;
  if (WARPS == 1) {
    top = mine;
    real s4[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < LP; i++) s4[i & 3] += at.x[p][i] * column[i];
    s = (s4[0] + s4[1]) + (s4[2] + s4[3]);
  } else {
    top = -INF;
#pragma unroll
    for (int v = 0; v < WARPS; v++) top = larger(top, at.tops[p][v]);
    top = bounded(top);
#pragma unroll
    for (int v = 0; v < WARPS; v++) {
      real s4[4] = {0, 0, 0, 0};
#pragma unroll
      for (int i = 0; i < 32; i++)
        if (32 * v + i < LP) s4[i & 3] += at.x[p][32 * v + i] * column[32 * v + i < LP ? 32 * v + i : 0];
      s += ((s4[0] + s4[1]) + (s4[2] + s4[3])) * ex2(at.tops[p][v] - top);
    }
  }
  if (j >= L) return -INF;
  if (s >= (real)TINY) return lg2(s) + columns_top;
  real none[1] = {0};
  if (WARPS == 1) return careful(at.logs[p], none, weights, stride);
  return careful(at.logs[p], at.tops[p], weights, stride) - top;
}

#define ARGUMENTS const given* e, i64 eb, i64 et, i64 el, const real* W, const real* start, const real* end, \
                  const int* lengths, const i64* tags, i64 tb, i64 tt, i64 B, i64 T

__device__ __forceinline__ real score(const given* e, i64 el, int j) { return j < L ? (real)wide(e[j * el]) * LOG2E : -INF; }

// Blocks: sentences x (forward, backward).
extern "C" __global__ void __launch_bounds__(LANES) chain_forward(ARGUMENTS, real* A, real* R, real* value) {
  const int b = blockIdx.x, backward = blockIdx.y, j = threadIdx.x;
  const int n = lengths ? lengths[b] : T;
  if (n <= 0) { if (!backward && j == 0) value[b] = 0; return; }
  __shared__ Step at;
  __shared__ real last[WARPS + 1];
  if (LP > LANES && j < LP - LANES) at.x[0][LANES + j] = at.x[1][LANES + j] = 0;
  const i64 near = backward ? 1 : L, far = backward ? L : 1;  // W + j * far, entries `near` apart
  real column[LP], columns_top = -INF;
#pragma unroll
  for (int i = 0; i < LP; i++) {
    column[i] = j < L && i < L ? W[j * far + i * near] * LOG2E : -INF;
    columns_top = larger(columns_top, column[i]);
  }
  columns_top = bounded(columns_top);
#pragma unroll
  for (int i = 0; i < LP; i++) column[i] = ex2(column[i] - columns_top);
  const given* at_e = e + b * eb;
  real* out = (backward ? R : A) + (i64)b * T * L + j;
  const real first = j < L ? (backward ? end[j] : start[j]) * LOG2E : -INF;
  real now[AHEAD], next[AHEAD], top, passed = 0;  // `passed`: the score of the token that backward comes from
  double offset = 0;
  // Step k is token k forward, token n-1-k backward.
#pragma unroll
  for (int u = 0; u < AHEAD; u++) now[u] = u < n ? score(at_e + (i64)(backward ? n - 1 - u : u) * et, el, j) : -INF;
  real x = first;
  for (int k0 = 0; k0 < n; k0 += AHEAD) {
#pragma unroll
    for (int u = 0; u < AHEAD; u++) {
      const int k = k0 + AHEAD + u;
      next[u] = k < n ? score(at_e + (i64)(backward ? n - 1 - k : k) * et, el, j) : -INF;
    }
#pragma unroll
    for (int u = 0; u < AHEAD; u++) {
      const int k = k0 + u;
      if (k < n) {
        if (backward) {
          if (k) x = step(at, k & 1, j, x + passed, column, columns_top, W + j * far, near, top);
          if (j < L) out[(i64)(n - 1 - k) * L] = x;
          passed = now[u];
        } else {
          if (k) { x = step(at, k & 1, j, x, column, columns_top, W + j * far, near, top); offset += top; }
          x += now[u];
          if (j < L) out[(i64)k * L] = x;
        }
      }
    }
#pragma unroll
    for (int u = 0; u < AHEAD; u++) now[u] = next[u];
  }
  if (backward) return;
  // log Z, and the score of the tags in a fixed order.
  x = j < L ? x + end[j] * LOG2E : -INF;
  double sum = 0;
  if (tags) {
    const i64* y = tags + b * tb;
    for (int t = j; t < n; t += LANES)
      sum += (double)(wide(at_e[t * et + y[t * tt] * el]) + (t ? W[y[(t - 1) * tt] * L + y[t * tt]] : start[y[0]])
                      + (t == n - 1 ? end[y[t * tt]] : (real)0));
    sum = warp_sum(sum);
  }
  __shared__ double sums[WARPS];
  real mine = warp_max(x);
  if (WARPS > 1) {
    if (j % 32 == 0) { last[j / 32] = mine; sums[j / 32] = sum; }
    __syncthreads();
    for (int v = 0; v < WARPS; v++) mine = larger(mine, last[v]);
    __syncthreads();
  } else sums[0] = sum;
  real part = warp_sum(mine > -INF ? ex2(x - mine) : (real)0);
  if (WARPS > 1) { if (j % 32 == 0) last[j / 32] = part; __syncthreads(); } else last[0] = part;
  if (j == 0) {
    real total = 0;
    double scored = 0;
    for (int v = 0; v < WARPS; v++) { total += last[v]; scored += sums[v]; }
    const double z = mine > -INF ? ((double)lg2(total) + (double)mine + offset) * 0.6931471805599453 : -(double)INF;
    value[b] = (real)(tags ? (mine > -INF ? scored - z : -(double)INF) : z);
  }
}

// Expectations, normalised token by token: with z_t = log sum_j exp(a_t(j) + b_t(j)),
//   p_t(j) = exp(a_t(j) + b_t(j) - z_t),   p_t(i, j) = exp(a_{t-1}(i) - m_t + W(i, j) + e_t(j) + b_t(j) - z_t).
// With tags the gradient of score - log Z, else of log Z, times `scale` of the sentence. Blocks take pieces of TOKENS tokens,
// `blocks` apart, and keep their sums over pairs apart: `chain_reduce` adds them in a fixed order.
#define TOKENS 32
#define THREADS 128
#define JL ((L + 31) / 32)
#define PAIRS ((L * L + THREADS - 1) / THREADS)

extern "C" __global__ void __launch_bounds__(THREADS)
chain_expect(ARGUMENTS, const real* A, const real* R, const real* scale, i64 scale_stride, given* grad, i64 gb, i64 gt,
             i64 gl, real* pairs, real* starts, real* ends) {
  __shared__ real before[TOKENS][L], after[TOKENS][L];
  __shared__ int gold[TOKENS + 1];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, pieces = (T + TOKENS - 1) / TOKENS;
  real sum[PAIRS];
#pragma unroll
  for (int k = 0; k < PAIRS; k++) sum[k] = 0;
  for (i64 piece = blockIdx.x; piece < (i64)B * pieces; piece += gridDim.x) {
    const int b = piece / pieces, t0 = (piece % pieces) * TOKENS, n = lengths ? lengths[b] : T;
    const int many = T - t0 < TOKENS ? T - t0 : TOKENS;
    const real g = scale[b * scale_stride], w = tags ? -g : g;
    if (tags && threadIdx.x <= many && t0 + (int)threadIdx.x - 1 < n)
      gold[threadIdx.x] = t0 + (int)threadIdx.x > 0 ? (int)tags[b * tb + (t0 + threadIdx.x - 1) * tt] : -1;
    __syncthreads();
    for (int k = warp; k < many; k += THREADS / 32) {
      const int t = t0 + k;
      const i64 row = ((i64)b * T + t) * L;
      real both[JL], top = -INF, prior = -INF, z = 0;
#pragma unroll
      for (int v = 0; v < JL; v++) {
        const int j = lane + 32 * v;
        both[v] = t < n && j < L ? A[row + j] + R[row + j] : -INF;
        top = larger(top, both[v]);
        if (t && t < n && j < L) prior = larger(prior, A[row - L + j]);
      }
      top = bounded(warp_max(top));
      prior = bounded(warp_max(prior));
#pragma unroll
      for (int v = 0; v < JL; v++) z += ex2(both[v] - top);
      z = warp_sum(z);
      const real zt = z > 0 ? lg2(z) + top : (real)0;
#pragma unroll
      for (int v = 0; v < JL; v++) {
        const int j = lane + 32 * v;
        if (j >= L) continue;
        const real p = w * ex2(both[v] - zt) + (tags && t < n && gold[k + 1] == j ? g : (real)0);
        grad[b * gb + t * gt + j * gl] = narrow(p);
        if (t == 0) starts[(i64)b * L + j] = n > 0 ? p : (real)0;
        if (t == n - 1 || (t == 0 && n <= 0)) ends[(i64)b * L + j] = n > 0 ? p : (real)0;
        before[k][j] = t && t < n ? A[row - L + j] - prior : -INF;
        after[k][j] = t < n ? (real)wide(e[b * eb + t * et + j * el]) * LOG2E + R[row + j] - zt : -INF;
      }
    }
    __syncthreads();
#pragma unroll
    for (int q = 0; q < PAIRS; q++) {
      const int pair = threadIdx.x + q * THREADS, i = pair / L, j = pair % L;
      if (pair < L * L) {
        const real weight = W[pair] * LOG2E;
        real model = 0, seen = 0;
        if (weight > -INF)
          for (int k = 0; k < many; k++) model += ex2(before[k][i] + weight + after[k][j]);
        if (tags)
          for (int k = t0 ? 0 : 1; k < many; k++) seen += t0 + k < n && gold[k] == i && gold[k + 1] == j ? (real)1 : (real)0;
        sum[q] += w * model + g * seen;
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int q = 0; q < PAIRS; q++)
    if (threadIdx.x + q * THREADS < L * L) pairs[(i64)blockIdx.x * L * L + threadIdx.x + q * THREADS] = sum[q];
}

// Columns of `pairs`, `starts` and `ends` added up, rows 8 apart by each warp and then the warps in order.
extern "C" __global__ void chain_reduce(const real* pairs, i64 blocks, const real* starts, const real* ends, i64 B, real* gW,
                                        real* gstart, real* gend) {
  __shared__ real part[8][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int column = blockIdx.x * 32 + lane, all = L * L + 2 * L;
  const int which = column < L * L ? 0 : column < L * L + L ? 1 : 2;
  const real* from = which == 0 ? pairs + column : which == 1 ? starts + column - L * L : ends + column - L * L - L;
  const int rows = which == 0 ? blocks : B, width = which == 0 ? L * L : L;
  real s = 0;
  if (column < all)
    for (int r = warp; r < rows; r += 8) s += from[(i64)r * width];
  part[warp][lane] = s;
  __syncthreads();
  if (warp || column >= all) return;
  s = 0;
  for (int v = 0; v < 8; v++) s += part[v][lane];
  (which == 0 ? gW + column : which == 1 ? gstart + column - L * L : gend + column - L * L - L)[0] = s;
}

// The best path. Back pointers are bytes (two where L > 256) in `back` (B, T, L); of equal scores the lowest label wins.
#if L <= 256
typedef unsigned char label;
#else
typedef unsigned short label;
#endif
extern "C" __global__ void __launch_bounds__(LANES) chain_best(ARGUMENTS, label* back, i64* path, real* value) {
  const int b = blockIdx.x, j = threadIdx.x, n = lengths ? lengths[b] : T;
  i64* out = path + (i64)b * T;
  for (int t = (n > 0 ? n : 0) + j; t < T; t += LANES) out[t] = -1;
  if (n <= 0) { if (j == 0) value[b] = 0; return; }
  __shared__ real shared[2][LP > LANES ? LP : LANES];
  real column[LP];
#pragma unroll
  for (int i = 0; i < LP; i++) column[i] = j < L && i < L ? W[j + i * L] : -INF;
  if (LP > LANES && j < LP - LANES) shared[0][LANES + j] = shared[1][LANES + j] = -INF;
  const given* at_e = e + b * eb;
  label* to = back + (i64)b * T * L + j;
  real now[AHEAD], next[AHEAD];
#pragma unroll
  for (int u = 0; u < AHEAD; u++) now[u] = u < n && j < L ? (real)wide(at_e[u * et + j * el]) : -INF;
  real x = j < L ? start[j] : -INF;
  for (int k0 = 0; k0 < n; k0 += AHEAD) {
#pragma unroll
    for (int u = 0; u < AHEAD; u++) next[u] = k0 + AHEAD + u < n && j < L ? (real)wide(at_e[(i64)(k0 + AHEAD + u) * et + j * el]) : -INF;
#pragma unroll
    for (int u = 0; u < AHEAD; u++) {
      const int t = k0 + u;
      if (t < n) {
        if (t) {
          shared[t & 1][j] = x;
          if (WARPS > 1) __syncthreads(); else __syncwarp();
          real best[2] = {-INF, -INF};
          int from[2] = {0, 1};
#pragma unroll
          for (int i = 0; i < L; i++) {
            const real s = shared[t & 1][i] + column[i];
            if (s > best[i & 1]) { best[i & 1] = s; from[i & 1] = i; }
          }
          const bool second = best[1] > best[0] || (best[1] == best[0] && from[1] < from[0] && best[1] > -INF);
          x = second ? best[1] : best[0];
          if (j < L) to[(i64)t * L] = (label)(second ? from[1] : from[0]);
        }
        x += now[u];
      }
    }
#pragma unroll
    for (int u = 0; u < AHEAD; u++) now[u] = next[u];
  }
  // The last label, then back through pieces that the block brings into shared memory.
  if (WARPS > 1) __syncthreads(); else __syncwarp();
  shared[0][j] = j < L ? x + end[j] : -INF;
  if (WARPS > 1) __syncthreads(); else __syncwarp();
  __shared__ int at;
  if (j == 0) {
    int top = 0;
    for (int i = 1; i < L; i++) if (shared[0][i] > shared[0][top]) top = i;
    at = top;
    value[b] = shared[0][top];
  }
  __threadfence_block();
  if (WARPS > 1) __syncthreads(); else __syncwarp();
  const int PIECE = 8192 / L > 0 ? 8192 / L : 1;
  __shared__ label piece[L > 8192 ? L : 8192];
  for (int stop = n; stop > 0; stop -= PIECE) {
    const int first = stop - PIECE > 0 ? stop - PIECE : 0;
    const label* rows = back + ((i64)b * T + first) * L;
    for (int k = j; k < (stop - first) * L; k += LANES) piece[k] = rows[k];
    if (WARPS > 1) __syncthreads(); else __syncwarp();
    if (j == 0) {
      int y = at;
      for (int t = stop - 1; t >= first; t--) {
        out[t] = y;
        if (t) y = piece[(t - first) * L + y];
      }
      at = y;
    }
    if (WARPS > 1) __syncthreads(); else __syncwarp();
  }
}
