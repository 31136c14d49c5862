// Sums of many terms: blocks of them, each one chain of additions, and a total of the blocks that loses next to
// nothing. Vectors or several of them (several-inl.h).
#if defined(CAIRN_KERNELS_CPU_LONG_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CAIRN_KERNELS_CPU_LONG_SUMS_INL_H_
#undef CAIRN_KERNELS_CPU_LONG_SUMS_INL_H_
#else
#define CAIRN_KERNELS_CPU_LONG_SUMS_INL_H_
#endif

#include <algorithm>

#include "kernels/cpu/simd/several-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

// A total is high + low: low collects the rounding errors of additions to high (Knuth's TwoSum).
template <class A>
HWY_INLINE void add_to_total(A& high, A& low, A block) {
  const A sum = add(high, block), back = sub(sum, high);
  low = add(low, add(sub(high, sub(sum, back)), sub(block, back)));
  high = sum;
}
// As one number. For an infinite high, low is NaN and must not be added.
HWY_INLINE V rounded_total(V high, V low) {
  return hn::IfThenElse(hn::IsFinite(high), hn::Add(high, low), high);
}

// Along a row: so many elements are one chain of additions to a vector; of more, blocks of kRowBlock.
inline constexpr int64_t kRowChain = 64 << 10, kRowBlock = 512;

// A sum over a row of n elements, in lanes: body(t, i), which begins with CAIRN_ADDS, adds those of vector t at i to
// `sum`, which is 0.
#undef CAIRN_ADDS
#define CAIRN_ADDS [&](auto t, int64_t i) HWY_ATTR __attribute__((always_inline))
template <class A, class Body>
HWY_INLINE void sum_row(int64_t n, A& sum, const Body& body) {
  if (n <= kRowChain) return for_each_vector(0, n, body);
  const A zero = sum;
  A high = zero, low = zero;
  for (int64_t b = 0; b < n; b += kRowBlock) {
    sum = zero;
    for_each_vector(b, std::min(n, b + kRowBlock), body);
    add_to_total(high, low, sum);
  }
  sum = each(CAIRN_FUNCTION(rounded_total), high, low);
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
