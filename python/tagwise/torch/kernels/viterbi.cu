// Viterbi paths of linear chains. `numbers.cuh` is prepended. Back pointers are bytes (two if L > 256) in `back` (B, T, L). The
// lowest label wins ties.
#if L <= 256
typedef unsigned char label;
#else
typedef unsigned short label;
#endif
extern "C" __global__ void __launch_bounds__(LANES) viterbi_path(CHAIN, label* back, i64* path, real* value) {
  const int b = blockIdx.x, j = threadIdx.x, n = lengths ? lengths[b] : T;
  i64* out = path + PLACE(b);
  for (int t = (n > 0 ? n : 0) + j; t < T && !places; t += LANES) out[t] = -1;
  if (n <= 0) { if (j == 0) value[b] = 0; return; }
  __shared__ real shared[2][LP > LANES ? LP : LANES];
  real column[LP];
#pragma unroll
  for (int i = 0; i < LP; i++) column[i] = j < L && i < L ? W[j + i * L] : -INF;
  if (LP > LANES && j < LP - LANES) shared[0][LANES + j] = shared[1][LANES + j] = -INF;
  const input_t* at_e = FROM(e, b, eb, et);
  label* to = back + PLACE(b) * L + j;
  real now[PREFETCH], next[PREFETCH];
#pragma unroll
  for (int u = 0; u < PREFETCH; u++) now[u] = u < n && j < L ? (real)to_real(at_e[u * et + j * el]) : -INF;
  real x = j < L ? start[j] : -INF;
  double total = 0;  // sum of the amounts subtracted, equal in all threads
  bool none = false;  // whether a score of this label is NaN, which comparisons do not detect
  for (int k0 = 0; k0 < n; k0 += PREFETCH) {
#pragma unroll
    for (int u = 0; u < PREFETCH; u++) next[u] = k0 + PREFETCH + u < n && j < L ? (real)to_real(at_e[(i64)(k0 + PREFETCH + u) * et + j * el]) : -INF;
#pragma unroll
    for (int u = 0; u < PREFETCH; u++) {
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
          if (is_due(t - 1)) {  // one token late: only now does every thread have the scores of all labels
            real top = -INF;
            for (int i = 0; i < L; i++) top = larger(shared[t & 1][i], top);
            top = shift(top);
            x -= top;
            total += top;
          }
          if (j < L) to[(i64)t * L] = (label)(second ? from[1] : from[0]);
        }
        x += now[u];
        none |= now[u] != now[u];
      }
    }
#pragma unroll
    for (int u = 0; u < PREFETCH; u++) now[u] = next[u];
  }
  // Find the last label, then follow back pointers through pieces that the block loads into shared memory.
  if (WARPS > 1) __syncthreads(); else __syncwarp();
  shared[0][j] = j >= L ? -INF : none ? INF - INF : x + end[j];
  if (WARPS > 1) __syncthreads(); else __syncwarp();
  __shared__ int at;
  if (j == 0) {
    int top = 0;
    real high = shared[0][0];
    for (int i = 1; i < L; i++) {
      if (shared[0][i] > shared[0][top]) top = i;
      high = larger(high, shared[0][i]);
    }
    at = top;
    value[b] = (real)((double)high + total);
  }
  __threadfence_block();
  if (WARPS > 1) __syncthreads(); else __syncwarp();
  const int PIECE = 8192 / L > 0 ? 8192 / L : 1;
  __shared__ label piece[L > 8192 ? L : 8192];
  for (int stop = n; stop > 0; stop -= PIECE) {
    const int first = stop - PIECE > 0 ? stop - PIECE : 0;
    const label* rows = back + (PLACE(b) + first) * L;
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
