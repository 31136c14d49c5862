#include "kernels/cpu/simd/long_sums.h"

#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/long_sums.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd/long_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

void end_block_dispatch(float* sums, float* high, float* low, int64_t n) {
  for_each_vector(0, n, [&](auto t, int64_t i) {
    V h = get(t, high + i), l = get(t, low + i);
    add_to_total(h, l, get(t, sums + i));
    put(t, h, high + i);
    put(t, l, low + i);
    put(t, hn::Zero(DF()), sums + i);
  });
}
void end_totals_dispatch(float* sums, const float* high, const float* low, int64_t n) {
  for_each_vector(
      0, n, [&](auto t, int64_t i) { put(t, rounded_total(get(t, high + i), get(t, low + i)), sums + i); });
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cairn::kernels::cpu {

HWY_EXPORT(end_block_dispatch);
HWY_EXPORT(end_totals_dispatch);

void end_block(float* sums, float* high, float* low, int64_t n) {
  CAIRN_DISPATCH(end_block_dispatch)(sums, high, low, n);
}
void end_totals(float* sums, const float* high, const float* low, int64_t n) {
  CAIRN_DISPATCH(end_totals_dispatch)(sums, high, low, n);
}

}  // namespace cairn::kernels::cpu
#endif
