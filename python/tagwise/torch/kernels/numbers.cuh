// Types, exponentials, warp reductions and batch arguments of all chain kernels. `launching.text` prepends this file to each source.
// Compiled at run time with
//   L      number of labels                  WARPS  ceil(L / 32): threads of a recursion are 32 * WARPS
//   DOUBLE   1: double, 0: float               INPUT  type of the emissions: 0 float, 1 half, 2 bfloat16, 3 double
//   FIRST, EVERY  the positions at which Viterbi scores are renormalised: see `renormalize.py`
// Logarithms are to the base 2 throughout, as in the hardware instructions ex2 and lg2.
typedef long long i64;
#define INF __int_as_float(0x7f800000)
#if DOUBLE
typedef double real;
#define TINY 1e-280
#define LOG2E 1.4426950408889634
#define LOG2E_REST 2.0355273740931033e-17
__device__ __forceinline__ real ex2(real x) { return exp2(x); }
__device__ __forceinline__ real lg2(real x) { return log2(x); }
__device__ __forceinline__ double exact_lg2(real x) { return log2(x); }
__device__ __forceinline__ real nearest(real x) { return rint(x); }
__device__ __forceinline__ real fused(real x, real y, real z) { return fma(x, y, z); }
#else
typedef float real;
#define TINY 1e-30f
#define LOG2E 1.4426950408889634f
#define LOG2E_REST 1.9259629911266175e-8f
__device__ __forceinline__ real ex2(real x) { real y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
__device__ __forceinline__ real lg2(real x) { real y; asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
// log2 of a normal number. The exponent is added in double precision: only the logarithm of the mantissa, below 1, is rounded.
__device__ __forceinline__ double exact_lg2(real x) {
  const int k = __float_as_int(x);
  return (double)log2f(__int_as_float((k & 0x007fffff) | 0x3f800000)) + (double)((k >> 23) - 127);
}
__device__ __forceinline__ real nearest(real x) { return rintf(x); }
__device__ __forceinline__ real fused(real x, real y, real z) { return fmaf(x, y, z); }
#endif

#if INPUT == 1
typedef unsigned short input_t;
__device__ __forceinline__ float to_real(input_t h) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h)); return f; }
__device__ __forceinline__ input_t to_input(real f) { input_t h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"((float)f)); return h; }
#elif INPUT == 2
typedef unsigned short input_t;
__device__ __forceinline__ float to_real(input_t h) { return __int_as_float((int)h << 16); }
__device__ __forceinline__ input_t to_input(real f) {
  unsigned u = __float_as_uint((float)f);
  return (u & 0x7fffffffu) > 0x7f800000u ? 0x7fff : (input_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
#elif INPUT == 3
typedef double input_t;
__device__ __forceinline__ double to_real(input_t x) { return x; }
__device__ __forceinline__ input_t to_input(real x) { return x; }
#else
typedef float input_t;
__device__ __forceinline__ float to_real(input_t x) { return x; }
__device__ __forceinline__ input_t to_input(real x) { return (float)x; }
#endif

struct __align__(16) Quad { real v[4]; };

#define ALL 0xffffffffu
#define LP ((L + 3) / 4 * 4)
#define LANES (32 * WARPS)
#ifndef PREFETCH
#define PREFETCH 8          // tokens whose scores are prefetched
#endif
#ifdef RESIDENT             // minimum number of resident blocks per multiprocessor: more blocks leave fewer registers for each
#define BOUNDS LANES, RESIDENT
#else
#define BOUNDS LANES
#endif
#define ROW (L + 1)      // size of a row of the forward recursion: a_t and m_t
#define SYNC() do { if (WARPS > 1) __syncthreads(); else __syncwarp(); } while (0)

// Maximum that propagates NaN, so that a NaN score makes log Z of its sentence NaN.
__device__ __forceinline__ real larger(real x, real y) { return x > y || x != x ? x : y; }

// Maximum over a warp. Integers have an instruction for it. Floats sort as integers once the lower bits of negatives are flipped.
__device__ __forceinline__ real warp_max(real x) {
#if !DOUBLE && __CUDA_ARCH__ >= 800
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
__device__ __forceinline__ bool is_due(i64 t) { return t >= FIRST && t % EVERY == 0; }
// The amount to subtract in a renormalisation: the best score, or 0 if there is no path or the score has overflowed.
__device__ __forceinline__ real shift(real best) { return best > -INF && best < INF ? best : (real)0; }
__device__ __forceinline__ real bounded(real m) { return m == -INF ? (real)0 : m; }
// Offsets are whole numbers, since sums of whole numbers and differences from them are exact.
__device__ __forceinline__ real whole(real m) { return nearest(bounded(m)); }
// x log2(e) - k, rounded once after the subtraction, and including the part of log2(e) beyond the precision of `real`.
__device__ __forceinline__ real scaled(real x, real k) { return fused(x, LOG2E_REST, fused(x, LOG2E, -k)); }
// The exponent of the maximum over a warp, 0 if all values are 0.
__device__ __forceinline__ real warp_exponent(real x) {
#if DOUBLE
  x = warp_max(x);
  return x > 0 ? (real)ilogb(x) : (real)0;
#elif __CUDA_ARCH__ >= 800
  const int k = __reduce_max_sync(ALL, __float_as_int(x));
  return k > 0 ? (real)((k >> 23) - 127) : (real)0;
#else
  x = warp_max(x);
  return x > 0 ? (real)((__float_as_int(x) >> 23) - 127) : (real)0;
#endif
}

#define CHAIN const input_t* e, i64 eb, i64 et, i64 el, const real* W, const real* start, const real* end, \
              const int* lengths, const i64* places, const i64* tags, i64 tb, i64 tt, i64 B, i64 T
// Sentence b begins at token b * T of all arrays, or at token places[b] if sentences are concatenated.
#define PLACE(b) (places ? places[b] : (i64)(b) * T)
#define FROM(base, b, by_sentence, by_token) ((base) + (places ? places[b] * (by_token) : (i64)(b) * (by_sentence)))
