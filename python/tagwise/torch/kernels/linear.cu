// Scores of tokens from the weights of their attributes, and gradients of the weights. Compiled at run time with
//   WIDTH  padded number of labels, a multiple of 8: the row of an attribute is a whole number of memory sectors
// Padding is 0 and stays 0.
typedef long long i64;
#define ALL 0xffffffffu
#define LANES (WIDTH <= 8 ? 2 : WIDTH <= 16 ? 4 : WIDTH <= 32 ? 8 : WIDTH <= 64 ? 16 : 32)  // threads per row, 4 labels each
#define PARTS ((WIDTH + 4 * LANES - 1) / (4 * LANES))
struct __align__(16) Four { float v[4]; };

// Sums of rows: out[u] = sum_k values_k rows[list_k] over k in [begins[u], begins[u + 1]), with values 1 if null. LANES threads compute a
// unit, in the order of the list: most lists are short and limited by memory latency. For scores, units are tokens and lists their
// attributes. For gradients, units are pieces of an attribute's list of tokens, or of lists of such sums.
extern "C" __global__ void linear_sums(const int* begins, const int* list, const float* values, const float* rows, i64 units,
                                       float* out) {
  const i64 u = ((i64)blockIdx.x * blockDim.x + threadIdx.x) / LANES;
  const int lane = threadIdx.x % LANES, base = threadIdx.x % 32 - lane;
  const int first = u < units ? begins[u] : 0, many = u < units ? begins[u + 1] - first : 0;
  int most = many;  // maximum over the warp: shuffles need all its threads
  for (int d = 16; d; d >>= 1) { const int other = __shfl_xor_sync(ALL, most, d); most = other > most ? other : most; }
  Four sum[PARTS];
#pragma unroll
  for (int v = 0; v < PARTS; v++) sum[v].v[0] = sum[v].v[1] = sum[v].v[2] = sum[v].v[3] = 0;
  int next = lane < many ? list[first + lane] : -1;
  for (int k0 = 0; k0 < most; k0 += LANES) {
    const int mine = next, at = k0 + lane;
    const float value = values && at < many ? values[first + at] : 1.0f;
    next = at + LANES < many ? list[first + at + LANES] : -1;
#pragma unroll
    for (int k = 0; k < LANES; k++) {
      const int which = __shfl_sync(ALL, mine, base + k);
      const float x = values ? __shfl_sync(ALL, value, base + k) : 1.0f;
      const Four* row = (const Four*)(rows + (i64)(which < 0 ? 0 : which) * WIDTH) + lane;
#pragma unroll
      for (int v = 0; v < PARTS; v++)
        if (which >= 0 && 4 * (LANES * v + lane) < WIDTH) {
          const Four got = row[LANES * v];
#pragma unroll
          for (int w = 0; w < 4; w++) sum[v].v[w] += x * got.v[w];
        }
    }
  }
  if (u >= units) return;
#pragma unroll
  for (int v = 0; v < PARTS; v++)
    if (4 * (LANES * v + lane) < WIDTH) ((Four*)(out + u * WIDTH))[LANES * v + lane] = sum[v];
}

// Scatter weights: held[place[k]] = w[k].
extern "C" __global__ void linear_spread(const double* w, const int* place, i64 n, float* held) {
  const i64 k = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (k < n) held[place[k]] = (float)w[k];
}

// Gather gradients: out[k] = held[index[k]].
extern "C" __global__ void linear_collect(const float* held, const int* index, i64 n, double* out) {
  const i64 k = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (k < n) out[k] = (double)held[index[k]];
}

// figures = sum_i w_i l_i and the largest l_i + log w_i, from the log-likelihoods -l_i of sentences. One block of 256 threads.
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
