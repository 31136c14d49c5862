// The optimizers' updates (updates-inl.h) and the sum of squares: one pass over memory each.
#include <array>

#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/optimizers/elementwise.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd/dynamic-inl.h"
#include "kernels/cpu/simd/parameter-inl.h"
#include "kernels/cpu/simd/simd-inl.h"
#include "kernels/cpu/simd/updates-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

// One full block: its numbers are rounded to codes when the largest is known.
template <class Optimizer, size_t... k>
HWY_INLINE void update_block(const Optimizer& f, const float* grad, float* p, DynamicBlock* const* blocks,
                             std::index_sequence<k...>) {
  HWY_ALIGN float numbers[Optimizer::kStates][kDynamicBlock];
  CAIRN_VECTORS(scales, [Optimizer::kStates]);
  CAIRN_VECTORS(largest, [Optimizer::kStates]);
  ((scales[k] = set(blocks[k]->scale), largest[k] = hn::Zero(DF())), ...);
  constexpr int64_t kAhead = 2 * kDynamicBlock;  // memory would rest while codes are found
  for (int64_t i = 0; i < kDynamicBlock; i += lanes()) {
    __builtin_prefetch(p + i + kAhead, 1);
    __builtin_prefetch(grad + i + kAhead);
    V parameter = get(Full(), p + i);
    CAIRN_VECTORS(state, [Optimizer::kStates]);
    ((state[k] = decode<has_sign(Optimizer::kFormats[k])>(blocks[k]->codes + i, scales[k])), ...);
    update(f, get(Full(), grad + i), parameter, state);
    put(Full(), parameter, p + i);
    ((put(Full(), state[k], numbers[k] + i), largest[k] = hn::Max(largest[k], hn::Abs(state[k]))), ...);
  }
  (encode_block<has_sign(Optimizer::kFormats[k])>(numbers[k], largest[k], *blocks[k]), ...);
}

// Updates elements [begin, end) of a parameter with states in blocks. A block begins at `begin`, and the last block may be
// shorter. p: the parameter's element `begin`.
template <class Optimizer>
void update_blocks(const Optimizer& f, const float* grad, float* p, float* const* states, int64_t begin,
                   int64_t end) {
  constexpr auto kEach = std::make_index_sequence<Optimizer::kStates>();
  for (; begin < end; begin += kDynamicBlock, p += kDynamicBlock) {
    DynamicBlock* blocks[Optimizer::kStates];
    for (size_t k = 0; k < Optimizer::kStates; ++k)
      blocks[k] = reinterpret_cast<DynamicBlock*>(states[k]) + begin / kDynamicBlock;
    const auto count = static_cast<size_t>(std::min<int64_t>(end - begin, kDynamicBlock));
    if (count == kDynamicBlock) {
      update_block(f, grad + begin, p, blocks, kEach);
      continue;
    }
    float own_grad[kDynamicBlock] = {}, own_p[kDynamicBlock] = {};
    std::copy_n(grad + begin, count, own_grad);
    std::copy_n(p, count, own_p);
    update_block(f, own_grad, own_p, blocks, kEach);
    std::copy_n(own_p, count, p);
  }
}
// Of elements [begin, end). p: of element `begin`.
template <class Optimizer>
void update_typed(const void* factors, const float* grad, float* p, float* const* states, int64_t begin,
                  int64_t end) {
  const Optimizer& f = *static_cast<const Optimizer*>(factors);
  if constexpr (InBlocks<Optimizer>)
    return update_blocks(f, grad, p, states, begin, end);
  else
    for_each_vector(begin, end, [&](auto t, int64_t i) {
      V parameter = get(t, p + (i - begin));
      CAIRN_VECTORS(state, [array_of(Optimizer::kStates)]);
      for (int k = 0; k < Optimizer::kStates; ++k) state[k] = get(t, states[k] + i);
      update(f, get(t, grad + i), parameter, state);
      put(t, parameter, p + (i - begin));
      for (int k = 0; k < Optimizer::kStates; ++k) put(t, state[k], states[k] + i);
    });
}
using UpdateRange = void (*)(const void*, const float*, float*, float* const*, int64_t, int64_t);
template <class... Optimizers>
constexpr std::array<UpdateRange, sizeof...(Optimizers)> ranges(UpdateList<Optimizers...>) {
  return {update_typed<Optimizers>...};
}
// optimizer: its index in Updates; factors points to an object of that type.
void update_range(size_t optimizer, const void* factors, const float* grad, const ParameterPlace& place,
                  float* const* states, int64_t begin, int64_t end) {
  static constexpr auto kRanges = ranges(Updates());
  for_each_part(place, begin, end, [&](float* p, int64_t first, int64_t last) {
    kRanges[optimizer](factors, grad, p, states, first, last);
  });
}

// Squares of float32 are exact in float64. 32 sums, one for each place in a group of 32: the same for every
// vector length, added up in one order.
template <class T>
double squares_typed(const T* x, int64_t n) {
  constexpr int64_t kSums = 32;
  double sums[kSums] = {};
  int64_t i = 0;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  const hn::ScalableTag<double> dd;
  const hn::Half<DF> dh;
  constexpr int64_t kVectors = kSums / static_cast<int64_t>(kMaxLanes);
  hn::Vec<decltype(dd)> low[kVectors], high[kVectors];
#pragma GCC unroll 4
  for (int64_t v = 0; v < kVectors; ++v) low[v] = high[v] = hn::Zero(dd);
  for (; i + kSums <= n; i += kSums)
#pragma GCC unroll 4
    for (int64_t v = 0; v < kVectors; ++v) {
      const V whole = get(Full(), x + i + v * lanes());
      const auto l = hn::PromoteTo(dd, hn::LowerHalf(dh, whole)),
                 h = hn::PromoteTo(dd, hn::UpperHalf(dh, whole));
      low[v] = hn::MulAdd(l, l, low[v]);
      high[v] = hn::MulAdd(h, h, high[v]);
    }
  for (int64_t v = 0; v < kVectors; ++v) {
    hn::StoreU(low[v], dd, sums + v * lanes());
    hn::StoreU(high[v], dd, sums + v * lanes() + lanes() / 2);
  }
#endif
  for (; i < n; ++i) {
    const double v = to_float(x[i]);
    sums[i % kSums] += v * v;
  }
  for (int64_t width = kSums / 2; width > 0; width /= 2)
    for (int64_t j = 0; j < width; ++j) sums[j] += sums[j + width];
  return sums[0];
}
double squares(DType type, const void* x, int64_t n) {
  return with_float(type, [&](auto zero) { return squares_typed(static_cast<const decltype(zero)*>(x), n); });
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/rows.h"
#include "kernels/cpu/support.h"

namespace cairn::kernels::cpu {

HWY_EXPORT(update_range);
HWY_EXPORT(squares);

namespace {

template <class Optimizer>
void run_update(const Call& call, int64_t count, const ParameterForm& form) {
  const std::optional<double> factor = gradient_factor(call);
  if (!factor) return;
  const Optimizer factors(input<const double>(call, update_op::kHyper), *factor);
  const auto* const grad = input<const float>(call, update_op::kGrad);
  const ParameterPlace p(call, form);
  std::array<float*, update_op::kMaxStates> states;
  for (size_t k = 0; k < states.size(); ++k) states[k] = output<float>(call, update_op::kFirstState + k);
  constexpr int64_t kWidth = InBlocks<Optimizer> ? kDynamicBlock : 1;  // of what is shared out
  parallel_for((count + kWidth - 1) / kWidth, kGrain / kWidth, [&](int64_t begin, int64_t end, int) {
    CAIRN_DISPATCH(update_range)
    (index_of<Optimizer>(Updates()), &factors, grad, p, states.data(), begin * kWidth,
     std::min(end * kWidth, count));
  });
}

// sums[i]: of chunk i.
void square_chunks(DType type, const char* x, int64_t count, int64_t chunk, double* sums) {
  const int64_t bytes = dtype_bytes(type);
  parallel_for((count + chunk - 1) / chunk, 1, [=](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i)
      sums[i] = CAIRN_DISPATCH(squares)(type, x + i * chunk * bytes, std::min(chunk, count - i * chunk));
  });
}
// One after the other, and then to the total.
void put_total(const Call& call, const double* sums, int64_t chunks) {
  double total = 0;
  for (int64_t i = 0; i < chunks; ++i) total += sums[i];
  double* const out = output<double>(call, 0);
  *out = accumulates(call, 0) ? *out + total : total;
}

}  // namespace

std::unique_ptr<Kernel> make_update(const Signature& s) {
  if (!takes_update(s, DType::kF32) || !packs_by_copy(s)) return nullptr;
  const int64_t count = s.in[update_op::kGrad].shape.elements();
  const ParameterForm form(s);
  return with_optimizer(Updates(), s, [&]<class Optimizer>(std::type_identity<Optimizer>) {
    return make_kernel([=](const Call& call) { run_update<Optimizer>(call, count, form); });
  });
}

std::unique_ptr<Kernel> make_sum_squares(const Signature& s) {
  if (!fast_float(s.in[0]) || s.out[0].dtype != DType::kF64) return nullptr;
  if (s.attrs != nullptr && s.attrs->has("threads")) return nullptr;
  const int64_t count = s.in[0].shape.elements(), blocks = (count + kSquaresBlock - 1) / kSquaresBlock;
  const DType type = s.in[0].dtype;
  return make_kernel(
      [=](const Call& call) {
        double* const partial = static_cast<double*>(call.workspace);
        square_chunks(type, input<const char>(call, 0), count, kSquaresBlock, partial);
        put_total(call, partial, blocks);
      },
      blocks * 8);
}

std::unique_ptr<Kernel> make_squares_of_chunks(const Signature& s) {
  if (!fast_float(s.in[0]) || s.out[0].dtype != DType::kF64) return nullptr;
  const int64_t count = s.in[0].shape.elements(), chunk = s.attrs->integer("chunk");
  const DType type = s.in[0].dtype;
  return make_kernel([=](const Call& call) {
    square_chunks(type, input<const char>(call, 0), count, chunk, output<double>(call, 0));
  });
}

std::unique_ptr<Kernel> make_sum_of_chunks(const Signature& s) {
  if (s.in[0].dtype != DType::kF64 || s.out[0].dtype != DType::kF64) return nullptr;
  const int64_t chunks = s.in[0].shape.elements();
  return make_kernel([=](const Call& call) { put_total(call, input<const double>(call, 0), chunks); });
}

}  // namespace cairn::kernels::cpu
#endif
