// Scores of tokens from the weights of their attributes, and the way back. Compiled at run time with
//   L      number of labels            WIDTH  labels of a row, a multiple of 32: an attribute's row is whole lines
// Rows of weights and of tokens' scores are WIDTH floats; what is beyond L is 0 and stays so.
typedef long long i64;
#define ALL 0xffffffffu
#define PARTS (WIDTH / 32)

// scores[t] = sum of the rows of token t's attributes, times their values where these are not all 1. A warp a token; in the
// order of the attributes.
extern "C" __global__ void linear_scores(const int* pointers, const int* ids, const float* values, const float* rows, i64 tokens,
                                         float* scores) {
  const i64 t = (i64)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (t >= tokens) return;
  float sum[PARTS];
#pragma unroll
  for (int v = 0; v < PARTS; v++) sum[v] = 0;
  const int first = pointers[t], stop = pointers[t + 1];
  for (int k0 = first; k0 < stop; k0 += 32) {
    const int many = stop - k0 < 32 ? stop - k0 : 32;
    const int mine = lane < many ? ids[k0 + lane] : 0;
    const float value = lane < many ? (values ? values[k0 + lane] : 1.0f) : 0.0f;
#pragma unroll 4
    for (int k = 0; k < many; k++) {
      const float* row = rows + (i64)__shfl_sync(ALL, mine, k) * WIDTH + lane;
      const float x = __shfl_sync(ALL, value, k);
#pragma unroll
      for (int v = 0; v < PARTS; v++) sum[v] += x * row[32 * v];
    }
  }
#pragma unroll
  for (int v = 0; v < PARTS; v++) scores[t * WIDTH + 32 * v + lane] = sum[v];
}

// Sums of rows: out[u] = sum_k values_k rows[list_k] over k in [begins[u], begins[u + 1]). A warp a unit, in the order of the list; a
// list of NULL is k itself. Long lists are cut into units whose sums are summed by another call.
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
    const int mine = lane < many ? (list ? list[k0 + lane] : k0 + lane) : 0;
    const float value = lane < many ? (values ? values[k0 + lane] : 1.0f) : 0.0f;
#pragma unroll 4
    for (int k = 0; k < many; k++) {
      const float* row = rows + (i64)__shfl_sync(ALL, mine, k) * WIDTH + lane;
      const float x = __shfl_sync(ALL, value, k);
#pragma unroll
      for (int v = 0; v < PARTS; v++) sum[v] += x * row[32 * v];
    }
  }
#pragma unroll
  for (int v = 0; v < PARTS; v++) out[u * WIDTH + 32 * v + lane] = sum[v];
}
