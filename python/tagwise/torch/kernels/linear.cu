// Scores of tokens from the weights of their attributes, and the way back. Compiled at run time with
//   WIDTH  labels of a row, a multiple of 8: an attribute's row is whole sectors of memory
// What is beyond the labels there are is 0 and stays so.
typedef long long i64;
#define ALL 0xffffffffu
#define PARTS ((WIDTH + 31) / 32)

// Sums of rows: out[u] = sum_k values_k rows[list_k] over k in [begins[u], begins[u + 1]), values that are not given being 1. A warp a
// unit, in the order of the list. Units are tokens and the list their attributes, on the way to scores; on the way back pieces of an
// attribute's list of tokens, and pieces of lists of such sums.
extern "C" __global__ void linear_sums(const int* begins, const int* list, const float* values, const float* rows, i64 units,
                                       float* out) {
  const i64 u = (i64)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (u >= units) return;
  float sum[PARTS];
#pragma unroll
  for (int v = 0; v < PARTS; v++) sum[v] = 0;
  const int first = begins[u], stop = begins[u + 1];
  for (int k0 = first; k0 < stop; k0 += 32) {
    const int many = stop - k0 < 32 ? stop - k0 : 32;
    const int mine = lane < many ? list[k0 + lane] : 0;
    const float value = lane < many ? (values ? values[k0 + lane] : 1.0f) : 0.0f;
#pragma unroll 8
    for (int k = 0; k < many; k++) {
      const float* row = rows + (i64)__shfl_sync(ALL, mine, k) * WIDTH + lane;
      const float x = __shfl_sync(ALL, value, k);
#pragma unroll
      for (int v = 0; v < PARTS; v++)
        if (32 * v + lane < WIDTH) sum[v] += x * row[32 * v];
    }
  }
#pragma unroll
  for (int v = 0; v < PARTS; v++)
    if (32 * v + lane < WIDTH) out[u * WIDTH + 32 * v + lane] = sum[v];
}

// Weights into their places: held[place[k]] = w[k].
extern "C" __global__ void linear_spread(const double* w, const int* place, i64 n, float* held) {
  const i64 k = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (k < n) held[place[k]] = (float)w[k];
}

// Gradients from theirs: out[k] = held[index[k]].
extern "C" __global__ void linear_collect(const float* held, const int* index, i64 n, double* out) {
  const i64 k = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (k < n) out[k] = (double)held[index[k]];
}

// From log-likelihoods -l_i of sentences: figures = sum_i w_i l_i and the largest l_i + log w_i. One block of 256 threads.
extern "C" __global__ void linear_figures(const double* value, const float* weight, const double* log_weight, i64 n, double* figures) {
  __shared__ double sums[256], tops[256];
  const int self = threadIdx.x;
  double sum = 0, top = -1.0 / 0.0;
  for (i64 k = self; k < n; k += 256) {
    const double l = -value[k], high = l + log_weight[k];
    sum += (double)weight[k] * l;
    if (!(high <= top)) top = high;
  }
  sums[self] = sum;
  tops[self] = top;
  for (int half = 128; half; half /= 2) {
    __syncthreads();
    if (self < half) {
      sums[self] += sums[self + half];
      if (!(tops[self + half] <= tops[self])) tops[self] = tops[self + half];
    }
  }
  if (self == 0) { figures[0] = sums[0]; figures[1] = tops[0]; }
}
