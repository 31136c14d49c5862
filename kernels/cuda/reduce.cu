// Sums over axes: reduce_sum, reduce_mean, reduce_leading. A sum is a chain of passes, each over one axis of
// [outer, reduced, inner]; a long axis is cut into chunks, whose sums the next pass adds up. All in a fixed
// order, in float32.
#include <algorithm>
#include <vector>

#include "kernels/cuda/common/group.h"
#include "kernels/cuda/products/columns.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kThreads = 256, kLoads = 4;  // groups in flight
constexpr int kWide = 1024;                // threads of a block that adds up chunks

enum class Shapes { kOutputs, kRows, kColumns };  // what a thread, a warp or block, or a block's lanes own

struct Pass {
  int64_t outer, reduced, inner, chunk;
  Shapes shape;
  bool first;  // reads the operand
  __host__ __device__ int64_t splits() const { return (reduced + chunk - 1) / chunk; }
};

// Where a pass's sums go.
struct Sums {
  void* y;
  float factor;
  DType type;  // of y
  bool add;    // to what is there
};
__device__ __forceinline__ void put(const Sums& sums, int64_t i, float v) {
  v *= sums.factor;
  if (sums.type == DType::kBF16)
    store(static_cast<bf16*>(sums.y) + i, v);
  else if (sums.type == DType::kF16)
    store(static_cast<f16*>(sums.y) + i, v);
  else
    static_cast<float*>(sums.y)[i] = sums.add ? static_cast<const float*>(sums.y)[i] + v : v;
}

// Adds to `sums` the groups first, first + step, ... below `last` of x; they lie `pitch` elements apart.
template <int kCount, class T>
__device__ __forceinline__ void add_groups(const T* x, int64_t pitch, int64_t first, int64_t last, int step,
                                           Group<kCount>& sums) {
  for (int64_t g = first; g < last; g += kLoads * step) {
    Group<kCount> in[kLoads];
    for (int u = 0; u < kLoads; ++u) {
      in[u] = {};
      if (g + u * step < last) in[u] = read<kCount>(x + (g + u * step) * pitch);
    }
    for (int u = 0; u < kLoads; ++u)
      for (int i = 0; i < kCount; ++i) sums.at[i] += in[u].at[i];
  }
}

// A thread owns a group of outputs.
template <int kCount, class T>
__global__ void __launch_bounds__(kThreads) sum_outputs(Pass p, const T* x, Sums y) {
  const int64_t g = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x, groups = p.inner / kCount;
  if (g >= p.outer * groups) return;
  const int64_t o = g / groups, column = (g - o * groups) * kCount;
  Group<kCount> sums = {};
  add_groups<kCount>(x + o * p.reduced * p.inner + column, p.inner, 0, p.reduced, 1, sums);
  for (int i = 0; i < kCount; ++i) put(y, o * p.inner + column + i, sums.at[i]);
}

// Sums over the last axis (inner is 1): kTask threads add up a chunk of a row.
template <int kCount, int kTask, class T>
__global__ void __launch_bounds__(kThreads) sum_rows(Pass p, const T* x, Sums y) {
  CAIRN_SHARED float scratch[kWarp];
  constexpr int kTasks = kThreads / kTask;
  const int64_t task = static_cast<int64_t>(blockIdx.x) * kTasks + threadIdx.x / kTask, splits = p.splits();
  if (task >= p.outer * splits) return;  // for all threads of a warp
  const int64_t row = task / splits, begin = (task - row * splits) * p.chunk;
  const int64_t end = begin + p.chunk < p.reduced ? begin + p.chunk : p.reduced;
  Group<kCount> sums = {};
  add_groups<kCount>(x + row * p.reduced + begin, kCount, threadIdx.x % kTask, (end - begin) / kCount, kTask,
                     sums);
  for (int width = kCount / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) sums.at[i] += sums.at[i + width];
  const float total = kTask == kWarp ? warp_sum(sums.at[0]) : block_sum(sums.at[0], scratch);
  if (threadIdx.x % kTask == 0) put(y, task, total);
}

// A warp's lanes own kCount columns each; the block's warps take turns at a chunk's rows.
template <int kCount, int kBlock, class T>
__global__ void __launch_bounds__(kBlock) sum_columns(Pass p, const T* x, Sums y) {
  constexpr int kWarps = kBlock / kWarp, kColumns = kWarp * kCount;
  CAIRN_SHARED float parts[kWarps * kColumns];
  const int64_t tiles = (p.inner + kColumns - 1) / kColumns, splits = p.splits();
  const int64_t part = blockIdx.x / tiles,
                first = (blockIdx.x - part * tiles) * kColumns;  // of [outer, splits]
  const int64_t o = part / splits, begin = (part - o * splits) * p.chunk;
  const int64_t end = begin + p.chunk < p.reduced ? begin + p.chunk : p.reduced;
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t column = first + lane * kCount;
  Group<kCount> sums = {};
  if (column < p.inner)
    add_groups<kCount>(x + o * p.reduced * p.inner + column, p.inner, begin + warp, end, kWarps, sums);
  for (int i = 0; i < kCount; ++i) parts[warp * kColumns + i * kWarp + lane] = sums.at[i];
  __syncthreads();
  for (int c = static_cast<int>(threadIdx.x); c < kColumns; c += kBlock) {
    if (first + c >= p.inner) break;
    const float* own = parts + c % kCount * kWarp + c / kCount;
    float total = own[0];
    for (int w = 1; w < kWarps; ++w) total += own[w * kColumns];
    put(y, part * p.inner + first + c, total);
  }
}

template <class T>
void launch_pass(cudaStream_t stream, const Pass& p, const T* x, const Sums& y) {
  constexpr int kCount = kGroupOf<T>;
  const auto blocks = [](int64_t n, int64_t each) { return (n + each - 1) / each; };
  const bool groups = (p.shape == Shapes::kRows ? p.reduced : p.inner) % kCount == 0;
  const int64_t parts = p.outer * p.splits();
  const auto go = [&](auto* kernel, int64_t count, int threads) {
    launch(stream, kernel, {.blocks = count, .threads = threads}, p, x, y);
  };
  if (p.shape == Shapes::kOutputs) {
    const int64_t outputs = p.outer * p.inner;
    groups ? go(sum_outputs<kCount, T>, blocks(outputs / kCount, kThreads), kThreads)
           : go(sum_outputs<1, T>, blocks(outputs, kThreads), kThreads);
  } else if (p.shape == Shapes::kRows) {
    if (p.chunk <= 2048)
      groups ? go(sum_rows<kCount, kWarp, T>, blocks(parts, kThreads / kWarp), kThreads)
             : go(sum_rows<1, kWarp, T>, blocks(parts, kThreads / kWarp), kThreads);
    else
      groups ? go(sum_rows<kCount, kThreads, T>, parts, kThreads)
             : go(sum_rows<1, kThreads, T>, parts, kThreads);
  } else if (!p.first) {
    go(sum_columns<1, kWide, T>, parts * blocks(p.inner, kWarp), kWide);
  } else {
    groups ? go(sum_columns<kCount, kThreads, T>, parts * blocks(p.inner, kWarp * kCount), kThreads)
           : go(sum_columns<1, kThreads, T>, parts * blocks(p.inner, kWarp), kThreads);
  }
}

// Appends the passes that reduce [outer, reduced, inner] to [outer, inner].
void add_passes(std::vector<Pass>& to, int64_t outer, int64_t reduced, int64_t inner) {
  constexpr int64_t kEnoughThreads = 1 << 16, kEnoughBlocks = 1024, kMinRow = 4096, kMinColumn = 64;
  Pass pass{outer, reduced, inner, reduced, Shapes::kOutputs, to.empty()};
  const bool row = inner == 1;
  if (outer * inner < 8 * kEnoughThreads || (row && reduced > 8)) {
    pass.shape = row ? Shapes::kRows : Shapes::kColumns;
    const int64_t tasks = row ? outer : outer * ((inner + 127) / 128), least = row ? kMinRow : kMinColumn;
    const int64_t splits =
        std::clamp<int64_t>(kEnoughBlocks / tasks, 1, std::max<int64_t>(1, reduced / least));
    pass.chunk = ((reduced + splits - 1) / splits + 7) / 8 * 8;
  }
  to.push_back(pass);
  if (pass.splits() > 1)
    to.push_back({outer, pass.splits(), inner, pass.splits(), row ? Shapes::kRows : Shapes::kColumns, false});
}

// y (+)= factor * the sums of the last pass.
std::unique_ptr<Kernel> make_chain(const Signature& s, const std::vector<Pass>& passes, float factor) {
  if (!fast_float(s.in[0]) || !fast_float(s.out[0])) return nullptr;
  std::vector<int64_t> offsets;  // in the workspace: where each pass but the last writes its sums
  int64_t workspace = 0;
  for (size_t i = 0; i + 1 < passes.size(); ++i) {
    offsets.push_back(workspace);
    workspace += align_up(passes[i].outer * passes[i].splits() * passes[i].inner * 4, 256);
  }
  return with_float(s.in[0].dtype, [&, type = s.out[0].dtype](auto zero) {
    using T = decltype(zero);
    return make_kernel(
        [=](const Call& call) {
          char* const scratch = static_cast<char*>(call.workspace);
          for (size_t i = 0; i < passes.size(); ++i) {
            const Sums sums = i + 1 == passes.size()
                                  ? Sums{output<void>(call, 0), factor, type, accumulates(call, 0)}
                                  : Sums{scratch + offsets[i], 1.0f, DType::kF32, false};
            if (i == 0)
              launch_pass(stream_of(call), passes[i], input<const T>(call, 0), sums);
            else
              launch_pass(stream_of(call), passes[i],
                          reinterpret_cast<const float*>(scratch + offsets[i - 1]), sums);
          }
        },
        workspace);
  });
}

// Reduces the axes of the attribute (none: all). Neighbouring axes are reduced together, the last group first.
std::unique_ptr<Kernel> make_reduce(const Signature& s, bool mean) {
  const Shape& shape = s.in[0].shape;
  const std::vector<int64_t> axes = s.attrs->list("axes");
  std::vector<bool> reduces(static_cast<size_t>(shape.rank), axes.empty());
  for (const int64_t a : axes) reduces[static_cast<size_t>(a < 0 ? a + shape.rank : a)] = true;
  std::vector<Pass> passes;
  int64_t inner = 1, terms = 1;
  for (int i = shape.rank - 1; i >= 0;) {
    int64_t run = 1, outer = 1;
    const bool reduced = reduces[static_cast<size_t>(i)];
    for (; i >= 0 && (reduces[static_cast<size_t>(i)] == reduced || shape[i] == 1); --i) run *= shape[i];
    for (int j = 0; j <= i; ++j) outer *= shape[j];
    if (!reduced) {
      inner *= run;
    } else if (run > 1) {
      add_passes(passes, outer, run, inner);
      terms *= run;
    }
  }
  if (passes.empty()) add_passes(passes, 1, 1, shape.elements());
  return make_chain(s, passes, mean ? 1.0f / static_cast<float>(terms) : 1.0f);
}

}  // namespace

std::unique_ptr<Kernel> make_reduce_sum(const Signature& s) { return make_reduce(s, false); }
std::unique_ptr<Kernel> make_reduce_mean(const Signature& s) { return make_reduce(s, true); }

std::unique_ptr<Kernel> make_reduce_axes(const Signature& s) { return make_reduce(s, false); }

std::unique_ptr<Kernel> make_reduce_leading(const Signature& s) {
  const int64_t inner = s.out[0].shape.elements();
  std::vector<Pass> passes;
  const int64_t rows = s.in[0].shape.elements() / inner;
  add_passes(passes, 1, rows, inner);
  // A chain of two passes over columns is what gradients of biases do.
  if (passes.size() == 2 && passes[0].shape == Shapes::kColumns && fast_float(s.in[0]) &&
      plain_f32(s.out[0])) {
    const ColumnSums sums(rows, inner, s.in[0].dtype);
    return make_kernel(
        [sums](const Call& call) {
          sums.run(stream_of(call), data_of(call.in, 0), output<float>(call, 0), accumulates(call, 0),
                   call.workspace);
        },
        sums.workspace_bytes());
  }
  return make_chain(s, passes, 1.0f);
}

}  // namespace cairn::kernels::cuda
