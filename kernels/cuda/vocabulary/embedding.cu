// Table lookup and its gradient.
//
// The gradient sums, for every row of the table, the rows of dy whose token it is, in token order and without
// atomics. Blocks own ranges of table rows: each counts the tokens of the ranges before its own, and writes its own
// sorted by id, in token order within an id. Sorted tokens are then cut into windows of equal size; a window
// within one id is summed on its own, so that a frequent token is the work of many blocks; and each row of
// the table adds up its windows and the tokens before and after them.
#include <algorithm>

#include "kernels/cuda/common/long_sum.h"
#include "kernels/cuda/common/support.h"
#include "kernels/cuda/common/workspace.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kThreads = 256, kSortThreads = 512;
constexpr int kTile = 1024;  // tokens in shared memory
constexpr int kWindow = 64;  // sorted tokens
constexpr int kEach = 8;     // tokens that a thread looks at in one go
constexpr int kFlight = 8;   // rows of dy on their way at a time
constexpr int kRows = 8;     // of the table, of one block
// Windows of a row: so many are one chain of additions, more go to a total by blocks.
constexpr int kChainWindows = 64, kBlockWindows = 32;

template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Part {
  T at[kCount];
};
template <int kCount, class T>
__device__ __forceinline__ Part<T, kCount> load_part(const T* p) {
  return *reinterpret_cast<const Part<T, kCount>*>(p);
}

// Rows of a table that has those from `first` on of a larger one.
struct TableRows {
  int64_t first, count;
};

// A thread copies kLookups times kCount neighbours, a block's width apart. Tokens of other rows get zeros, or (kPart) what
// `before` has, if that is there.
template <class From, class To, int kCount, int kLookups, bool kPart>
__global__ void __launch_bounds__(kThreads)
    embedding(const From* __restrict__ table, const int32_t* __restrict__ ids, const To* __restrict__ before,
              To* __restrict__ y, int64_t parts, int64_t parts_per_row, TableRows rows) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * (kLookups * kThreads) + threadIdx.x;
  constexpr int64_t kUnsigned = int64_t{1} << 32;  // a division of 32 bits is much faster
  int64_t columns[kLookups], id[kLookups];
  for (int u = 0; u < kLookups; ++u) {
    const int64_t i = first + u * kThreads;
    const int64_t row = parts < kUnsigned ? static_cast<uint32_t>(i) / static_cast<uint32_t>(parts_per_row)
                                          : i / parts_per_row;
    columns[u] = (i - row * parts_per_row) * kCount;
    id[u] = i < parts ? ids[row] - (kPart ? rows.first : 0) : -1;
  }
  Part<From, kCount> from[kLookups];
  for (int u = 0; u < kLookups; ++u) {
    for (int j = 0; j < kCount; ++j) store(&from[u].at[j], 0.0f);
    if (id[u] >= 0 && id[u] < rows.count)
      from[u] = load_part<kCount>(table + id[u] * parts_per_row * kCount + columns[u]);
  }
  for (int u = 0; u < kLookups; ++u) {
    const int64_t i = first + u * kThreads;
    if (i >= parts) return;
    Part<To, kCount> to;
    for (int j = 0; j < kCount; ++j) store(&to.at[j], load(&from[u].at[j]));
    if (kPart && before != nullptr && (id[u] < 0 || id[u] >= rows.count))
      to = load_part<kCount>(before + i * kCount);
    *reinterpret_cast<Part<To, kCount>*>(y + i * kCount) = to;
  }
}

// ---- the gradient

// Sorted tokens are numbered as those of all rows would be, whichever rows of the table these are: so are windows cut.
struct Ids {
  const int32_t* ids;
  int tokens;
  int first, end;  // ids of the table's rows
  int rows_per_range;

  // Of tokens begin .. begin + 4; -1 after the last one.
  __device__ __forceinline__ Part<int32_t, 4> four(int begin) const {
    Part<int32_t, 4> four = {{-1, -1, -1, -1}};
    if (begin + 4 <= tokens) return load_part<4>(ids + begin);
    for (int j = 0; j < 4; ++j)
      if (begin + j < tokens) four.at[j] = ids[begin + j];
    return four;
  }
  __device__ __forceinline__ void look(int begin, int (&to)[kEach]) const {
    for (int i = 0; i < kEach; i += 4) {
      const Part<int32_t, 4> part = four(begin + i);
      for (int j = 0; j < 4; ++j) to[i + j] = part.at[j];
    }
  }
  // How many of the block's tokens that this thread looks at have ids before `row`.
  __device__ __forceinline__ int before(int row) const {
    constexpr int kLots = 4, kStep = kSortThreads * 4;
    int count = 0;
    for (int from = static_cast<int>(threadIdx.x) * 4; from < tokens; from += kLots * kStep) {
      Part<int32_t, 4> parts[kLots];
      for (int l = 0; l < kLots; ++l) parts[l] = four(from + l * kStep);
      for (int l = 0; l < kLots; ++l)
        for (int j = 0; j < 4; ++j)
          count += static_cast<unsigned>(parts[l].at[j]) < static_cast<unsigned>(row);
    }
    return count;
  }
};

// `found` holds the tokens of the block's range of rows, each with its row in the range. They are copied to shared memory a tile at
// a time, and every thread calls body(row, token) for each, in the order of tokens. Warps that have no row call nothing.
template <class Body>
__device__ __forceinline__ void each_found(const int2* found, int count, int rows, int* tile_rows,
                                           int* tile_tokens, const Body& body) {
  const int thread = static_cast<int>(threadIdx.x);
  for (int from = 0; from < count; from += kTile) {
    const int n = count - from < kTile ? count - from : kTile;
    for (int i = thread; i < kTile; i += kSortThreads) {
      const int2 one = i < n ? found[from + i] : make_int2(-1, 0);
      tile_rows[i] = one.x;
      tile_tokens[i] = one.y;
    }
    __syncthreads();
    if (thread / kWarp * kWarp < rows)
      for (int i = 0; i < n; i += 4) {
        const Part<int32_t, 4> of = load_part<4>(tile_rows + i);
        for (int j = 0; j < 4; ++j) body(of.at[j], i + j);
      }
    __syncthreads();
  }
}

// starts[v] = where the tokens of row v begin in `sorted`. `found`: row and token of each, for the steps between.
__global__ void __launch_bounds__(kSortThreads, 2) sort_tokens(Ids t, int2* found, int* sorted, int* starts) {
  CAIRN_SHARED int scratch[kWarp];
  CAIRN_SHARED Part<int32_t, 4> rows_of_tile[kTile / 4];
  CAIRN_SHARED int tile_tokens[kTile];
  int* const tile_rows = rows_of_tile[0].at;
  const int at_row = static_cast<int>(blockIdx.x) * t.rows_per_range, rows = t.end - t.first;
  const int first = t.first + at_row, thread = static_cast<int>(threadIdx.x);
  const int begin = block_sum(t.before(first), scratch);
  // The range's tokens with their rows, in token order; the next ids are on their way meanwhile.
  int at = begin, total, ids[kEach];
  t.look(thread * kEach, ids);
  for (int from = 0; from < t.tokens; from += kSortThreads * kEach) {
    const int mine = from + thread * kEach;
    int next[kEach], own = 0;
    t.look(mine + kSortThreads * kEach, next);
    for (int j = 0; j < kEach; ++j) {
      const bool inside = ids[j] >= first && ids[j] < t.end && ids[j] - first < t.rows_per_range;
      ids[j] = inside ? ids[j] - first : -1;
      own += inside;
    }
    int to = at + sum_before<kSortThreads>(own, scratch, &total);
    for (int j = 0; j < kEach; ++j) {
      if (ids[j] >= 0) found[to++] = make_int2(ids[j], mine + j);
      ids[j] = next[j];
    }
    at += total;
  }
  __syncthreads();
  const int count = at - begin;
  if (t.rows_per_range == 1) {
    for (int i = thread; i < count; i += kSortThreads) sorted[begin + i] = found[begin + i].y;
    if (thread != 0) return;
    starts[at_row] = begin;
    if (at_row == rows - 1) starts[rows] = begin + count;
    return;
  }
  // A thread per row counts its tokens, then places them.
  int own = 0;
  each_found(found + begin, count, t.rows_per_range, tile_rows, tile_tokens,
             [&](int row, int) { own += row == thread; });
  int to = begin + sum_before<kSortThreads>(own, scratch, &total);
  if (thread < t.rows_per_range && at_row + thread < rows) starts[at_row + thread] = to;
  if (at_row + thread == rows - 1 && thread < t.rows_per_range) starts[rows] = begin + count;
  each_found(found + begin, count, t.rows_per_range, tile_rows, tile_tokens, [&](int row, int i) {
    if (row == thread) sorted[to++] = tile_tokens[i];
  });
}

// Adds the rows sorted[begin .. end) of dy, in this order; several of them are loaded at a time.
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
    sum_windows(const T* dy, const int32_t* ids, const int* sorted, const int* starts, int rows,
                int64_t columns, float* windows) {
  const int begin = static_cast<int>(blockIdx.x) * kWindow;
  const int64_t column = (static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x) * kCount;
  // The tokens before the first window and after the last one are no full windows of this table.
  if (begin < starts[0] || begin + kWindow > starts[rows] || column >= columns) return;
  if (ids[sorted[begin]] != ids[sorted[begin + kWindow - 1]]) return;
  float sums[kCount];
  for (int c = 0; c < kCount; ++c) sums[c] = 0;
  add_tokens<T, kCount>(dy, columns, column, sorted, begin, begin + kWindow, sums);
  Part<float, kCount> out;
  for (int c = 0; c < kCount; ++c) out.at[c] = sums[c];
  *reinterpret_cast<Part<float, kCount>*>(windows + static_cast<int64_t>(blockIdx.x) * columns + column) =
      out;
}

// A block per kRows rows of the table and slice of columns.
template <class T, int kCount>
__global__ void __launch_bounds__(kThreads)
    sum_rows(const T* dy, const int* sorted, const int* starts, int vocab, int64_t columns,
             const float* windows, float* table, bool accumulate) {
  const int64_t column = (static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x) * kCount;
  if (column >= columns) return;
  int row = static_cast<int>(blockIdx.x) * kRows;
  const int rows = vocab - row < kRows ? vocab - row : kRows, begin = starts[row], end = starts[row + rows];
  const int last_row = row + rows;
  float* to = table + static_cast<int64_t>(row) * columns + column;
  float sums[kCount];
  for (int c = 0; c < kCount; ++c) sums[c] = 0;
  // Writes the row's sum, if it has tokens or is not added to, and goes on to the next row.
  const auto finish = [&](bool has_tokens) {
    if (has_tokens || !accumulate) {
      auto* const part = reinterpret_cast<Part<float, kCount>*>(to);
      Part<float, kCount> out;
      if (accumulate) out = *part;
      for (int c = 0; c < kCount; ++c) out.at[c] = accumulate ? out.at[c] + sums[c] : sums[c];
      *part = out;
    }
    for (int c = 0; c < kCount; ++c) sums[c] = 0;
    to += columns;
    ++row;
  };
  if (end - begin < kWindow) {  // no row has a full window: the tokens of all rows, one after the other
    int of_row = begin, next = starts[row + 1];
    const auto step = [&] {
      finish(next > of_row);
      of_row = next;
      if (row < last_row) next = starts[row + 1];
    };
    constexpr int kStream = sizeof(T) == 2 ? kFlight : kFlight / 2;
    for (int i = begin; i < end; i += kStream) {
      Part<T, kCount> parts[kStream];
      for (int j = 0; j < kStream; ++j)
        if (i + j < end) parts[j] = load_part<kCount>(dy + sorted[i + j] * columns + column);
      for (int j = 0; j < kStream; ++j) {
        if (i + j >= end) break;
        while (next <= i + j) step();
        for (int c = 0; c < kCount; ++c) sums[c] += load(&parts[j].at[c]);
      }
    }
    while (row < last_row) step();
    return;
  }
  while (row < last_row) {
    const int from = starts[row], until = starts[row + 1];
    const int first = (from + kWindow - 1) / kWindow, last = until / kWindow;  // full windows: [first, last)
    const bool whole = first < last;
    add_tokens<T, kCount>(dy, columns, column, sorted, from, whole ? first * kWindow : until, sums);
    if (whole) {
      const bool blocks = last - first > kChainWindows;
      LongSum<kCount> total;
      int w = first;
      for (; w + kFlight <= last; w += kFlight) {
        Part<float, kCount> parts[kFlight];
        for (int j = 0; j < kFlight; ++j)
          parts[j] = load_part<kCount>(windows + static_cast<int64_t>(w + j) * columns + column);
        for (int j = 0; j < kFlight; ++j)
          for (int c = 0; c < kCount; ++c) sums[c] += parts[j].at[c];
        if (blocks && (w - first) % kBlockWindows == kBlockWindows - kFlight) total.add(sums);
      }
      for (; w < last; ++w) {
        const auto part = load_part<kCount>(windows + static_cast<int64_t>(w) * columns + column);
        for (int c = 0; c < kCount; ++c) sums[c] += part.at[c];
      }
      add_tokens<T, kCount>(dy, columns, column, sorted, last * kWindow, until, sums);
      if (blocks) {
        total.add(sums);
        for (int c = 0; c < kCount; ++c) sums[c] = total.total(c);
      }
    }
    finish(from < until);
  }
}

bool is_ids(const TensorDesc& d) { return d.dtype == DType::kI32 && d.packed_bytes == 0; }

template <bool kPart>
std::unique_ptr<Kernel> make_lookup(const Signature& s) {
  constexpr int kLookups = kPart ? 1 : 4;  // of a thread
  if (!fast_float(s.in[0]) || !is_ids(s.in[1]) || !fast_float(s.out[0])) return nullptr;
  if (s.has_in(2) && s.in[2].dtype != s.out[0].dtype) return nullptr;
  const TableRows table{kPart ? s.attrs->integer("first") : 0, s.in[0].shape[0]};
  const int64_t columns = s.in[0].shape.last(), rows = s.in[1].shape.elements();
  return with_float(s.in[0].dtype, [&](auto from) {
    return with_float(s.out[0].dtype, [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      const bool fours = columns % 4 == 0;
      const int64_t per_row = fours ? columns / 4 : columns, parts = rows * per_row;
      return make_kernel([=](const Call& call) {
        launch(stream_of(call),
               fours ? embedding<From, To, 4, kLookups, kPart> : embedding<From, To, 1, kLookups, kPart>,
               {.blocks = (parts + kLookups * kThreads - 1) / (kLookups * kThreads), .threads = kThreads},
               input<const From>(call, 0), input<const int32_t>(call, 1), input<const To>(call, 2),
               output<To>(call, 0), parts, per_row, table);
      });
    });
  });
}

std::unique_ptr<Kernel> make_gradient(const Signature& s, int64_t first) {
  if (!is_ids(s.in[0]) || !fast_float(s.in[1]) || !plain_f32(s.out[0])) return nullptr;
  constexpr int64_t kMaxInt = (int64_t{1} << 31) - 1 - (1 << 16);  // what loops look at beyond the last
  const int64_t vocab = s.out[0].shape[0], columns = s.out[0].shape.last(), tokens = s.in[0].shape.elements();
  if (tokens > kMaxInt || first + vocab > kMaxInt) return nullptr;
  // Few rows per range for small tables, so that many blocks sort; at most a thread per row.
  const int64_t per_range = std::min<int64_t>(kSortThreads, (vocab + 263) / 264);
  const int64_t ranges = (vocab + per_range - 1) / per_range;
  const bool fours = columns % 4 == 0;
  const int64_t items = fours ? columns / 4 : columns;
  const int64_t threads = std::min<int64_t>(kThreads, (items + kWarp - 1) / kWarp * kWarp);
  const int64_t slices = (items + threads - 1) / threads, windows = tokens / kWindow;
  if (slices > 65535) return nullptr;
  Workspace space;
  const int64_t found_at = space.add(tokens * 8), sorted_at = space.add(tokens * 4);
  const int64_t starts_at = space.add((vocab + 1) * 4), windows_at = space.add(windows * columns * 4);
  return with_float(s.in[1].dtype, [&](auto zero) {
    using T = decltype(zero);
    return make_kernel(
        [=](const Call& call) {
          const cudaStream_t stream = stream_of(call);
          const Ids ids{.ids = input<const int32_t>(call, 0),
                        .tokens = static_cast<int>(tokens),
                        .first = static_cast<int>(first),
                        .end = static_cast<int>(first + vocab),
                        .rows_per_range = static_cast<int>(per_range)};
          const T* dy = input<const T>(call, 1);
          auto *sorted = Workspace::at<int>(call, sorted_at), *starts = Workspace::at<int>(call, starts_at);
          auto* sums = Workspace::at<float>(call, windows_at);
          launch(stream, sort_tokens, {.blocks = ranges, .threads = kSortThreads}, ids,
                 Workspace::at<int2>(call, found_at), sorted, starts);
          launch(stream, fours ? sum_windows<T, 4> : sum_windows<T, 1>,
                 {.blocks = windows, .threads = static_cast<int>(threads), .blocks_y = slices}, dy, ids.ids,
                 sorted, starts, static_cast<int>(vocab), columns, sums);
          launch(stream, fours ? sum_rows<T, 4> : sum_rows<T, 1>,
                 {.blocks = (vocab + kRows - 1) / kRows,
                  .threads = static_cast<int>(threads),
                  .blocks_y = slices},
                 dy, sorted, starts, static_cast<int>(vocab), columns, sums, output<float>(call, 0),
                 accumulates(call, 0));
        },
        space.bytes());
  });
}

}  // namespace

std::unique_ptr<Kernel> make_embedding(const Signature& s) { return make_lookup<false>(s); }
std::unique_ptr<Kernel> make_embedding_part(const Signature& s) { return make_lookup<true>(s); }
std::unique_ptr<Kernel> make_embedding_grad(const Signature& s) { return make_gradient(s, 0); }
std::unique_ptr<Kernel> make_embedding_part_grad(const Signature& s) {
  return make_gradient(s, s.attrs->integer("first"));
}

}  // namespace cairn::kernels::cuda
