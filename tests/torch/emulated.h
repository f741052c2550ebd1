// CUDA's built-in names for a C++ compiler. The threads of a block are fibers of one thread, which switch at barriers.
// The compilers of many distributions define _FORTIFY_SOURCE. Its longjmp aborts the process when a fiber is entered,
// because the fiber's stack is below the current one.
#undef _FORTIFY_SOURCE
#include <cmath>
#include <cstdint>
#include <cstring>
#include <csetjmp>
#include <ucontext.h>
#include <vector>

struct Three { unsigned x, y, z; };
static Three threadIdx, blockIdx, blockDim, gridDim;
struct Fiber { ucontext_t context; jmp_buf at; std::vector<char> stack; bool begun, done; Three index; };
struct Gate { int waiting = 0, round = 0, alive = 0; };
static std::vector<Fiber> fibers;
static ucontext_t scheduler;
static jmp_buf turn;
static int current;
static Gate block_gate, warp_gates[32];
static char exchanged[1024][8];

// After its first turn a fiber is entered and left by jumps, which unlike context switches need no system call.
static void give_way() { if (!_setjmp(fibers[current].at)) _longjmp(turn, 1); }
static void open_if_full(Gate& gate) { if (gate.alive && gate.waiting == gate.alive) { gate.waiting = 0; gate.round++; } }
static void pass(Gate& gate) {
  const int round = gate.round;
  gate.waiting++;
  open_if_full(gate);
  while (gate.round == round) give_way();
}
static inline void __syncthreads() { pass(block_gate); }
static inline void __syncwarp() { pass(warp_gates[current / 32]); }
static inline void __threadfence_block() {}
template <class T> static T from_lane(T x, int lane) {
  std::memcpy(exchanged[current], &x, sizeof(T));
  __syncwarp();
  T y;
  std::memcpy(&y, exchanged[current / 32 * 32 + lane], sizeof(T));
  __syncwarp();
  return y;
}
template <class T> static T __shfl_xor_sync(unsigned, T x, int d) { return from_lane(x, (current % 32) ^ d); }
template <class T> static T __shfl_sync(unsigned, T x, int lane) { return from_lane(x, lane); }
static int __reduce_max_sync(unsigned, int x) {
  for (int d = 16; d; d >>= 1) { const int y = __shfl_xor_sync(0u, x, d); x = x > y ? x : y; }
  return x;
}
static bool __any_sync(unsigned, bool x) { return __reduce_max_sync(0u, x) != 0; }
static unsigned __ballot_sync(unsigned, bool x) {
  unsigned all = x ? 1u << (current % 32) : 0u;
  for (int d = 16; d; d >>= 1) all |= __shfl_xor_sync(0u, all, d);
  return all;
}
static int atomicAdd(int* at, int x) { const int was = *at; *at += x; return was; }
static inline int __float_as_int(float x) { int y; std::memcpy(&y, &x, 4); return y; }
static inline unsigned __float_as_uint(float x) { unsigned y; std::memcpy(&y, &x, 4); return y; }
static inline float __int_as_float(int x) { float y; std::memcpy(&y, &x, 4); return y; }

#define __global__
#define __device__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __shared__ static
#define __align__(n) alignas(n)
#define __CUDA_ARCH__ 900

typedef int64_t word;
typedef void (*Body)(word, word, word, word, word, word, word, word, word, word, word, word, word, word, word, word, word, word,
                     word, word, word, word, word, word, word, word, word, word, word, word, word, word, word, word, word, word);
static Body body;
static word a[36];
static void enter() {
  body(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14], a[15], a[16], a[17], a[18], a[19],
       a[20], a[21], a[22], a[23], a[24], a[25], a[26], a[27], a[28], a[29], a[30], a[31], a[32], a[33], a[34], a[35]);
  fibers[current].done = true;
  block_gate.alive--;
  warp_gates[current / 32].alive--;
  open_if_full(block_gate);
  open_if_full(warp_gates[current / 32]);
  _longjmp(turn, 1);
}

// Run all blocks of a grid sequentially. Return 0, or -1 on a deadlock of fibers.
extern "C" int emulate(void* kernel, unsigned gx, unsigned gy, unsigned gz, unsigned threads, const word* given, int many) {
  body = (Body)kernel;
  for (int k = 0; k < 36; k++) a[k] = k < many ? given[k] : 0;
  blockDim = {threads, 1, 1};
  gridDim = {gx, gy, gz};
  fibers.resize(threads);
  static unsigned block;  // static, since a jump can lose local variables
  for (block = 0; block < gx * gy * gz; block++) {
    blockIdx = {block % gx, block / gx % gy, block / gx / gy};
    block_gate = Gate();
    block_gate.alive = threads;
    for (Gate& gate : warp_gates) gate = Gate();
    for (unsigned k = 0; k < threads; k++) {
      Fiber& fiber = fibers[k];
      warp_gates[k / 32].alive++;
      fiber.begun = fiber.done = false;
      fiber.index = {k, 0, 0};
      fiber.stack.resize(1 << 16);
      getcontext(&fiber.context);
      fiber.context.uc_stack.ss_sp = fiber.stack.data();
      fiber.context.uc_stack.ss_size = fiber.stack.size();
      fiber.context.uc_link = &scheduler;
      makecontext(&fiber.context, enter, 0);
    }
    static unsigned left, k, was;
    static int moved;
    left = threads;
    while (left) {
      was = left;
      moved = block_gate.round;
      for (const Gate& gate : warp_gates) moved += gate.round;
      for (k = 0; k < threads; k++) {
        if (fibers[k].done) continue;
        current = k;
        threadIdx = fibers[k].index;
        if (!_setjmp(turn)) {
          if (fibers[k].begun) _longjmp(fibers[k].at, 1);
          fibers[k].begun = true;
          setcontext(&fibers[k].context);
        }
        if (fibers[k].done) left--;
      }
      int after = block_gate.round;
      for (const Gate& gate : warp_gates) after += gate.round;
      if (left == was && moved == after && left) {
        static int idle = 0;
        if (++idle > 3) { idle = 0; return -1; }
      }
    }
  }
  return 0;
}
