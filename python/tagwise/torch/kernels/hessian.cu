// Hessian-vector product of log Z: the derivative of the expectations of a chain along a direction v of its scores. `numbers.cuh` is
// prepended. With the recursions a and b of `chain.cu`, their marginals p_t, and means E_t under p_t,
//
//   p_t(i | j) = exp(a_{t-1}(i) + W(i, j) - c_t(j)),         c_t(j) = log sum_i exp(a_{t-1}(i) + W(i, j))
//   h_t(j) = v_t(j) + sum_i p_t(i | j) (h_{t-1}(i) + v(i, j)) - E_t,        h_0 = v_0 + v_start - E_0
//   d_{t-1}(i) = sum_j p_t(j | i) (v(i, j) + v_t(j) + d_t(j)) - E_{t-1},    d_last = v_end
//   p_t(j)'    = p_t(j) (h_t(j) + d_t(j) - E_t[h + d])
//   p_t(i, j)' = p_t(i | j) p_t(j) (h_{t-1}(i) + v(i, j) + v_t(j) + d_t(j) - their mean)
//
// Everything except v, h and d is a logarithm, so that every range of scores is supported. A step is two loops over the labels.
#define PIECE 16         // tokens that a block processes at a time
#define CREW 256         // threads of a block
#define MINE ((L * L + CREW - 1) / CREW)
#define PARTS ((L + 31) / 32)

__device__ __forceinline__ real block_max(real x, real* shared) {
  x = warp_max(x);
  if (WARPS == 1) return x;
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
  __syncthreads();
  for (int w = 0; w < WARPS; w++) x = larger(x, shared[w]);
  return x;
}
__device__ __forceinline__ real block_sum(real x, real* shared) {
  x = warp_sum(x);
  if (WARPS == 1) return x;
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
  __syncthreads();
  x = 0;
  for (int w = 0; w < WARPS; w++) x += shared[w];
  return x;
}
// Return exp(both), normalised over a block: p_t(j).
__device__ __forceinline__ real chance(real both, real* shared) {
  const real top = bounded(block_max(both, shared)), x = ex2(both - top), all = block_sum(x, shared);
  return all > 0 ? x / all : (real)0;
}

// Forward: h, its means (tokens) and c. Backward: d. Also <v, gradient of log Z_b> of each sentence. Blocks: sentences x (forward,
// backward), one thread per label. v is (tokens, L). v of pairs, start and end can be null.
extern "C" __global__ void __launch_bounds__(LANES) hessian_walk(CHAIN, const real* A, const real* R, const real* v, const real* vW,
                                                               const real* vstart, const real* vend, real* H, real* means,
                                                               real* C, real* D, real* total) {
  const int b = blockIdx.x, backward = blockIdx.y, j = threadIdx.x;
  const i64 n = lengths ? lengths[b] : T;
  if (n <= 0) { if (!backward && j == 0) total[b] = 0; return; }
  __shared__ real some[WARPS], logs[2][LANES], bent[2][LANES];
  const bool own = j < L;
  const i64 place = PLACE(b);
  const input_t* scores = FROM(e, b, eb, et);
  const real* weights = W + (own ? j : 0) * (i64)(backward ? L : 1);
  const real* along = vW ? vW + (own ? j : 0) * (i64)(backward ? L : 1) : 0;
  const i64 near_ = backward ? 1 : L;
  real column[L];
#pragma unroll
  for (int i = 0; i < L; i++) column[i] = weights[i * near_] * LOG2E;
  double sum = 0;
  real x = 0, p = 0;
  for (i64 k = 0; k < n; k++) {
    const i64 t = place + (backward ? n - 1 - k : k);
    const real a = own ? A[t * ROW + j] : -INF, r = own ? R[t * L + j] : -INF, change = own ? v[t * L + j] : (real)0;
    real c = 0;
    if (k) {  // one loop for the maximum, one for the sums
      const real *from = logs[(k + 1) & 1], *of = bent[(k + 1) & 1];
      real m = -INF, s = 0, moved = 0;
#pragma unroll
      for (int i = 0; i < L; i++) m = larger(m, from[i] + column[i]);
      m = bounded(m);
#pragma unroll
      for (int i = 0; i < L; i++) {
        const real share = ex2(from[i] + column[i] - m);
        s += share;
        moved += share * (of[i] + (along ? along[i * near_] : (real)0));
      }
      c = s > 0 ? lg2(s) + m : -INF;
      x = s > 0 ? moved / s : (real)0;
    } else {
      x = backward ? (vend && own ? vend[j] : (real)0) : (vstart && own ? vstart[j] : (real)0);
    }
    p = chance(a + r, some);
    if (!backward) x += change;
    const real mean = block_sum(own ? p * x : (real)0, some);
    if (!backward || k) x -= mean;
    if (own) {
      if (backward) D[t * L + j] = x;
      else { H[t * L + j] = x; C[t * L + j] = c; }
    }
    if (!backward && j == 0) means[t] = mean;
    sum += (double)mean;
    logs[k & 1][j] = backward ? (own ? (real)to_real(scores[(n - 1 - k) * et + j * el]) * LOG2E : -INF) + r : a;
    bent[k & 1][j] = backward ? change + x : x;
    SYNC();
  }
  if (backward) return;
  const real last = block_sum(own && vend ? p * vend[j] : (real)0, some);
  if (j == 0) total[b] = (real)(sum + (double)last);
}

// Derivatives of the marginals, times `scale` of the sentence, and the sums of each block over pairs, first and last tokens, for
// `expectations_sum`. Blocks process pieces of PIECE tokens, gridDim.x apart. A warp prepares each token, then each thread sums its pairs.
extern "C" __global__ void __launch_bounds__(CREW) hessian_pairs(CHAIN, const real* A, const real* R, const real* scale, i64 scale_stride,
                                                               const real* v, const real* vW, const real* H, const real* means,
                                                               const real* C, const real* D, input_t* grad, i64 gb, i64 gt, i64 gl,
                                                               real* pairs, real* starts, real* ends) {
  __shared__ real before[PIECE][LP], after[PIECE][LP], head[PIECE][LP], tail[PIECE][LP], first[L], last[L];
  const int self = threadIdx.x, lane = self % 32, warp = self / 32;
  const i64 pieces = (T + PIECE - 1) / PIECE;
  real sum[MINE], weight[MINE], bias[MINE];
#pragma unroll
  for (int u = 0; u < MINE; u++) {
    const int at = self + CREW * u;
    sum[u] = 0;
    weight[u] = at < L * L ? W[at] * LOG2E : -INF;
    bias[u] = at < L * L && vW ? vW[at] : (real)0;
  }
  for (int k = self; k < L; k += CREW) first[k] = last[k] = 0;
  for (i64 at = blockIdx.x; at < B * pieces; at += gridDim.x) {
    const i64 b = at % B, t0 = (at / B) * PIECE, n = lengths ? lengths[b] : T, stop = places ? n : T, place = PLACE(b);
    if (t0 >= stop) continue;
    const int many = stop - t0 < PIECE ? (int)(stop - t0) : PIECE;
    const real g = scale[b * scale_stride];
    input_t* const changes = FROM(grad, b, gb, gt);
    __syncthreads();
    for (int k = warp; k < many; k += CREW / 32) {
      const i64 t = t0 + k, token = place + t;
      const bool inside = t < n;
      real both[PARTS], top = -INF, z = 0, middle = 0;
#pragma unroll
      for (int u = 0; u < PARTS; u++) {
        const int j = lane + 32 * u;
        both[u] = inside && j < L ? A[token * ROW + j] + R[token * L + j] : -INF;
        top = larger(top, both[u]);
      }
      top = bounded(warp_max(top));
#pragma unroll
      for (int u = 0; u < PARTS; u++) z += ex2(both[u] - top);
      z = warp_sum(z);
      const real zt = z > 0 ? lg2(z) + top : (real)0;
#pragma unroll
      for (int u = 0; u < PARTS; u++) {
        const int j = lane + 32 * u;
        if (inside && j < L) middle += ex2(both[u] - zt) * (H[token * L + j] + D[token * L + j]);
      }
      middle = warp_sum(middle);
#pragma unroll
      for (int u = 0; u < PARTS; u++) {
        const int j = lane + 32 * u;
        if (j >= L) continue;
        const real change = inside ? g * ex2(both[u] - zt) * (H[token * L + j] + D[token * L + j] - middle) : (real)0;
        changes[t * gt + j * gl] = to_input(change);
        if (inside && t == 0) first[j] += change;
        if (inside && t == n - 1) last[j] += change;
        if (inside && t) {
          before[k][j] = A[(token - 1) * ROW + j];
          head[k][j] = H[(token - 1) * L + j];
          after[k][j] = both[u] > -INF ? both[u] - zt - C[token * L + j] : -INF;
          tail[k][j] = v[token * L + j] + D[token * L + j] - (means[token] + middle);
        }
      }
    }
    __syncthreads();
    for (int k = t0 ? 0 : 1; k < many && t0 + k < n; k++)
#pragma unroll
      for (int u = 0; u < MINE; u++) {
        const int at = self + CREW * u, i = at / L, j = at % L;
        if (at < L * L) sum[u] += g * ex2(before[k][i] + weight[u] + after[k][j]) * (head[k][i] + bias[u] + tail[k][j]);
      }
  }
  __syncthreads();
  for (int k = self; k < L; k += CREW) {
    starts[(i64)blockIdx.x * L + k] = first[k];
    ends[(i64)blockIdx.x * L + k] = last[k];
  }
#pragma unroll
  for (int u = 0; u < MINE; u++)
    if (self + CREW * u < L * L) pairs[(i64)blockIdx.x * L * L + self + CREW * u] = sum[u];
}
