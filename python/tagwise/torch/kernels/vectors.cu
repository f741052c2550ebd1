// The long vectors of L-BFGS, in double precision. Compiled at run time with
//   ROWS   2 m + 1: steps s, changes y of the gradient, the gradient g
typedef long long i64;
#define CREW 256

__device__ __forceinline__ double added(double x) {
  for (int d = 16; d; d >>= 1) x += __shfl_xor_sync(0xffffffffu, x, d);
  return x;
}

// A new pair and its inner products, in one round over all rows: rows[place] = (w1 - w0) / d, rows[place + m] = (g1 - g0) d, rows[2 m] =
// g1 d, and parts[block] = the products of each row with these three over the block's share. d is 1 where it is not given; with no w0
// there is no new pair, and the first two products are 0.
extern "C" __global__ void __launch_bounds__(CREW) vectors_pair(const double* w0, const double* w1, const double* g0, const double* g1,
                                                                 const double* d, double* rows, i64 n, i64 place, double* parts) {
  __shared__ double shared[CREW / 32];
  const int m = ROWS / 2;
  double sum[ROWS][3];
#pragma unroll
  for (int r = 0; r < ROWS; r++) sum[r][0] = sum[r][1] = sum[r][2] = 0;
  for (i64 i = (i64)blockIdx.x * CREW + threadIdx.x; i < n; i += (i64)gridDim.x * CREW) {
    const double scale = d ? d[i] : 1.0, g = g1[i] * scale;
    double s = 0, y = 0;
    if (w0) {
      s = d ? (w1[i] - w0[i]) / scale : w1[i] - w0[i];
      y = (g1[i] - g0[i]) * scale;
      rows[place * n + i] = s;
      rows[(place + m) * n + i] = y;
    }
    rows[(i64)(2 * m) * n + i] = g;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      const double x = r == 2 * m ? g : w0 && r == place ? s : w0 && r == place + m ? y : rows[(i64)r * n + i];
      sum[r][0] += x * s;
      sum[r][1] += x * y;
      sum[r][2] += x * g;
    }
  }
#pragma unroll
  for (int r = 0; r < ROWS; r++)
#pragma unroll
    for (int v = 0; v < 3; v++) {
      const double x = added(sum[r][v]);
      __syncthreads();
      if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
      __syncthreads();
      if (threadIdx.x == 0) {
        double all = 0;
        for (int w = 0; w < CREW / 32; w++) all += shared[w];
        parts[(i64)blockIdx.x * ROWS * 3 + r * 3 + v] = all;
      }
    }
}

// Columns of parts (blocks, ROWS * 3) added up: a warp a column.
extern "C" __global__ void vectors_added(const double* parts, i64 blocks, double* out) {
  const int column = blockIdx.x, lane = threadIdx.x;
  double sum = 0;
  for (i64 b = lane; b < blocks; b += 32) sum += parts[b * ROWS * 3 + column];
  sum = added(sum);
  if (lane == 0) out[column] = sum;
}

// out = d * sum_r c_r rows[r].
extern "C" __global__ void __launch_bounds__(CREW) vectors_mixed(const double* rows, i64 n, const double* d, const double* c, double* out) {
  double weight[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; r++) weight[r] = c[r];
  for (i64 i = (i64)blockIdx.x * CREW + threadIdx.x; i < n; i += (i64)gridDim.x * CREW) {
    double sum = 0;
#pragma unroll
    for (int r = 0; r < ROWS; r++) sum += weight[r] * rows[(i64)r * n + i];
    out[i] = d ? sum * d[i] : sum;
  }
}
