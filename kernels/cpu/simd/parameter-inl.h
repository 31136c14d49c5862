// A parameter as updates read and write it, for every Highway target: float32 where it lies, or bfloat16 that is
// widened part by part, in cache, and goes back rounded stochastically (runtime/base/optimizers/stochastic.h) or with the 16 bits
// below beside it (runtime/formats/split.h).
#if defined(CAIRN_KERNELS_CPU_PARAMETER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CAIRN_KERNELS_CPU_PARAMETER_INL_H_
#undef CAIRN_KERNELS_CPU_PARAMETER_INL_H_
#else
#define CAIRN_KERNELS_CPU_PARAMETER_INL_H_
#endif

#include <algorithm>
#include <type_traits>

#include "kernels/cpu/optimizers/parameter.h"
#include "kernels/cpu/simd/philox-inl.h"
#include "kernels/cpu/simd/simd-inl.h"
#include "runtime/formats/split.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

inline constexpr int64_t kWidenedPart = 1024;  // elements, whole blocks of what optimizers keep

HWY_INLINE void widen_parameter(const bf16* from, int64_t count, float* to) {
  for_each_vector(0, count, [&](auto t, int64_t i) { put(t, get(t, from + i), to + i); });
}

// Random numbers of 16 bits, a lane each: those of words are the lower half, then the upper one.
HWY_INLINE hn::Vec<DU> halves_at(const uint32_t* words, int64_t first) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(DU(), words[first / 2] >> (first % 2 * 16) & 0xffffu);
#else
  return hn::PromoteTo(DU(), hn::LoadU(DH(), reinterpret_cast<const uint16_t*>(words) + first));
#endif
}

// place: of the first of them.
inline void round_parameter(const ParameterPlace& place, const float* from, int64_t count) {
  constexpr int64_t kBlocks = kWidenedPart / kHalvesPerBlock + kPhiloxGroup;
  alignas(64) uint32_t words[4 * kBlocks];
  const int64_t block = place.first / kHalvesPerBlock, skip = place.first % kHalvesPerBlock;
  philox_blocks(place.key, static_cast<uint64_t>(block),
                (skip + count + kHalvesPerBlock - 1) / kHalvesPerBlock, words);
  const DU du;
  const auto exponent = hn::Set(du, 0x7f800000u);
  for_each_vector(0, count, [&](auto t, int64_t i) {
    const auto random = halves_at(words, skip + i);
    const V v = get(t, from + i);
    const auto u = hn::BitCast(du, v);
    const auto special = hn::Eq(hn::And(u, exponent), exponent);  // put() keeps them
    const auto upper = hn::And(hn::Add(u, random), hn::Set(du, 0xffff0000u));
    put(t, hn::BitCast(DF(), hn::IfThenElse(special, u, upper)), place.narrow + i);
  });
}

HWY_INLINE void join_parameter(const bf16* high, const uint16_t* low, int64_t count, float* to) {
  const DU du;
  const hn::RebindToSigned<DF> di;
  for_each_vector(0, count, [&](auto t, int64_t i) {
    if constexpr (std::is_same_v<decltype(t), Full>) {
      const V upper = get(t, high + i);
      const auto u = hn::BitCast(du, upper), bits = hn::PromoteTo(du, hn::LoadU(DH(), low + i));
      const auto below = hn::ShiftRight<16>(hn::BitCast(di, hn::ShiftLeft<16>(bits)));
      const auto nan = hn::RebindMask(du, hn::IsNaN(upper));
      const auto both = hn::IfThenElse(nan, hn::Or(u, bits), hn::Add(u, hn::BitCast(du, below)));
      put(t, hn::BitCast(DF(), both), to + i);
    } else {
      for (const int64_t end = i + static_cast<int64_t>(t.n); i < end; ++i)
        to[i] = join_halves(high[i], low[i]);
    }
  });
}

HWY_INLINE void put_halves(hn::Vec<DU> v, uint16_t* to) {
#if HWY_TARGET == HWY_SCALAR
  *to = static_cast<uint16_t>(hn::GetLane(v));
#elif HWY_TARGET == HWY_AVX2
  hn::StoreU(hn::DemoteTo(DH(), hn::BitCast(hn::RebindToSigned<DF>(), v)), DH(), to);
#else
  hn::StoreU(hn::TruncateTo(DH(), v), DH(), to);
#endif
}

HWY_INLINE void split_parameter(const float* from, int64_t count, bf16* high, uint16_t* low) {
  const DU du;
  for_each_vector(0, count, [&](auto t, int64_t i) {
    if constexpr (std::is_same_v<decltype(t), Full>) {
      const V v = get(t, from + i);
      const auto u = hn::BitCast(du, v);
      const auto quiet = hn::Or(hn::ShiftRight<16>(u), hn::Set(du, 0x40));
      const auto near = hn::ShiftRight<16>(hn::Add(u, hn::Set(du, 0x8000)));
      put_halves(hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), quiet, near),
                 reinterpret_cast<uint16_t*>(high + i));
      put_halves(hn::And(u, hn::Set(du, 0xffff)), low + i);
    } else {
      for (const int64_t end = i + static_cast<int64_t>(t.n); i < end; ++i) {
        high[i] = high_half(from[i]);
        low[i] = low_half(from[i]);
      }
    }
  });
}

// Elements [begin, begin + count) of a parameter that is not plain, and back.
HWY_INLINE void fetch_part(const ParameterPlace& place, int64_t begin, int64_t count, float* to) {
  if (place.low != nullptr)
    join_parameter(place.narrow + begin, place.low + begin, count, to);
  else
    widen_parameter(place.narrow + begin, count, to);
}
HWY_INLINE void store_part(const ParameterPlace& place, int64_t begin, int64_t count, const float* from) {
  if (place.low != nullptr)
    split_parameter(from, count, place.narrow + begin, place.low + begin);
  else
    round_parameter(place.from(begin), from, count);
}

// Of a plain one, while it is in cache.
HWY_INLINE void copy_part(const ParameterPlace& place, int64_t begin, int64_t count) {
  const float* const from = place.plain + begin;
  const auto round = [&](auto* to) {
    for_each_vector(0, count, [&](auto t, int64_t i) { put(t, get(t, from + i), to + i); });
  };
  if (place.copy_type == DType::kF16)
    round(reinterpret_cast<f16*>(place.copy + begin));
  else
    round(reinterpret_cast<bf16*>(place.copy + begin));
}

// body(p, begin, end): for parts of [begin, end) in order, where p is the float32 of element `begin` of each. kWrites:
// what the body leaves in p is the parameter then.
template <bool kWrites = true, class Body>
HWY_INLINE void for_each_part(const ParameterPlace& place, int64_t begin, int64_t end, const Body& body) {
  if (place.plain != nullptr && place.copy == nullptr) return body(place.plain + begin, begin, end);
  if (place.plain != nullptr) {
    for (; begin < end; begin += kWidenedPart) {
      const int64_t count = std::min(kWidenedPart, end - begin);
      body(place.plain + begin, begin, begin + count);
      copy_part(place, begin, count);
    }
    return;
  }
  alignas(64) float own[kWidenedPart];
  for (; begin < end; begin += kWidenedPart) {
    const int64_t count = std::min(kWidenedPart, end - begin);
    fetch_part(place, begin, count, own);
    body(own, begin, begin + count);
    if constexpr (kWrites) store_part(place, begin, count, own);
  }
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
