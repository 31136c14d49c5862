// AdamW and the sum of squares: one pass over memory each.
#include "kernels/cpu/optimizer.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/optimizer.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

// The order of operations of torch.optim.AdamW.
void adamw_range(const AdamwFactors& f, const float* grad, float* p, float* m, float* v, int64_t n) {
  sweep(0, n, [&](auto t, int64_t i) {
    const V g = hn::Mul(get(t, grad + i), set(f.gradient));
    const V m0 = get(t, m + i);
    const V m1 = hn::MulAdd(hn::Sub(g, m0), set(f.one_minus_beta1), m0);
    const V v1 = hn::MulAdd(hn::Mul(g, g), set(f.one_minus_beta2), hn::Mul(get(t, v + i), set(f.beta2)));
    const V denominator = hn::Add(hn::Div(hn::Sqrt(v1), set(f.root_bias2)), set(f.eps));
    const V decayed = hn::Mul(get(t, p + i), set(f.decay));
    put(t, hn::NegMulAdd(set(f.step), hn::Div(m1, denominator), decayed), p + i);
    put(t, m1, m + i);
    put(t, v1, v + i);
  });
}

// Squares of float32 are exact in float64. 32 sums, one for each place in a group of 32: the same for every
// vector length, added up in one order.
template <class T>
double squares_typed(const T* x, int64_t n) {
  constexpr int64_t kSums = 32;
  double sums[kSums] = {};
  int64_t i = 0;
#if HWY_TARGET == HWY_AVX3
  const hn::ScalableTag<double> dd;
  const hn::Half<DF> dh;
  auto s0 = hn::Zero(dd), s1 = s0, s2 = s0, s3 = s0;
  const auto add = [&](V v, auto& low, auto& high) {
    const auto l = hn::PromoteTo(dd, hn::LowerHalf(dh, v)), h = hn::PromoteTo(dd, hn::UpperHalf(dh, v));
    low = hn::MulAdd(l, l, low);
    high = hn::MulAdd(h, h, high);
  };
  for (; i + kSums <= n; i += kSums) {
    add(get(Full(), x + i), s0, s1);
    add(get(Full(), x + i + 16), s2, s3);
  }
  hn::StoreU(s0, dd, sums);
  hn::StoreU(s1, dd, sums + 8);
  hn::StoreU(s2, dd, sums + 16);
  hn::StoreU(s3, dd, sums + 24);
#endif
  for (; i < n; ++i) {
    double v;
    if constexpr (sizeof(T) == 2)
      v = to_float(x[i]);
    else
      v = x[i];
    sums[i % kSums] += v * v;
  }
  for (int64_t width = kSums / 2; width > 0; width /= 2)
    for (int64_t j = 0; j < width; ++j) sums[j] += sums[j + width];
  return sums[0];
}
double squares(bool half, const void* x, int64_t n) {
  return half ? squares_typed(static_cast<const bf16*>(x), n)
              : squares_typed(static_cast<const float*>(x), n);
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/rows.h"
#include "kernels/cpu/support.h"

namespace cairn::kernels::cpu {

HWY_EXPORT(adamw_range);
HWY_EXPORT(squares);

namespace {

bool takes_adamw(const Signature& s) {
  return plain_f32(s.in[0]) && plain_f32(s.out[0]) && plain_f32(s.out[1]) && plain_f32(s.out[2]);
}

void adamw(const Call& call, int64_t count, double factor) {
  const double* hyper = input<const double>(call, 1);
  const double rate = hyper[0], beta1 = hyper[1], beta2 = hyper[2], eps = hyper[3], decay = hyper[4];
  const AdamwFactors f{.gradient = static_cast<float>(factor),
                       .one_minus_beta1 = static_cast<float>(1 - beta1),
                       .beta2 = static_cast<float>(beta2),
                       .one_minus_beta2 = static_cast<float>(1 - beta2),
                       .root_bias2 = static_cast<float>(std::sqrt(hyper[6])),
                       .eps = static_cast<float>(eps),
                       .decay = static_cast<float>(1 - rate * decay),
                       .step = static_cast<float>(rate / hyper[5])};
  const float* grad = input<const float>(call, 0);
  float *p = output<float>(call, 0), *m = output<float>(call, 1), *v = output<float>(call, 2);
  parallel_for(count, kGrain, [&](int64_t b, int64_t e, int) {
    CAIRN_DISPATCH(adamw_range)(f, grad + b, p + b, m + b, v + b, e - b);
  });
}

}  // namespace

std::unique_ptr<Kernel> make_adamw(const Signature& s) {
  if (!takes_adamw(s) || s.has_out(3)) return nullptr;  // packs are made by a kernel of their own
  const int64_t count = s.in[0].shape.elements();
  return make_kernel([=](const Call& call) { adamw(call, count, input<const double>(call, 1)[7]); });
}

std::unique_ptr<Kernel> make_adamw_gated(const Signature& s) {
  if (!takes_adamw(s) || s.in[2].dtype != DType::kF64 || s.out[3].dtype != DType::kF64) return nullptr;
  const int64_t count = s.in[0].shape.elements();
  return make_kernel([=](const Call& call) {
    double& gate = *output<double>(call, 3);
    if (!std::isfinite(*input<const double>(call, 2))) gate = std::numeric_limits<double>::quiet_NaN();
    if (std::isfinite(gate)) adamw(call, count, gate);
  });
}

std::unique_ptr<Kernel> make_sum_squares(const Signature& s) {
  if (!fast_float(s.in[0]) || s.out[0].dtype != DType::kF64) return nullptr;
  constexpr int64_t kBlock = 64 << 10;
  const int64_t count = s.in[0].shape.elements(), bytes = dtype_bytes(s.in[0].dtype);
  const int64_t blocks = (count + kBlock - 1) / kBlock;
  const bool half = is_bf16(s.in[0]);
  return make_kernel(
      [=](const Call& call) {
        const char* x = input<const char>(call, 0);
        double* partial = static_cast<double*>(call.workspace);
        parallel_for(blocks, 1, [&](int64_t b, int64_t e, int) {
          for (int64_t i = b; i < e; ++i)
            partial[i] =
                CAIRN_DISPATCH(squares)(half, x + i * kBlock * bytes, std::min(kBlock, count - i * kBlock));
        });
        double total = 0;
        for (int64_t i = 0; i < blocks; ++i) total += partial[i];
        double* out = output<double>(call, 0);
        *out = accumulates(call, 0) ? *out + total : total;
      },
      blocks * 8);
}

}  // namespace cairn::kernels::cpu
#endif
