// The optimizer over many tensors at once: updates with the packed weights, and the sum of squares.
// Models have hundreds of tensors, most of them small, and a kernel for each would be mostly launches and
// tails. The tensors stand in a table that is a parameter of the kernel; a block finds its tensor by the
// first block of each.
#include <limits>
#include <map>
#include <vector>

#include "kernels/cuda/common/workspace.h"
#include "kernels/cuda/optimizers/optimizer_blocks.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kThreads = kOptimizerThreads;
constexpr size_t kMaxParameters = 32764;  // bytes of a launch

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

// Fills tables of Table::kMax tensors one after the other. `blocks_of(i)`: how many blocks tensor i wants.
template <class Table, class Blocks>
std::vector<Table> cut(size_t tensors, const Blocks& blocks_of) {
  std::vector<Table> tables;
  int64_t end = 0;
  for (size_t i = 0; i < tensors; ++i) {
    const int64_t blocks = blocks_of(i);
    if (tables.empty() || tables.back().tensors == Table::kMax ||
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

// ---- updates

constexpr int kGroup = 4, kGroups = 2;  // a thread's groups, a block's width apart

// Of optimizers with so many states, and of parameters of one kind.
template <int kStates, class P>
struct UpdateTable {
  static constexpr size_t kBytesEach =
      (4 + array_of(kStates)) * sizeof(void*) + sizeof(typename P::Entry) + sizeof(int32_t);
  static constexpr int kMax = std::min<size_t>(512, (kMaxParameters - 16) / kBytesEach);
  const float* grad[kMax];
  const double* hyper[kMax];
  typename P::Entry p[kMax];
  float* state[array_of(kStates)][kMax];
  void* packed[kMax];  // nullptr: not wanted
  int64_t count[kMax];
  int32_t first_block[kMax + 1];
  int tensors = 0;
};

template <class Optimizer, class Packed, class P, class Table>
__global__ void __launch_bounds__(kThreads) update_tensors(CAIRN_TABLE(Table, table), RandomSource random) {
  CAIRN_SHARED Optimizer shared[1];
  const int t = own_tensor(table);
  const int64_t count = table.count[t], groups = count / kGroup;
  const auto block = static_cast<int32_t>(blockIdx.x);
  const int64_t first =
      static_cast<int64_t>(block - table.first_block[t]) * (kThreads * kGroups) + threadIdx.x;
  const float* const grad = table.grad[t];
  const P p = P::of(table.p[t], random);
  StatePointers<Optimizer::kStates> states;
  CAIRN_UNROLL for (int k = 0; k < Optimizer::kStates; ++k) states.at[k] = table.state[k][t];
  auto* const packed = static_cast<Packed*>(table.packed[t]);
  UpdateGroup<Optimizer, kGroup> group[kGroups];
  CAIRN_UNROLL for (int u = 0; u < kGroups; ++u) {
    const int64_t g = first + u * kThreads;
    if (g >= groups) break;
    group[u].read_all(grad, p, states, g * kGroup);
  }
  // While all others' loads are under way.
  if (threadIdx.x == 0) shared[0] = Optimizer::of(table.hyper[t], table.hyper[t][update_op::kFactorSlot]);
  __syncthreads();
  const Optimizer optimizer = shared[0];
  CAIRN_UNROLL for (int u = 0; u < kGroups; ++u) {
    const int64_t g = first + u * kThreads;
    if (g >= groups) break;
    group[u].update(optimizer);
    group[u].write_all(p, states, g * kGroup);
    if (packed != nullptr) write(packed + g * kGroup, group[u].p);
  }
  // What is left over, by the tensor's last block.
  const int64_t rest = groups * kGroup + threadIdx.x;
  if (rest < count && block + 1 == table.first_block[t + 1]) {
    UpdateGroup<Optimizer, 1> element;
    element.read_all(grad, p, states, rest);
    element.update(optimizer);
    element.write_all(p, states, rest);
    if (packed != nullptr) store(packed + rest, element.p.at[0]);
  }
}

template <class Optimizer, class Packed, class P, class Table>
__global__ void __launch_bounds__(kThreads)
    update_tensors_blocks(CAIRN_TABLE(Table, table), RandomSource random) {
  constexpr int kStates = Optimizer::kStates;
  CAIRN_SHARED float values[kStates][kDynamicCodes];
  CAIRN_SHARED Optimizer shared[1];
  const int t = own_tensor(table);
  const int64_t count = table.count[t];
  const int64_t own =
      static_cast<int64_t>(static_cast<int32_t>(blockIdx.x) - table.first_block[t]) * kBlocksAtOnce +
      threadIdx.x / kWarp;
  const int64_t at = own * kDynamicBlock;
  float* states[kStates];
  CAIRN_UNROLL for (int k = 0; k < kStates; ++k) states[k] = table.state[k][t];
  const StateBlocks<kStates> blocks(states, own);
  WarpBlock<Optimizer> block;
  block.lane = static_cast<int>(threadIdx.x) % kWarp;
  block.count = static_cast<int>(count - at < kDynamicBlock ? count - at : kDynamicBlock);
  const P p = P::of(table.p[t], random).from(at);
  if (at < count) block.read_all(table.grad[t] + at, p.at, blocks.at);
  stage_maps<Optimizer>(values);
  if (threadIdx.x == 0) shared[0] = Optimizer::of(table.hyper[t], table.hyper[t][update_op::kFactorSlot]);
  __syncthreads();
  if (at >= count) return;
  block.update(shared[0], values, blocks.at);
  block.write_all(p);
  if (auto* const packed = static_cast<Packed*>(table.packed[t]); packed != nullptr)
    block.write_all(Nearest<Packed>{packed + at});
}

// The kernel of an optimizer over many tensors.
template <class Optimizer, class Packed, class P>
constexpr auto kernel_of() {
  using Table = UpdateTable<Optimizer::kStates, P>;
  if constexpr (InBlocks<Optimizer>)
    return update_tensors_blocks<Optimizer, Packed, P, Table>;
  else
    return update_tensors<Optimizer, Packed, P, Table>;
}

bool takes_batched(const Signature& s) {
  if (s.op != "update" || s.in.size() != update_op::kInputs || s.out.size() != update_op::kOutputs)
    return false;
  return takes_update(s, DType::kF32) && !s.has_in(update_op::kTotal) && packs_by_copy(s);
}

// The launches over some of a batch's ops, those of one optimizer. which: their indices.
template <class Optimizer, class Packed, class P>
std::unique_ptr<Kernel> make_launches(std::span<const Signature> ops, std::vector<size_t> which) {
  using Table = UpdateTable<Optimizer::kStates, P>;
  static_assert(sizeof(Table) <= kMaxParameters);
  const auto count_of = [&](size_t i) { return ops[which[i]].in[update_op::kGrad].shape.elements(); };
  std::vector<Table> tables = cut<Table>(which.size(), [&](size_t i) {
    constexpr int64_t kPerBlock = int64_t{kThreads} * kGroups * kGroup;
    static_assert(kPerBlock == int64_t{kBlocksAtOnce} * kDynamicBlock);
    return std::max<int64_t>(1, (count_of(i) + kPerBlock - 1) / kPerBlock);
  });
  size_t i = 0;
  for (Table& table : tables)
    for (int t = 0; t < table.tensors; ++t) table.count[t] = count_of(i++);
  std::vector<ParameterForm> forms;
  for (const size_t op : which) forms.emplace_back(ops[op]);
  return make_kernel(
      [tables = std::move(tables), which = std::move(which), forms = std::move(forms)](const Call& call) {
        auto op = which.begin();
        auto form = forms.begin();
        for (Table table : tables) {
          for (int t = 0; t < table.tensors; ++t, ++op, ++form) {
            const size_t in = *op * update_op::kInputs, out = *op * update_op::kOutputs;
            table.grad[t] = input<const float>(call, in + update_op::kGrad);
            table.hyper[t] = input<const double>(call, in + update_op::kHyper);
            table.p[t] = P::entry(call, out + update_op::kParameter, *form);
            for (int k = 0; k < Optimizer::kStates; ++k)
              table.state[k][t] = output<float>(call, out + update_op::kFirstState + static_cast<size_t>(k));
            table.packed[t] = data_of(call.out, out + update_op::kPacked);
          }
          launch(stream_of(call), kernel_of<Optimizer, Packed, P>(),
                 {.blocks = blocks_of(table), .threads = kThreads}, table, RandomSource::of(call));
        }
      });
}

// Updates do not overlap, so that those of one optimizer may run together.
std::unique_ptr<Kernel> make_updates(std::span<const Signature> ops) {
  if (!std::all_of(ops.begin(), ops.end(), takes_batched)) return nullptr;
  const auto packed_type = [](const Signature& s) { return ParameterForm(s).packed_type; };
  const auto format_of = [](const Signature& s) {  // that of all its states follows from the first one's
    return optimizer_states(s) > 0 ? s.out[update_op::kFirstState].dtype : DType::kF32;
  };
  std::map<std::tuple<std::string, int, DType, DType, Stored>, std::vector<size_t>> kinds;
  for (size_t i = 0; i < ops.size(); ++i)
    kinds[{ops[i].attrs->word("optimizer"), optimizer_states(ops[i]), format_of(ops[i]), packed_type(ops[i]),
           stored(ops[i])}]
        .push_back(i);
  std::vector<std::shared_ptr<const Kernel>> parts;
  for (auto& [kind, which] : kinds) {
    const Signature& first = ops[which.front()];
    parts.push_back(with_optimizer(Updates(), first, [&]<class Optimizer>(std::type_identity<Optimizer>) {
      return with_parameter(first, [&]<class P>(std::type_identity<P>) {
        return with_half(packed_type(first), [&](auto zero) {
          return make_launches<Optimizer, decltype(zero), P>(ops, std::move(which));
        });
      });
    }));
    if (parts.back() == nullptr) return nullptr;
  }
  return make_kernel([parts = std::move(parts)](const Call& call) {
    for (const auto& part : parts) part->run(call);
  });
}

// ---- the sum of squares: chunks of all tensors, then each tensor's, then all of them in order

struct Squares {
  static constexpr int kMax = 1024;
  const float* x[kMax];
  int64_t count[kMax], chunk[kMax];
  int32_t first_block[kMax + 1];
  int tensors = 0;
};
static_assert(sizeof(Squares) <= kMaxParameters);

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
  return ops[0].op == "update" ? make_updates(ops) : ops[0].op == "sum_squares" ? make_squares(ops) : nullptr;
}

}  // namespace cairn::kernels::cuda
