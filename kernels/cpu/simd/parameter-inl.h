// A parameter as updates read and write it, for every Highway target: float32 where it lies, or bfloat16 that is
// widened part by part, in cache, and rounded stochastically when it goes back (runtime/base/stochastic.h).
#if defined(CAIRN_KERNELS_CPU_PARAMETER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CAIRN_KERNELS_CPU_PARAMETER_INL_H_
#undef CAIRN_KERNELS_CPU_PARAMETER_INL_H_
#else
#define CAIRN_KERNELS_CPU_PARAMETER_INL_H_
#endif

#include <algorithm>

#include "kernels/cpu/optimizers/parameter.h"
#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

inline constexpr int64_t kWidenedPart = 1024;  // elements, whole blocks of what optimizers keep

HWY_INLINE void widen_parameter(const bf16* from, int64_t count, float* to) {
  for_each_vector(0, count, [&](auto t, int64_t i) { put(t, get(t, from + i), to + i); });
}

// place: of the first of them.
inline void round_parameter(const ParameterPlace& place, const float* from, int64_t count) {
  constexpr int64_t kBlocks = kWidenedPart / kHalvesPerBlock + 1;
  alignas(64) uint32_t words[kBlocks * 4 + kMaxLanes];
  const int64_t block = place.first / kHalvesPerBlock, skip = place.first % kHalvesPerBlock;
  const int64_t blocks = (skip + count + kHalvesPerBlock - 1) / kHalvesPerBlock;
  for (int64_t b = 0; b < blocks; ++b) {  // the compiler makes vectors of blocks side by side
    const PhiloxBlock bits = random_block(place.key, static_cast<uint64_t>(block + b));
    for (int j = 0; j < 4; ++j) words[b * 4 + j] = bits[static_cast<size_t>(j)];
  }
  const DU du;
  const auto exponent = hn::Set(du, 0x7f800000u);
  for_each_vector(0, count, [&](auto t, int64_t i) {
    uint32_t random[kMaxLanes];
    for (int64_t k = 0; k < lanes(); ++k) {
      const int64_t half = skip + i + k;
      random[k] = words[half / 2] >> (half % 2 * 16) & 0xffffu;
    }
    const V v = get(t, from + i);
    const auto u = hn::BitCast(du, v);
    const auto special = hn::Eq(hn::And(u, exponent), exponent);  // put() keeps them
    const auto upper = hn::And(hn::Add(u, hn::LoadU(du, random)), hn::Set(du, 0xffff0000u));
    put(t, hn::BitCast(DF(), hn::IfThenElse(special, u, upper)), place.rounded + i);
  });
}

// body(p, begin, end): for parts of [begin, end) in order, where p is the float32 of element `begin` of each.
template <class Body>
HWY_INLINE void for_each_part(const ParameterPlace& place, int64_t begin, int64_t end, const Body& body) {
  if (place.plain != nullptr) return body(place.plain + begin, begin, end);
  alignas(64) float own[kWidenedPart];
  for (; begin < end; begin += kWidenedPart) {
    const int64_t count = std::min(kWidenedPart, end - begin);
    widen_parameter(place.rounded + begin, count, own);
    body(own, begin, begin + count);
    round_parameter(place.from(begin), own, count);
  }
}
// The same for a body that only reads.
template <class Body>
HWY_INLINE void for_each_part_read(const ParameterPlace& place, int64_t begin, int64_t end,
                                   const Body& body) {
  if (place.plain != nullptr) return body(place.plain + begin, begin, end);
  alignas(64) float own[kWidenedPart];
  for (; begin < end; begin += kWidenedPart) {
    const int64_t count = std::min(kWidenedPart, end - begin);
    widen_parameter(place.rounded + begin, count, own);
    body(own, begin, begin + count);
  }
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
