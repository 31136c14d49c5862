// Table lookup and its gradient.
//
// The gradient sums, for every row of the table, the rows of dy whose token it is, in token order and without
// atomics. Blocks own ranges of table rows: one pass counts the tokens of each range, the next writes them
// sorted by id, in token order within an id. Sorted tokens are then cut into windows of equal size; a window
// within one id is summed on its own, so that a frequent token is the work of many blocks; and each row of
// the table adds up its windows and the tokens before and after them.
#include <algorithm>

#include "kernels/cuda/common/support.h"
#include "kernels/cuda/common/workspace.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarp;
constexpr int kWindow = 64;  // sorted tokens
constexpr int kEach = 16;    // tokens that a thread looks at in one go
constexpr int kFlight = 8;   // rows of dy on their way at a time

template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Part {
  T at[kCount];
};
template <int kCount, class T>
__device__ __forceinline__ Part<T, kCount> load_part(const T* p) {
  return *reinterpret_cast<const Part<T, kCount>*>(p);
}

// A thread copies kCount neighbours.
template <class From, class To, int kCount>
__global__ void __launch_bounds__(kThreads) embedding(const From* table, const int32_t* ids, To* y,
                                                      int64_t parts, int64_t parts_per_row, int64_t vocab) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= parts) return;
  constexpr int64_t kUnsigned = int64_t{1} << 32;  // a division of 32 bits is much faster
  const int64_t row =
      parts < kUnsigned ? static_cast<uint32_t>(i) / static_cast<uint32_t>(parts_per_row) : i / parts_per_row;
  const int64_t column = (i - row * parts_per_row) * kCount;
  const int64_t id = ids[row];
  const bool inside = id >= 0 && id < vocab;
  Part<To, kCount> to;
  if (inside) {
    const auto from = load_part<kCount>(table + id * parts_per_row * kCount + column);
    for (int j = 0; j < kCount; ++j) store(&to.at[j], load(&from.at[j]));
  } else {
    for (int j = 0; j < kCount; ++j) store(&to.at[j], 0.0f);
  }
  *reinterpret_cast<Part<To, kCount>*>(y + i * kCount) = to;
}

// ---- the gradient

struct Ids {
  const int32_t* ids;
  int tokens, vocab, rows_per_range;

  // The rows of tokens begin .. begin + kEach within the range that begins at row `first`; -1: not of it. How
  // many are.
  __device__ __forceinline__ int rows_in(int64_t begin, int first, int (&rows)[kEach]) const {
    int found = 0;
    for (int i = 0; i < kEach; i += 4) {
      Part<int32_t, 4> four = {{-1, -1, -1, -1}};
      if (begin + i + 4 <= tokens) {
        four = load_part<4>(ids + begin + i);
      } else {
        for (int j = 0; j < 4; ++j)
          if (begin + i + j < tokens) four.at[j] = ids[begin + i + j];
      }
      for (int j = 0; j < 4; ++j) {
        const int id = four.at[j];
        const bool inside = id >= first && id < vocab && id - first < rows_per_range;
        rows[i + j] = inside ? id - first : -1;
        found += inside;
      }
    }
    return found;
  }
};

// counts[range] = tokens of the range.
__global__ void __launch_bounds__(kThreads) count_tokens(Ids t, int* counts) {
  CAIRN_SHARED int scratch[kWarp];
  const int first = static_cast<int>(blockIdx.x) * t.rows_per_range;
  int count = 0, rows[kEach];
  for (int64_t from = threadIdx.x * kEach; from < t.tokens; from += kThreads * kEach)
    count += t.rows_in(from, first, rows);
  count = block_sum(count, scratch);
  if (threadIdx.x == 0) counts[blockIdx.x] = count;
}

// How many of the block's threads before this one bring how much; *total: all of them.
__device__ __forceinline__ int sum_before(int own, int* scratch, int* total) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  int sum = own;
  for (int by = 1; by < kWarp; by *= 2) {
    const int other = __shfl_sync(kAllLanes, sum, lane >= by ? lane - by : lane);
    if (lane >= by) sum += other;
  }
  if (lane == kWarp - 1) scratch[warp] = sum;
  __syncthreads();
  int before = 0;
  *total = 0;
  for (int w = 0; w < kWarps; ++w) {
    if (w < warp) before += scratch[w];
    *total += scratch[w];
  }
  __syncthreads();
  return before + sum - own;
}

// starts[v] = where the tokens of row v begin in `sorted`. `found`: row and token of each, for the steps
// between.
__global__ void __launch_bounds__(kThreads)
    sort_tokens(Ids t, const int* counts, int2* found, int* sorted, int* starts) {
  constexpr int kTile = 1024;
  CAIRN_SHARED int scratch[kWarp];
  CAIRN_SHARED int tile[kTile];
  const int first = static_cast<int>(blockIdx.x) * t.rows_per_range;
  int begin = 0, total;
  for (unsigned b = threadIdx.x; b < blockIdx.x; b += kThreads) begin += counts[b];
  begin = block_sum(begin, scratch);
  const int count = counts[blockIdx.x];
  // The range's tokens with their rows, in token order.
  int at = begin;
  for (int64_t from = 0; from < t.tokens; from += kThreads * kEach) {
    int rows[kEach];
    const int64_t mine = from + static_cast<int64_t>(threadIdx.x) * kEach;
    const int own = t.rows_in(mine, first, rows);
    int to = at + sum_before(own, scratch, &total);
    for (int j = 0; j < kEach; ++j)
      if (rows[j] >= 0) found[to++] = make_int2(rows[j], static_cast<int>(mine) + j);
    at += total;
  }
  __syncthreads();
  if (t.rows_per_range == 1) {
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads)
      sorted[begin + i] = found[begin + i].y;
    if (threadIdx.x != 0) return;
    starts[first] = begin;
    if (first == t.vocab - 1) starts[t.vocab] = begin + count;
    return;
  }
  // A thread per row counts its tokens, then places them.
  const int row = static_cast<int>(threadIdx.x);
  int own = 0;
  for (int from = 0; from < count; from += kTile) {
    const int n = count - from < kTile ? count - from : kTile;
    for (int i = static_cast<int>(threadIdx.x); i < n; i += kThreads) tile[i] = found[begin + from + i].x;
    __syncthreads();
    for (int i = 0; i < n; ++i) own += tile[i] == row;
    __syncthreads();
  }
  int to = begin + sum_before(own, scratch, &total);
  if (row < t.rows_per_range && first + row < t.vocab) starts[first + row] = to;
  if (first + row == t.vocab - 1 && row < t.rows_per_range) starts[t.vocab] = begin + count;
  for (int from = 0; from < count; from += kTile) {
    const int n = count - from < kTile ? count - from : kTile;
    for (int i = static_cast<int>(threadIdx.x); i < n; i += kThreads) tile[i] = found[begin + from + i].x;
    __syncthreads();
    for (int i = 0; i < n; ++i)
      if (tile[i] == row) sorted[to++] = found[begin + from + i].y;
    __syncthreads();
  }
}

// Adds rows sorted[begin .. end) of dy, in this order, several of them on their way at a time.
template <class T, int kCount>
__device__ __forceinline__ void add_tokens(const T* dy, int64_t columns, int64_t column, const int* sorted,
                                           int begin, int end, float (&sums)[kCount]) {
  int i = begin;
  for (; i + kFlight <= end; i += kFlight) {
    Part<T, kCount> parts[kFlight];
    for (int j = 0; j < kFlight; ++j) parts[j] = load_part<kCount>(dy + sorted[i + j] * columns + column);
    for (int j = 0; j < kFlight; ++j)
      for (int c = 0; c < kCount; ++c) sums[c] += load(&parts[j].at[c]);
  }
  for (; i < end; ++i) {
    const auto part = load_part<kCount>(dy + sorted[i] * columns + column);
    for (int c = 0; c < kCount; ++c) sums[c] += load(&part.at[c]);
  }
}

// A block per window and slice of columns: the sum of a window whose tokens all have the same id.
template <class T, int kCount>
__global__ void __launch_bounds__(kThreads)
    sum_windows(const T* dy, const int32_t* ids, const int* sorted, const int* starts, int vocab,
                int64_t columns, float* windows) {
  const int begin = static_cast<int>(blockIdx.x) * kWindow;
  const int64_t column = (static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x) * kCount;
  if (begin + kWindow > starts[vocab] || column >= columns) return;  // the last tokens are no whole window
  if (ids[sorted[begin]] != ids[sorted[begin + kWindow - 1]]) return;
  float sums[kCount];
  for (int c = 0; c < kCount; ++c) sums[c] = 0;
  add_tokens<T, kCount>(dy, columns, column, sorted, begin, begin + kWindow, sums);
  Part<float, kCount> out;
  for (int c = 0; c < kCount; ++c) out.at[c] = sums[c];
  *reinterpret_cast<Part<float, kCount>*>(windows + static_cast<int64_t>(blockIdx.x) * columns + column) =
      out;
}

// A block per row of the table and slice of columns.
template <class T, int kCount>
__global__ void __launch_bounds__(kThreads)
    sum_rows(const T* dy, const int* sorted, const int* starts, int64_t columns, const float* windows,
             float* table, bool accumulate) {
  const int64_t column = (static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x) * kCount;
  if (column >= columns) return;
  const int begin = starts[blockIdx.x], end = starts[blockIdx.x + 1];
  if (begin == end && accumulate) return;
  float sums[kCount];
  for (int c = 0; c < kCount; ++c) sums[c] = 0;
  const int first = (begin + kWindow - 1) / kWindow, last = end / kWindow;  // whole windows: [first, last)
  if (first >= last) {
    add_tokens<T, kCount>(dy, columns, column, sorted, begin, end, sums);
  } else {
    add_tokens<T, kCount>(dy, columns, column, sorted, begin, first * kWindow, sums);
    int w = first;
    for (; w + kFlight <= last; w += kFlight) {
      Part<float, kCount> parts[kFlight];
      for (int j = 0; j < kFlight; ++j)
        parts[j] = load_part<kCount>(windows + static_cast<int64_t>(w + j) * columns + column);
      for (int j = 0; j < kFlight; ++j)
        for (int c = 0; c < kCount; ++c) sums[c] += parts[j].at[c];
    }
    for (; w < last; ++w) {
      const auto part = load_part<kCount>(windows + static_cast<int64_t>(w) * columns + column);
      for (int c = 0; c < kCount; ++c) sums[c] += part.at[c];
    }
    add_tokens<T, kCount>(dy, columns, column, sorted, last * kWindow, end, sums);
  }
  auto* to =
      reinterpret_cast<Part<float, kCount>*>(table + static_cast<int64_t>(blockIdx.x) * columns + column);
  Part<float, kCount> out;
  if (accumulate) out = *to;
  for (int c = 0; c < kCount; ++c) out.at[c] = accumulate ? out.at[c] + sums[c] : sums[c];
  *to = out;
}

bool is_ids(const TensorDesc& d) { return d.dtype == DType::kI32 && d.packed_bytes == 0; }

}  // namespace

std::unique_ptr<Kernel> make_embedding(const Signature& s) {
  if (!fast_float(s.in[0]) || !is_ids(s.in[1]) || !fast_float(s.out[0])) return nullptr;
  const int64_t vocab = s.in[0].shape[0], columns = s.in[0].shape.last(), rows = s.in[1].shape.elements();
  return with_float(s.in[0].dtype, [&](auto from) {
    return with_float(s.out[0].dtype, [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      const bool fours = columns % 4 == 0;
      const int64_t per_row = fours ? columns / 4 : columns, parts = rows * per_row;
      return make_kernel([=](const Call& call) {
        launch(stream_of(call), fours ? embedding<From, To, 4> : embedding<From, To, 1>,
               {.blocks = (parts + kThreads - 1) / kThreads, .threads = kThreads}, input<const From>(call, 0),
               input<const int32_t>(call, 1), output<To>(call, 0), parts, per_row, vocab);
      });
    });
  });
}

std::unique_ptr<Kernel> make_embedding_grad(const Signature& s) {
  if (!is_ids(s.in[0]) || !fast_float(s.in[1]) || !plain_f32(s.out[0])) return nullptr;
  constexpr int64_t kMaxInt = (int64_t{1} << 31) - 1 - kEach * kThreads;
  const int64_t vocab = s.out[0].shape[0], columns = s.out[0].shape.last(), tokens = s.in[0].shape.elements();
  if (tokens > kMaxInt || vocab > kMaxInt) return nullptr;
  // Few rows per range for small tables, so that many blocks sort; at most a thread per row.
  const int64_t per_range = std::min<int64_t>(kThreads, (vocab + 263) / 264);
  const int64_t ranges = (vocab + per_range - 1) / per_range;
  const bool fours = columns % 4 == 0;
  const int64_t items = fours ? columns / 4 : columns;
  const int64_t threads = std::min<int64_t>(kThreads, (items + kWarp - 1) / kWarp * kWarp);
  const int64_t slices = (items + threads - 1) / threads, windows = tokens / kWindow;
  if (slices > 65535) return nullptr;
  Workspace space;
  const int64_t counts_at = space.add(ranges * 4), found_at = space.add(tokens * 8),
                sorted_at = space.add(tokens * 4);
  const int64_t starts_at = space.add((vocab + 1) * 4), windows_at = space.add(windows * columns * 4);
  return with_float(s.in[1].dtype, [&](auto zero) {
    using T = decltype(zero);
    return make_kernel(
        [=](const Call& call) {
          const cudaStream_t stream = stream_of(call);
          const Ids ids{input<const int32_t>(call, 0), static_cast<int>(tokens), static_cast<int>(vocab),
                        static_cast<int>(per_range)};
          const T* dy = input<const T>(call, 1);
          auto *counts = Workspace::at<int>(call, counts_at), *sorted = Workspace::at<int>(call, sorted_at),
               *starts = Workspace::at<int>(call, starts_at);
          auto* sums = Workspace::at<float>(call, windows_at);
          const LaunchSize sort{.blocks = ranges, .threads = kThreads};
          launch(stream, count_tokens, sort, ids, counts);
          launch(stream, sort_tokens, sort, ids, counts, Workspace::at<int2>(call, found_at), sorted, starts);
          launch(stream, fours ? sum_windows<T, 4> : sum_windows<T, 1>,
                 {.blocks = windows, .threads = static_cast<int>(threads), .blocks_y = slices}, dy, ids.ids,
                 sorted, starts, ids.vocab, columns, sums);
          launch(stream, fours ? sum_rows<T, 4> : sum_rows<T, 1>,
                 {.blocks = vocab, .threads = static_cast<int>(threads), .blocks_y = slices}, dy, sorted,
                 starts, columns, sums, output<float>(call, 0), accumulates(call, 0));
        },
        space.bytes());
  });
}

}  // namespace cairn::kernels::cuda
