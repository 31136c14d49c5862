// The optimizers' updates (updates.h) and the sum of squares: one pass over memory each. update_gate.
#include <limits>

#include "kernels/cuda/optimizers/optimizer_blocks.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kThreads = kOptimizerThreads;

__global__ void __launch_bounds__(kThreads)
    square_total(const double* parts, int count, bool add, double* total) {
  CAIRN_SHARED double scratch[kWarp];
  const double sum = sum_of_parts(parts, count, scratch);
  if (threadIdx.x == 0) *total = add ? *total + sum : sum;
}

// By the first thread of each block of threads: the optimizer, and whether it runs at all. grad_scale: the
// gradient's factor instead of hyper's; see ops.def for it and `total`. One block writes that an infinity or NaN
// was found; all others find `total` not finite, whether they see that or not.
template <class Optimizer, bool kScaled>
__device__ __forceinline__ void read_hyper(const double* hyper, const double* total, double* grad_scale,
                                           Optimizer* optimizer, int* open) {
  const double factor = kScaled ? *grad_scale : hyper[update_op::kFactorSlot];
  const bool finite = !kScaled || std::isfinite(*total);
  *optimizer = Optimizer::of(hyper, factor);
  *open = finite && (!kScaled || std::isfinite(factor));
  if (!finite && blockIdx.x == gridDim.x - 1) *grad_scale = std::numeric_limits<double>::quiet_NaN();
}

template <class Optimizer, bool kScaled, class P>
__global__ void __launch_bounds__(kThreads, P::kMinBlocks)
    update_tensor(int64_t count, const float* grad, const double* hyper, const double* total,
                  double* grad_scale, typename P::Entry parameter, RandomSource random,
                  StatePointers<Optimizer::kStates> states) {
  constexpr int kCount = 4;
  CAIRN_SHARED Optimizer shared[1];
  CAIRN_SHARED int open[1];
  const int64_t groups = count / kCount, g = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t rest = elementwise_rest<kCount>(count);
  const P p = P::of(parameter, random);
  UpdateGroup<Optimizer, kCount> group;
  if (g < groups) group.read_all(grad, p, states, g * kCount);
  // While all others' loads are under way.
  if (threadIdx.x == 0) read_hyper<Optimizer, kScaled>(hyper, total, grad_scale, shared, open);
  __syncthreads();
  if (open[0] == 0) return;
  const Optimizer optimizer = shared[0];
  if (g < groups) {
    group.update(optimizer);
    group.write_all(p, states, g * kCount);
  }
  if (rest >= 0) {
    UpdateGroup<Optimizer, 1> element;
    element.read_all(grad, p, states, rest);
    element.update(optimizer);
    element.write_all(p, states, rest);
  }
}

template <class Optimizer, bool kScaled, class P>
__global__ void __launch_bounds__(kThreads)
    update_tensor_blocks(int64_t count, const float* grad, const double* hyper, const double* total,
                         double* grad_scale, typename P::Entry parameter, RandomSource random,
                         StatePointers<Optimizer::kStates> states) {
  constexpr int kStates = Optimizer::kStates;
  CAIRN_SHARED float values[kStates][kDynamicCodes];
  CAIRN_SHARED Optimizer shared[1];
  CAIRN_SHARED int open[1];
  const int64_t own = static_cast<int64_t>(blockIdx.x) * kBlocksAtOnce + threadIdx.x / kWarp;
  const int64_t at = own * kDynamicBlock;
  const StateBlocks<kStates> blocks(states.at, own);
  WarpBlock<Optimizer> block;
  block.lane = static_cast<int>(threadIdx.x) % kWarp;
  block.count = static_cast<int>(count - at < kDynamicBlock ? count - at : kDynamicBlock);
  const P p = P::of(parameter, random).from(at);
  if (at < count) block.read_all(grad + at, p.at, blocks.at);
  stage_maps<Optimizer>(values);
  if (threadIdx.x == 0) read_hyper<Optimizer, kScaled>(hyper, total, grad_scale, shared, open);
  __syncthreads();
  if (open[0] == 0 || at >= count) return;
  block.update(shared[0], values, blocks.at);
  block.write_all(p);
}

// The kernel of an optimizer over one tensor, and how many elements a block of threads takes.
template <class Optimizer, bool kScaled, class P>
constexpr auto kernel_of() {
  if constexpr (InBlocks<Optimizer>)
    return update_tensor_blocks<Optimizer, kScaled, P>;
  else
    return update_tensor<Optimizer, kScaled, P>;
}

template <class Optimizer, bool kScaled, class P>
std::unique_ptr<Kernel> make_typed(int64_t count, const ParameterForm& form) {
  constexpr int64_t kPerBlock =
      InBlocks<Optimizer> ? int64_t{kBlocksAtOnce} * kDynamicBlock : int64_t{kThreads} * 4;
  const int64_t wanted = InBlocks<Optimizer> ? count : count / 4 * 4;  // what is left over takes no block
  const LaunchSize size{.blocks = std::max<int64_t>(1, (wanted + kPerBlock - 1) / kPerBlock),
                        .threads = kThreads};
  return make_kernel([=](const Call& call) {
    StatePointers<Optimizer::kStates> states{};
    for (int k = 0; k < Optimizer::kStates; ++k)
      states.at[k] = output<float>(call, update_op::kFirstState + static_cast<size_t>(k));
    launch(stream_of(call), kernel_of<Optimizer, kScaled, P>(), size, count,
           input<const float>(call, update_op::kGrad), input<const double>(call, update_op::kHyper),
           input<const double>(call, update_op::kTotal), output<double>(call, update_op::kGradScale),
           P::entry(call, update_op::kParameter, form), RandomSource::of(call), states);
  });
}

__global__ void grad_scale(const double* loss, const double* weight, double* grad_scale) {
  const double sum = *loss, by = weight != nullptr ? *weight : 1.0;
  const bool open = std::isfinite(sum) && std::isfinite(by) && by != 0.0;
  *grad_scale = open ? 1.0 / by : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

std::unique_ptr<Kernel> make_sum_squares(const Signature& s) {
  if (!fast_float(s.in[0]) || s.out[0].dtype != DType::kF64) return nullptr;
  const int64_t count = s.in[0].shape.elements();
  const Chunks chunks(count);
  return with_float(s.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return make_kernel(
        [=](const Call& call) {
          auto* const partial = static_cast<double*>(call.workspace);
          launch(stream_of(call), square_parts<const T*>, {.blocks = chunks.parts, .threads = kThreads},
                 input<const T>(call, 0), count, chunks.size, partial);
          launch(stream_of(call), square_total, {.threads = kThreads}, partial,
                 static_cast<int>(chunks.parts), accumulates(call, 0), output<double>(call, 0));
        },
        chunks.parts * 8);
  });
}

std::unique_ptr<Kernel> make_squares_of_chunks(const Signature& s) {
  if (!fast_float(s.in[0]) || s.out[0].dtype != DType::kF64) return nullptr;
  const int64_t count = s.in[0].shape.elements(), chunk = s.attrs->integer("chunk"),
                parts = s.out[0].shape.elements();
  return with_float(s.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return make_kernel([=](const Call& call) {
      launch(stream_of(call), square_parts<const T*>, {.blocks = parts, .threads = kThreads},
             input<const T>(call, 0), count, chunk, output<double>(call, 0));
    });
  });
}

std::unique_ptr<Kernel> make_sum_of_chunks(const Signature& s) {
  if (s.in[0].dtype != DType::kF64 || s.out[0].dtype != DType::kF64) return nullptr;
  const auto parts = static_cast<int>(s.in[0].shape.elements());
  return make_kernel([=](const Call& call) {
    launch(stream_of(call), square_total, {.threads = kThreads}, input<const double>(call, 0), parts,
           accumulates(call, 0), output<double>(call, 0));
  });
}

std::unique_ptr<Kernel> make_update(const Signature& s) {
  if (s.has_out(update_op::kPacked)) return make_batch({&s, 1});
  if (!takes_update(s, DType::kF32)) return nullptr;
  return with_optimizer(Updates(), s, [&]<class Optimizer>(std::type_identity<Optimizer>) {
    const int64_t count = s.in[update_op::kGrad].shape.elements();
    return with_parameter(s, [&]<class P>(std::type_identity<P>) {
      return s.has_in(update_op::kTotal) ? make_typed<Optimizer, true, P>(count, ParameterForm(s))
                                         : make_typed<Optimizer, false, P>(count, ParameterForm(s));
    });
  });
}

std::unique_ptr<Kernel> make_grad_scale(const Signature& s) {
  if (s.in[0].dtype != DType::kF64 || s.out[0].dtype != DType::kF64) return nullptr;
  return make_kernel([](const Call& call) {
    launch(stream_of(call), grad_scale, {.threads = 1}, input<const double>(call, 0),
           input<const double>(call, 1), output<double>(call, 0));
  });
}

}  // namespace cairn::kernels::cuda
