// Blocks of the 8-bit dynamic formats (runtime/formats/dynamic8.h) to and from vectors of float32. Within a decade
// places are steps of one size, so that what is nearest to a number follows from its decade by a product and a
// sum: it is off only for numbers that lie, to float32's precision, in the middle between two.
#ifndef CAIRN_KERNELS_CPU_DYNAMIC_ZONES_
#define CAIRN_KERNELS_CPU_DYNAMIC_ZONES_
#include "runtime/formats/dynamic8.h"

namespace cairn::kernels::cpu {

// Zones of magnitudes, from below: what is nearest to 0, the seven decades, what is nearest to 1. The place is
// min(slope x + offset, last), truncated.
struct DynamicZones {
  static constexpr int kZones = 9, kSize = 16;  // those behind the last are as it is
  float edges[kSize];                           // above which a zone ends
  float slopes[kSize], offsets[kSize], lasts[kSize];
  // The other way: a place is a power of two, which says the zone, and j; its number is step j + base.
  float steps[kSize], bases[kSize];

  constexpr explicit DynamicZones(const DynamicMap& map)
      : edges{}, slopes{}, offsets{}, lasts{}, steps{}, bases{} {
    double top = 1e-6;  // of the decade
    int first = 1, n = map.zero > 0 ? 1 : 2;
    for (int zone = 1; zone < kZones - 1; ++zone, first += n, n *= 2, top *= 10) {
      edges[zone - 1] = map.middles[first - 1];
      slopes[zone] = static_cast<float>(n / (0.9 * top));
      offsets[zone] = static_cast<float>(first - n / 9.0);
      lasts[zone] = static_cast<float>(first + n - 1);
      steps[zone] = static_cast<float>(0.9 * top / n);
      bases[zone] = static_cast<float>(top * (0.1 + 0.45 / n));
    }
    edges[kZones - 2] = map.middles[map.most - 1];
    for (int zone = kZones - 1; zone < kSize; ++zone) {
      offsets[zone] = lasts[zone] = static_cast<float>(map.most);
      bases[zone] = 1.0f;
    }
  }
};
inline constexpr DynamicZones kDynamicZones{kDynamicMap}, kUnsignedDynamicZones{kUnsignedDynamicMap};

}  // namespace cairn::kernels::cpu
#endif

#if defined(CAIRN_KERNELS_CPU_DYNAMIC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CAIRN_KERNELS_CPU_DYNAMIC_INL_H_
#undef CAIRN_KERNELS_CPU_DYNAMIC_INL_H_
#else
#define CAIRN_KERNELS_CPU_DYNAMIC_INL_H_
#endif

#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

using DI = hn::RebindToSigned<DF>;
using DB = hn::Rebind<uint8_t, DF>;

// kSigned: which of the maps.
template <bool kSigned>
constexpr const DynamicMap& map_of() {
  return kSigned ? kDynamicMap : kUnsignedDynamicMap;
}

// Of zones: table[zone]. With vectors of eight the table ends before the last zone.
template <class Zones>
HWY_INLINE V of_zone(const float* table, const Zones& zones) {
  const DF d;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return hn::TableLookupLanes(hn::LoadU(d, table), hn::IndicesFromVec(d, zones));
#else
  return hn::GatherIndex(d, table, zones);
#endif
}

// The numbers of one vector's codes, times the scale: within two units of the last place of the map's.
template <bool kSigned>
HWY_INLINE V decode(const uint8_t* codes, V scale) {
  constexpr const DynamicZones& zones = kSigned ? kDynamicZones : kUnsignedDynamicZones;
  const DF d;
  const DI di;
  const auto code = hn::PromoteTo(di, hn::LoadU(DB(), codes));
  // So that decades begin at powers of two: those of the unsigned map hold twice as many.
  const auto place = kSigned ? hn::Sub(code, hn::Set(di, kDynamicMap.zero)) : hn::Add(code, hn::Set(di, 1));
  const V count = hn::ConvertTo(d, hn::Abs(place));
  const auto bits = hn::BitCast(di, count);
  auto zone = hn::Sub(hn::ShiftRight<23>(bits), hn::Set(di, kSigned ? 126 : 127));
  if constexpr (kSigned) zone = hn::Max(zone, hn::Zero(di));  // of 0
#if HWY_TARGET == HWY_AVX2
  const auto is_last = hn::RebindMask(d, hn::Eq(zone, hn::Set(di, DynamicZones::kZones - 1)));
  zone = hn::And(zone, hn::Set(di, 7));
#endif
  const V power = hn::BitCast(d, hn::And(bits, hn::Set(di, 0x7f800000)));
  V number = hn::MulAdd(hn::Sub(count, power), of_zone(zones.steps, zone), of_zone(zones.bases, zone));
#if HWY_TARGET == HWY_AVX2
  number = hn::IfThenElse(is_last, set(1.0f), number);
#endif
  if constexpr (kSigned) number = hn::CopySign(number, hn::BitCast(d, place));
  return hn::Mul(number, scale);
}

template <bool kSigned>
HWY_INLINE void encode(V x, uint8_t* codes) {
  constexpr const DynamicZones& zones = kSigned ? kDynamicZones : kUnsignedDynamicZones;
  constexpr int kZero = map_of<kSigned>().zero;
  constexpr float kLog10Of2 = 0.30103f;
  const DF d;
  const DI di;
  const V magnitude = hn::Abs(x);
  // The bits of a number are its logarithm, or up to 0.09 less: with these constants its zone or the one below.
  const V bits = hn::ConvertTo(d, hn::BitCast(di, magnitude));
  const V about = hn::MulAdd(bits, set(kLog10Of2 * 0x1p-23f), set(7.3f - 127 * kLog10Of2));
  const auto below = hn::And(hn::ConvertTo(di, hn::Max(about, hn::Zero(d))), hn::Set(di, 7));
  const auto passed = hn::RebindMask(di, hn::Gt(magnitude, of_zone(zones.edges, below)));
  auto zone = hn::Sub(below, hn::VecFromMask(di, passed));  // a true mask is -1
#if HWY_TARGET == HWY_AVX2
  const auto is_last = hn::Eq(zone, hn::Set(di, DynamicZones::kZones - 1));
  zone = hn::And(zone, hn::Set(di, 7));
#endif
  const V line = hn::MulAdd(magnitude, of_zone(zones.slopes, zone), of_zone(zones.offsets, zone));
  auto place = hn::ConvertTo(di, hn::Min(line, of_zone(zones.lasts, zone)));
#if HWY_TARGET == HWY_AVX2
  place = hn::IfThenElse(is_last, hn::Set(di, map_of<kSigned>().most), place);
#endif
  if constexpr (kSigned) {
    const auto negative = hn::RebindMask(di, hn::Lt(x, hn::Zero(d)));
    const auto kept = hn::Min(hn::Max(place, hn::Set(di, 1)), hn::Set(di, kZero));
    place = hn::Add(hn::Set(di, kZero), hn::IfThenElse(negative, hn::Neg(kept), place));
  }
  hn::StoreU(hn::TruncateTo(DB(), hn::BitCast(DU(), place)), DB(), codes);
}

// The block's scale, which is its numbers' largest magnitude, and the codes.
template <bool kSigned>
HWY_INLINE void encode_block(const float* from, V largest, DynamicBlock& to) {
  to.scale = max_lanes(largest);
  const DynamicFactors factors = dynamic_factors(to.scale);
  const V first = set(factors.first), second = set(factors.second);
  for (int64_t i = 0; i < kDynamicBlock; i += lanes())
    encode<kSigned>(hn::Mul(hn::Mul(get(Full(), from + i), first), second), to.codes + i);
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
