#include "kernels/cpu/simd/blocks.h"

#include <algorithm>

#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/simd/targets.h"
#include "runtime/formats/codecs.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/blocks.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd/blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

// Fewer values than a unit has.
template <class Of, class Value, class Stored>
HWY_NOINLINE void decode_some(const typename Of::Block* blocks, int64_t at, int64_t end, Stored* out) {
  for (; at < end; ++at)
    *out++ = stored_as<Value, Stored>(Of::decode(blocks[at / Of::kBlock], static_cast<int>(at % Of::kBlock)));
}

// From `at` up to `end`, which are multiples of what the unit has.
template <class Units, class Of, class Value, class Stored>
HWY_INLINE void decode_units(const typename Of::Block* blocks, int64_t at, int64_t end, Stored* out) {
  constexpr auto kBlock = static_cast<uint64_t>(Of::kBlock);
  for (; at < end; at += Units::kValues, out += Units::kValues) {
    const auto value = static_cast<uint64_t>(at);
    Units::template decode<Value>(blocks + value / kBlock, static_cast<int>(value % kBlock), out);
  }
}

template <class Of, class Value, class Stored>
void rows_typed(const BlockRows& from, Stored* to, int64_t ld) {
  constexpr int64_t kUnit = Unit<Of>::kValues, kSmall = SmallUnit<Of>::kValues, kBlock = Of::kBlock;
  static_assert((kBlock % kUnit == 0 || kUnit % kBlock == 0) && kUnit % kSmall == 0);
  const auto* const blocks = static_cast<const typename Of::Block*>(from.blocks);
  if ((from.first | from.pitch | from.count) % kUnit == 0) {
    for (int64_t r = 0, at = from.first; r < from.rows; ++r, to += ld, at += from.pitch)
      decode_units<Unit<Of>, Of, Value>(blocks, at, at + from.count, to);
    return;
  }
  for (int64_t r = 0; r < from.rows; ++r, to += ld) {
    const int64_t begin = from.first + r * from.pitch, end = begin + from.count;
    // [small, small_end) are small units, and within these [units, units_end) units.
    const int64_t small = std::min(end, (begin + kSmall - 1) / kSmall * kSmall),
                  small_end = std::max(small, end / kSmall * kSmall),
                  units = std::min(small_end, (small + kUnit - 1) / kUnit * kUnit),
                  units_end = std::max(units, small_end / kUnit * kUnit);
    const auto out = [&](int64_t at) { return to + (at - begin); };
    if (begin < small) decode_some<Of, Value>(blocks, begin, small, out(begin));
    decode_units<SmallUnit<Of>, Of, Value>(blocks, small, units, out(small));
    decode_units<Unit<Of>, Of, Value>(blocks, units, units_end, out(units));
    decode_units<SmallUnit<Of>, Of, Value>(blocks, units_end, small_end, out(units_end));
    if (small_end < end) decode_some<Of, Value>(blocks, small_end, end, out(small_end));
  }
}

void decode_rows_dispatch(const BlockRows& from, DecodedAs as, void* to, int64_t ld) {
  formats::with_dequantised(from.format, [&](auto codec) {
    using Of = decltype(codec);
    if (as.value == DType::kBF16 && as.stored == DType::kF32)
      rows_typed<Of, bf16>(from, static_cast<float*>(to), ld);
#if HWY_TARGET == HWY_AVX3
    else if (as.value == DType::kBF16 && has_bf16_products())
      rows_typed<Of, QuickBf16>(from, static_cast<bf16*>(to), ld);
#endif
    else
      with_float(as.value, [&](auto zero) {
        using T = decltype(zero);
        rows_typed<Of, T>(from, static_cast<T*>(to), ld);
      });
  });
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cairn::kernels::cpu {
HWY_EXPORT(decode_rows_dispatch);
void decode_rows(const BlockRows& from, DecodedAs as, void* to, int64_t ld) {
  CAIRN_DISPATCH(decode_rows_dispatch)(from, as, to, ld);
}
}  // namespace cairn::kernels::cpu
#endif
