// Forward-backward recursions of linear chains for every type and number of labels. `numbers.cuh` is prepended.
//
//   a_t(j) = e_t(j) + log sum_i exp(a_{t-1}(i) - m_t + W(i, j)),     a_0 = start + e_0, m_t arbitrary but near the maximum
//   b_{t-1}(i) = log sum_j exp(W(i, j) + e_t(j) + b_t(j) - m'_t),    b_last = end
//   log Z = log sum_j exp(a_last(j) + end(j)) + sum_t m_t
//
// Each thread is a state and keeps its column of exp(W) in registers. The vector exp(a - m) is exchanged through shared
// memory. It is s * exp(e + c - m), s the last sum, so that no logarithm or maximum is needed between two sums. m_t is the
// largest score of the token plus the largest exponent of the last vector. Both are known one step ahead, and both are
// whole numbers: their sums are exact for sentences of any length, and log Z is as exact as the vector. A sum below TINY
// may have lost everything to underflow. It is computed again in logarithms (`careful`), so that every range of scores
// is supported and only rounding errors remain.
struct Round {  // the vector of a step in two buffers, so that one barrier per step is enough, and the m of each warp
  Quad x[2][LANES > LP ? LANES / 4 : LP / 4];
  real tops[2][WARPS];
};

// State of a thread: the column of exp(W), its element x = exp(v - m) of the vector, and the m of its warp.
struct Walk {
  real column[LP], columns_top, x, m;
  const real* weights;
  i64 near_;
  int j;

  __device__ __forceinline__ void begin(const real* W, bool backward) {
    j = threadIdx.x;
    weights = W + j * (backward ? L : 1);
    near_ = backward ? 1 : L;
    columns_top = -INF;
#pragma unroll
    for (int i = 0; i < LP; i++) {
      column[i] = j < L && i < L ? weights[i * near_] : -INF;
      columns_top = larger(columns_top, column[i]);
    }
    columns_top = whole(columns_top * LOG2E);
#pragma unroll
    for (int i = 0; i < LP; i++) column[i] = ex2(scaled(column[i], columns_top));
  }

  // Set x and m from the logarithms v + rest and the scores of a token.
  __device__ __forceinline__ void enter(real v, real rest, real score) {
    m = whole(warp_max(v + score * LOG2E));
    const real near_v = whole(v);
    x = j < L ? ex2((v - near_v) + rest + scaled(score, m - near_v)) : (real)0;
  }

  // One step: publish x and the m of this warp, and return the sum, relative to the m in `top`.
  __device__ __forceinline__ real sum(Round& round, int p, real& top) {
    ((real*)round.x[p])[j] = x;
    if (WARPS > 1 && j % 32 == 0) round.tops[p][j / 32] = m;
    SYNC();
    if (WARPS == 1) {
      top = m;
      real s[4] = {0, 0, 0, 0};
#pragma unroll
      for (int i = 0; i < LP / 4; i++) {
        const Quad q = round.x[p][i];
#pragma unroll
        for (int u = 0; u < 4; u++) s[u] += q.v[u] * column[4 * i + u];
      }
      return (s[0] + s[1]) + (s[2] + s[3]);
    }
    top = round.tops[p][0];
#pragma unroll
    for (int v = 1; v < WARPS; v++) top = larger(top, round.tops[p][v]);
    real all = 0;
#pragma unroll
    for (int v = 0; v < WARPS; v++) {
      real s[4] = {0, 0, 0, 0};
#pragma unroll
      for (int i = 0; i < 8; i++)
        if (8 * v + i < LP / 4) {
          const Quad q = round.x[p][8 * v + i];
#pragma unroll
          for (int u = 0; u < 4; u++) s[u] += q.v[u] * column[32 * v + 4 * i + u < LP ? 32 * v + 4 * i + u : 0];
        }
      all += ((s[0] + s[1]) + (s[2] + s[3])) * ex2(round.tops[p][v] - top);
    }
    return all;
  }

  // Return log sum_i exp(v(i) - top + W(i)), computed in logarithms. v is `from`, backward plus the scores of the token.
  __device__ __noinline__ real careful(const real* from, const input_t* scores, i64 el, real top) const {
    real m = -INF, s = 0;
    for (int i = 0; i < L; i++)
      m = larger(m, from[i] + (scores ? (real)to_real(scores[i * el]) * LOG2E : (real)0) + weights[i * near_] * LOG2E);
    if (m == -INF) return -INF;
    for (int i = 0; i < L; i++)
      s += ex2(from[i] + (scores ? (real)to_real(scores[i * el]) * LOG2E : (real)0) + weights[i * near_] * LOG2E - m);
    return lg2(s) + m - top;
  }
};

// Return log sum_j x_j exp(end_j) for a vector x = exp(v - m), computed from the logarithms v if it may have underflowed. All threads of a
// block get the result.
__device__ double ended(const Walk& at, real v, const real* end, real* shared, double* sums) {
  const int j = threadIdx.x;
  const real last = j < L ? end[j] : -INF, high = whole(warp_max(last * LOG2E));
  real top = at.m + high, s = warp_sum(at.x * ex2(scaled(last, high)));
  if (WARPS > 1) {
    __syncthreads();
    if (j % 32 == 0) { shared[j / 32] = top; sums[j / 32] = s; }
    __syncthreads();
    for (int w = 0; w < WARPS; w++) top = larger(top, shared[w]);
    s = 0;
    for (int w = 0; w < WARPS; w++) s += (real)sums[w] * ex2(shared[w] - top);
    __syncthreads();
  }
  if (s >= (real)TINY) return exact_lg2(s) + (double)top;
  v = j < L ? v + last * LOG2E : -INF;
  top = warp_max(v);
  if (WARPS > 1) {
    if (j % 32 == 0) shared[j / 32] = top;
    __syncthreads();
    for (int w = 0; w < WARPS; w++) top = larger(top, shared[w]);
    __syncthreads();
  }
  if (top == -INF || top != top) return (double)top;
  s = warp_sum(ex2(v - top));
  if (WARPS > 1) {
    if (j % 32 == 0) shared[j / 32] = s;
    __syncthreads();
    s = 0;
    for (int w = 0; w < WARPS; w++) s += shared[w];
  }
  return exact_lg2(s) + (double)top;
}

// Run the recursion over tokens [first, stop) of a sentence, forward, or backward from stop - 1 down to first. `v` and `rest` are the
// initial logarithms and their rounding errors. Forward they are start if `fresh`, otherwise those of the token before (also in
// `entry`). Backward they are those of token stop - 1. Return the last logarithms and add the m's to `offset`. Rows of logarithms are
// `width` apart, or only the last two are kept (RING). A forward row is followed by m_t. For the token after `entry` this is infinity,
// since another block writes the row before it, with another offset.
template <bool BACKWARD, bool RING>
__device__ __forceinline__ real walk(Walk& at, Round& round, bool fresh, real v, real rest, const real* entry, const input_t* e,
                                     i64 et, i64 el, i64 first, i64 stop, real* rows, double& offset) {
  const int j = threadIdx.x;
  const i64 width = BACKWARD ? L : ROW, ahead = BACKWARD ? -et : et;
  const i64 origin = BACKWARD ? stop - 1 : first;
  const bool own = j < L, writes = BACKWARD ? own : j <= L;
  const input_t* token = e + origin * et + (own ? j : 0) * el;  // score of this state at the current token
  real* row = rows + (RING ? 0 : origin * width) + j;
  const i64 on = RING ? 0 : BACKWARD ? -width : width;
  i64 n = stop - first, k = 0;
  real top = 0;
  if (BACKWARD || fresh) {  // nothing to sum yet
    const real score = own ? (real)to_real(*token) : -INF;
    if (BACKWARD && own) row[0] = v;
    at.enter(v, rest, score);
    v += score * LOG2E;
    if (!BACKWARD && own) row[0] = v;
    if (!BACKWARD && j == 0) row[L] = 0;
    token += ahead;
    row += on;
    k = 1;
  } else {
    at.enter(v, rest, 0);
  }
  input_t next[PREFETCH];
#pragma unroll
  for (int u = 0; u < PREFETCH; u++) next[u] = token[(k + u < n ? u : 0) * ahead];
  const int parity = (int)(k & 1);
  for (; k < n; k += PREFETCH) {
    real psi[PREFETCH], high[PREFETCH], now[PREFETCH];
#pragma unroll
    for (int u = 0; u < PREFETCH; u++) now[u] = own ? (real)to_real(next[u]) : -INF;
    const input_t* later = token + PREFETCH * ahead;
#pragma unroll
    for (int u = 0; u < PREFETCH; u++) next[u] = *(k + PREFETCH + u < n ? later + u * ahead : token);
#pragma unroll
    for (int u = 0; u < PREFETCH; u++) {
      high[u] = whole(warp_max(now[u] * LOG2E + at.columns_top));
      psi[u] = ex2(scaled(now[u], high[u] - at.columns_top));
      now[u] *= LOG2E;
    }
    real tops = 0;
#pragma unroll
    for (int u = 0; u < PREFETCH; u++) {
      if (k + u >= n) break;
      real past = high[u];
      if (u % 4 == 3) {  // move the vector's exponent to m before it over- or underflows
        const real drift = warp_exponent(at.x), small = drift > 60 ? (real)60 : drift < -60 ? (real)-60 : drift;
        psi[u] *= ex2(-small);
        past += small;
      }
      const real s = at.sum(round, u & 1, top);
      real grown = lg2(s) + at.columns_top;
      at.x = s * psi[u];
      if (__any_sync(ALL, own && !(s >= (real)TINY))) {
        if (own && !(s >= (real)TINY)) {
          const real* from = k + u ? (RING ? rows + ((parity + u + 1) & 1) * width : row - j - on) : entry;
          grown = at.careful(from, BACKWARD ? token - ahead - j * el : (const input_t*)0, el, top);
          at.x = ex2(grown + now[u] - past);
        }
      }
      tops += top;
      v = grown + now[u];
      real* const to = RING ? rows + ((parity + u) & 1) * width + j : row;
      if (writes) *to = BACKWARD ? grown : j < L ? v : k + u ? top : INF;
      if (!BACKWARD && L == LANES && j == 0) to[L] = k + u ? top : INF;
      at.m = past;
      token += ahead;
      row += on;
    }
    offset += (double)tops;
  }
  return v;
}

// Return, to thread 0, the score of the tags of tokens [first, stop), summed in a fixed order. An invalid tag makes it NaN and is not used
// as an index.
__device__ double tags_score(const input_t* e, i64 et, i64 el, const real* W, const real* start, const real* end,
                             const i64* y, i64 tt, i64 first, i64 stop, i64 n, double* shared) {
  double sum = 0;
  for (i64 t = first + threadIdx.x; t < stop; t += LANES) {
    const i64 here = y[t * tt], was = t ? y[(t - 1) * tt] : 0;
    if (here < 0 || here >= L || was < 0 || was >= L) { sum += (double)INF - (double)INF; continue; }
    sum += (double)to_real(e[t * et + here * el]) + (double)(t ? W[was * L + here] : start[here]) + (t == n - 1 ? (double)end[here] : 0.0);
  }
  sum = warp_sum(sum);
  if (WARPS == 1) return sum;
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int w = 0; w < WARPS; w++) sum += shared[w];
  return sum;
}

// Return x log2(e), and its rounding error in `rest`.
__device__ __forceinline__ real in_two(real x, real& rest) {
  const real v = x * LOG2E;
  rest = v > -INF ? scaled(x, v) : (real)0;
  return v;
}

// Both recursions and the value, written as a double to `exact` if that is given. Blocks: sentences x pieces, and (forward, backward). With
// several pieces, `entries` (2, B, pieces, L) and `offsets` (B, pieces) of `chain_join` are their initial values, and `parts` has the scores
// of the tags.
extern "C" __global__ void __launch_bounds__(BOUNDS) chain_forward(CHAIN, real* A, real* R, real* value, double* exact, i64 piece,
                                                                   i64 pieces, const real* entries, const double* offsets,
                                                                   const double* parts) {
  const int b = blockIdx.x / pieces, p = blockIdx.x % pieces, backward = blockIdx.y, j = threadIdx.x;
  const i64 n = lengths ? lengths[b] : T, first = p * piece, stop = first + piece < n ? first + piece : n;
  if (n <= 0 && p == 0 && !backward && j == 0) { if (exact) exact[b] = 0; else value[b] = 0; }
  if (first >= n) return;
  __shared__ Round round;
  __shared__ real some[WARPS];
  __shared__ double sums[WARPS];
  if (LP > LANES && j < LP - LANES) ((real*)round.x[0])[LANES + j] = ((real*)round.x[1])[LANES + j] = 0;
  Walk at;
  at.begin(W, backward);
  const bool fresh = p == 0;
  const real* entry = entries ? entries + ((backward * B + b) * pieces + p) * L : 0;
  real v = -INF, rest = 0;
  if (j < L) v = entry && (backward || !fresh) ? entry[j] : in_two(backward ? end[j] : start[j], rest);
  const input_t* scores = FROM(e, b, eb, et);
  double offset = !backward && !fresh ? offsets[b * pieces + p] : 0.0;
  if (backward) {
    walk<true, false>(at, round, fresh, v, rest, entry, scores, et, el, first, stop, R + PLACE(b) * L, offset);
    return;
  }
  v = walk<false, false>(at, round, fresh, v, rest, entry, scores, et, el, first, stop, A + PLACE(b) * ROW, offset);
  if (stop < n) return;
  const double z = ended(at, v, end, some, sums);
  double scored = 0;
  if (tags && !parts) scored = tags_score(scores, et, el, W, start, end, FROM(tags, b, tb, tt), tt, 0, n, n, sums);
  if (j) return;
  if (tags && parts) for (int q = 0; q <= p; q++) scored += parts[b * pieces + q];
  const double logs = (z + offset) * 0.6931471805599453, found = z == -(double)INF ? z : tags ? scored - logs : logs;
  if (exact) exact[b] = found; else value[b] = (real)found;
}

// Transfer matrix of each piece of a long sentence: row r has the log sums over paths from label r before the piece to each label at its
// end. Blocks: sentences x pieces x rows. The first piece has one row, which begins with start. K (B, pieces, L, L) is relative to `shift`
// (B, pieces, L).
extern "C" __global__ void __launch_bounds__(LANES) chain_matrices(CHAIN, i64 piece, i64 pieces, real* K, double* shift,
                                                                    real* scratch, double* parts) {
  const int r = blockIdx.x % L, j = threadIdx.x;
  const i64 which = blockIdx.x / L, b = which / pieces, p = which % pieces;
  const i64 n = lengths ? lengths[b] : T, first = p * piece, stop = first + piece < n ? first + piece : n;
  if (first >= n || (p == 0 && r)) return;
  __shared__ Round round;
  __shared__ double sums[WARPS];
  if (LP > LANES && j < LP - LANES) ((real*)round.x[0])[LANES + j] = ((real*)round.x[1])[LANES + j] = 0;
  Walk at;
  at.begin(W, false);
  real* rows = scratch + (i64)blockIdx.x * 3 * ROW;
  real rest = 0;
  const real v = j >= L ? -INF : p == 0 ? in_two(start[j], rest) : j == r ? (real)0 : -INF;
  if (j < L) rows[2 * ROW + j] = v;
  SYNC();
  double offset = 0;
  const input_t* scores = FROM(e, b, eb, et);
  const real out = walk<false, true>(at, round, p == 0, v, rest, rows + 2 * ROW, scores, et, el, first, stop, rows, offset);
  if (j < L) K[(which * L + r) * L + j] = out;
  if (j == 0) shift[which * L + r] = offset;
  if (tags && r == 0) {
    const double sum = tags_score(scores, et, el, W, start, end, FROM(tags, b, tb, tt), tt, first, stop, n, sums);
    if (j == 0) parts[which] = sum;
  }
}

// Initial values of each piece, from the transfer matrices. Blocks: sentences x (forward, backward).
extern "C" __global__ void __launch_bounds__(LANES) chain_join(const int* lengths, i64 B, i64 T, const real* end, i64 piece,
                                                                i64 pieces, const real* K, const double* shift, real* entries,
                                                                double* offsets) {
  const int b = blockIdx.x, backward = blockIdx.y, j = threadIdx.x;
  const i64 n = lengths ? lengths[b] : T, many = (n + piece - 1) / piece;
  if (many <= 0) return;
  __shared__ real from[L];
  __shared__ double place[L];
  real* out = entries + (backward * B + b) * pieces * L;
  const real* matrix = K + b * pieces * L * L;
  const double* shifts = shift + b * pieces * L;
  double offset = backward ? 0 : shifts[0];
  real v = j < L ? (backward ? end[j] * LOG2E : matrix[j]) : -INF;
  for (i64 k = 1; k <= many; k++) {
    const i64 p = backward ? many - k : k;
    if (p < many && j < L) out[p * L + j] = v;
    if (!backward && p < many && j == 0) offsets[b * pieces + p] = offset;
    if (k == many) break;
    if (j < L) { from[j] = v; place[j] = shifts[p * L + j]; }
    __syncthreads();
    double low = place[0];
    for (int i = 1; i < L; i++) low = place[i] > low ? place[i] : low;
    real m = -INF, s = 0;
    if (j < L) {
      for (int i = 0; i < L; i++) {
        const real x = backward ? matrix[(p * L + j) * L + i] + from[i] : matrix[(p * L + i) * L + j] + from[i] + (real)(place[i] - low);
        m = larger(m, x);
      }
      if (m > -INF)
        for (int i = 0; i < L; i++) {
          const real x = backward ? matrix[(p * L + j) * L + i] + from[i] : matrix[(p * L + i) * L + j] + from[i] + (real)(place[i] - low);
          s += ex2(x - m);
        }
      v = m > -INF ? lg2(s) + m + (backward ? (real)(place[j] - low) : (real)0) : m;
    }
    offset += low;
    // Move the maximum to the offset, so that numbers stay near 0.
    __syncthreads();
    if (j < L) from[j] = v;
    __syncthreads();
    real top = from[0];
    for (int i = 1; i < L; i++) top = larger(top, from[i]);
    top = bounded(top);
    v -= top;
    offset += (double)top;
    __syncthreads();
  }
}
