#include "kernels/cpu/pictures/pair_rows.h"

#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pictures/pair_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd/activation-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

// of(s): the loss of a pair; slope(s, loss): its derivative.
template <class Of, class Slope>
PairSums pairs(const PairLoss& z, float* p, int64_t n, const Of& of, const Slope& slope) {
  const V zero = hn::Zero(DF()), scale = set(z.scale), bias = set(z.bias), factor = set(z.factor);
  V losses = zero, ds = zero, along = zero;
  for_each_vector(0, n, [&](auto t, int64_t i) HWY_ATTR {
    const V product = get(t, p + i), s = hn::MulAdd(scale, product, bias);
    const V loss = of(s);
    losses = hn::Add(losses, keep(t, loss, zero));
    if (!z.gradient) return;
    const V d = keep(t, slope(s, loss), zero);
    ds = hn::Add(ds, d);
    along = hn::MulAdd(d, product, along);
    put(t, hn::Mul(d, factor), p + i);
  });
  return {sum_lanes(losses), sum_lanes(ds), sum_lanes(along)};
}

PairSums other_pairs_dispatch(const PairLoss& z, float* p, int64_t n, float own) {
  if (!z.triplet)
    return pairs(
        z, p, n, [](V s) HWY_ATTR { return softplus(s); }, [](V s, V) HWY_ATTR { return sigmoid(s); });
  // A NaN is a loss.
  const V zero = hn::Zero(DF()), below = set(z.margin - (z.scale * own + z.bias));
  return pairs(
      z, p, n,
      [&](V s) HWY_ATTR {
        const V loss = hn::Add(s, below);
        return hn::IfThenZeroElse(hn::Le(loss, zero), loss);
      },
      [&](V, V loss) HWY_ATTR { return hn::IfThenZeroElse(hn::Eq(loss, zero), set(1.0f)); });
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cairn::kernels::cpu {
HWY_EXPORT(other_pairs_dispatch);

PairSums other_pairs(const PairLoss& z, float* products, int64_t n, float own) {
  return CAIRN_DISPATCH(other_pairs_dispatch)(z, products, n, own);
}
}  // namespace cairn::kernels::cpu
#endif
