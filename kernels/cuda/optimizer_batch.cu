// The optimizer over many tensors at once: AdamW with the packs of the weights, and the sum of squares.
// Models have hundreds of tensors, most of them small, and a kernel for each would be mostly launches and
// tails. The tensors stand in a table that is a parameter of the kernel; a block finds its tensor by the
// first block of each.
#include <limits>
#include <vector>

#include "kernels/cuda/optimizer.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/workspace.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kThreads = kOptimizerThreads;
constexpr size_t kMostParameters = 32764;  // bytes of a launch

// The last tensor whose first block is not after this one.
template <class Table>
__device__ __forceinline__ int own_tensor(const Table& table) {
  const auto block = static_cast<int32_t>(blockIdx.x);
  int low = 0, high = table.tensors;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (table.first_block[middle] <= block ? low : high) = middle;
  }
  return low;
}

// Fills tables of Table::kMost tensors one after the other. `blocks_of(i)`: how many blocks tensor i wants.
template <class Table, class Blocks>
std::vector<Table> cut(size_t tensors, const Blocks& blocks_of) {
  std::vector<Table> tables;
  int64_t end = 0;
  for (size_t i = 0; i < tensors; ++i) {
    const int64_t blocks = blocks_of(i);
    if (tables.empty() || tables.back().tensors == Table::kMost ||
        end + blocks > std::numeric_limits<int32_t>::max()) {
      tables.emplace_back();
      end = 0;
    }
    Table& table = tables.back();
    table.first_block[table.tensors++] = static_cast<int32_t>(end);
    table.first_block[table.tensors] = static_cast<int32_t>(end += blocks);
  }
  return tables;
}
template <class Table>
int64_t blocks_of(const Table& table) {
  return table.first_block[table.tensors];
}

// ---- AdamW

constexpr int kGroup = 4, kGroups = 2;  // a thread's groups, a block's width apart

struct Updates {
  static constexpr int kMost = 512;
  const float* grad[kMost];
  const double* hyper[kMost];
  float *p[kMost], *m[kMost], *v[kMost];
  bf16* packed[kMost];  // nullptr: not wanted
  int64_t count[kMost];
  int32_t first_block[kMost + 1];
  int tensors = 0;
};
static_assert(sizeof(Updates) <= kMostParameters);

__global__ void __launch_bounds__(kThreads) update_tensors(CAIRN_TABLE(Updates, table)) {
  CAIRN_SHARED Factors shared[1];
  const int t = own_tensor(table);
  const int64_t count = table.count[t], groups = count / kGroup;
  const auto block = static_cast<int32_t>(blockIdx.x);
  const int64_t first =
      static_cast<int64_t>(block - table.first_block[t]) * (kThreads * kGroups) + threadIdx.x;
  const float* const grad = table.grad[t];
  float *const p = table.p[t], *const m = table.m[t], *const v = table.v[t];
  bf16* const packed = table.packed[t];
  Group<kGroup> of_grad[kGroups], of_p[kGroups], of_m[kGroups], of_v[kGroups];
  CAIRN_UNROLL for (int u = 0; u < kGroups; ++u) {
    const int64_t g = first + u * kThreads;
    if (g >= groups) break;
    of_grad[u] = read<kGroup>(grad + g * kGroup);
    of_p[u] = read<kGroup>(p + g * kGroup);
    of_m[u] = read<kGroup>(m + g * kGroup);
    of_v[u] = read<kGroup>(v + g * kGroup);
  }
  // While all others' loads are under way.
  if (threadIdx.x == 0) shared[0] = factors_of(table.hyper[t], table.hyper[t][7]);
  __syncthreads();
  const Factors f = shared[0];
  CAIRN_UNROLL for (int u = 0; u < kGroups; ++u) {
    const int64_t g = first + u * kThreads;
    if (g >= groups) break;
    CAIRN_UNROLL for (int i = 0; i < kGroup; ++i)
        update(f, of_grad[u].at[i], of_p[u].at[i], of_m[u].at[i], of_v[u].at[i]);
    write(p + g * kGroup, of_p[u]);
    write(m + g * kGroup, of_m[u]);
    write(v + g * kGroup, of_v[u]);
    if (packed != nullptr) write(packed + g * kGroup, of_p[u]);
  }
  // What is left over, by the tensor's last block.
  const int64_t rest = groups * kGroup + threadIdx.x;
  if (rest < count && block + 1 == table.first_block[t + 1]) {
    update(f, grad[rest], p[rest], m[rest], v[rest]);
    if (packed != nullptr) store(packed + rest, p[rest]);
  }
}

constexpr size_t kUpdateIn = 2, kUpdateOut = 4;  // operands of adamw's row

bool takes_update(const Signature& s) {
  if (s.op != "adamw" || s.in.size() != kUpdateIn || s.out.size() != kUpdateOut) return false;
  for (const TensorDesc& d : {s.in[0], s.out[0], s.out[1], s.out[2]})
    if (!plain_f32(d)) return false;
  return s.in[1].dtype == DType::kF64 &&
         (!s.has_out(3) || s.out[3].packed_bytes == 2 * s.in[0].shape.elements());
}

std::unique_ptr<Kernel> make_updates(std::span<const Signature> ops) {
  if (!std::all_of(ops.begin(), ops.end(), takes_update)) return nullptr;
  const auto count_of = [&](size_t i) { return ops[i].in[0].shape.elements(); };
  std::vector<Updates> tables = cut<Updates>(ops.size(), [&](size_t i) {
    constexpr int64_t kPerBlock = int64_t{kThreads} * kGroups * kGroup;
    return std::max<int64_t>(1, (count_of(i) + kPerBlock - 1) / kPerBlock);
  });
  size_t op = 0;
  for (Updates& table : tables)
    for (int t = 0; t < table.tensors; ++t) table.count[t] = count_of(op++);
  return make_kernel([tables = std::move(tables)](const Call& call) {
    size_t in = 0, out = 0;
    for (Updates table : tables) {
      for (int t = 0; t < table.tensors; ++t, in += kUpdateIn, out += kUpdateOut) {
        table.grad[t] = input<const float>(call, in);
        table.hyper[t] = input<const double>(call, in + 1);
        table.p[t] = output<float>(call, out);
        table.m[t] = output<float>(call, out + 1);
        table.v[t] = output<float>(call, out + 2);
        table.packed[t] = output<bf16>(call, out + 3);
      }
      launch(stream_of(call), update_tensors, {.blocks = blocks_of(table), .threads = kThreads}, table);
    }
  });
}

// ---- the sum of squares: chunks of all tensors, then each tensor's, then all of them in order

struct Squares {
  static constexpr int kMost = 1024;
  const float* x[kMost];
  int64_t count[kMost], chunk[kMost];
  int32_t first_block[kMost + 1];
  int tensors = 0;
};
static_assert(sizeof(Squares) <= kMostParameters);

__global__ void __launch_bounds__(kThreads) parts_of_tensors(CAIRN_TABLE(Squares, table), double* parts) {
  CAIRN_SHARED double scratch[kWarp];
  const int t = own_tensor(table);
  const int64_t count = table.count[t], chunk = table.chunk[t];
  const int64_t begin = (static_cast<int32_t>(blockIdx.x) - table.first_block[t]) * chunk;
  const double total =
      chunk_squares(table.x[t], begin, begin + chunk < count ? begin + chunk : count, scratch);
  if (threadIdx.x == 0) parts[blockIdx.x] = total;
}

// A block a tensor.
__global__ void __launch_bounds__(kThreads)
    totals_of_tensors(CAIRN_TABLE(Squares, table), const double* parts, double* totals) {
  CAIRN_SHARED double scratch[kWarp];
  const int32_t first = table.first_block[blockIdx.x], end = table.first_block[blockIdx.x + 1];
  const double total = sum_of_parts(parts + first, end - first, scratch);
  if (threadIdx.x == 0) totals[blockIdx.x] = total;
}

// One after the other, as kernels for one tensor each would add them.
__global__ void __launch_bounds__(kThreads)
    add_in_order(const double* totals, int count, bool add, double* to) {
  CAIRN_SHARED double staged[kThreads];
  double sum = threadIdx.x == 0 && add ? *to : 0.0;
  for (int begin = 0; begin < count; begin += kThreads) {
    const int own = begin + static_cast<int>(threadIdx.x);
    __syncthreads();
    if (own < count) staged[threadIdx.x] = totals[own];
    __syncthreads();
    const int here = count - begin < kThreads ? count - begin : kThreads;
    if (threadIdx.x == 0)
      for (int i = 0; i < here; ++i) sum += staged[i];
  }
  if (threadIdx.x == 0) *to = sum;
}

std::unique_ptr<Kernel> make_squares(std::span<const Signature> ops) {
  for (size_t i = 0; i < ops.size(); ++i) {
    const Signature& s = ops[i];
    if (s.op != "sum_squares" || s.in.size() != 1 || s.out.size() != 1 || s.has_out(0) != (i == 0))
      return nullptr;
    if (!plain_f32(s.in[0]) || s.out[0].dtype != DType::kF64) return nullptr;
  }
  const auto count_of = [&](size_t i) { return ops[i].in[0].shape.elements(); };
  std::vector<Squares> tables = cut<Squares>(ops.size(), [&](size_t i) { return Chunks(count_of(i)).parts; });
  size_t op = 0;
  int64_t parts = 0;
  for (Squares& table : tables) {
    for (int t = 0; t < table.tensors; ++t, ++op) {
      table.count[t] = count_of(op);
      table.chunk[t] = Chunks(count_of(op)).size;
    }
    parts += blocks_of(table);
  }
  Workspace space;
  const int64_t parts_at = space.add(parts * 8), totals_at = space.add(static_cast<int64_t>(ops.size()) * 8);
  const int count = static_cast<int>(ops.size());
  return make_kernel(
      [=, tables = std::move(tables)](const Call& call) {
        const cudaStream_t stream = stream_of(call);
        auto *partial = Workspace::at<double>(call, parts_at),
             *totals = Workspace::at<double>(call, totals_at);
        size_t in = 0;
        double* to = totals;
        for (Squares table : tables) {
          for (int t = 0; t < table.tensors; ++t) table.x[t] = input<const float>(call, in++);
          launch(stream, parts_of_tensors, {.blocks = blocks_of(table), .threads = kThreads}, table, partial);
          launch(stream, totals_of_tensors, {.blocks = table.tensors, .threads = kThreads}, table, partial,
                 to);
          partial += blocks_of(table);
          to += table.tensors;
        }
        launch(stream, add_in_order, {.threads = kThreads}, totals, count, accumulates(call, 0),
               output<double>(call, 0));
      },
      space.bytes());
}

}  // namespace

std::unique_ptr<Kernel> make_batch(std::span<const Signature> ops) {
  if (ops.empty()) return nullptr;
  return ops[0].op == "adamw" ? make_updates(ops) : ops[0].op == "sum_squares" ? make_squares(ops) : nullptr;
}

}  // namespace cairn::kernels::cuda
