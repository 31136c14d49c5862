// The blocks of runtime/base/random.h, as many side by side as a vector has lanes, for every Highway target.
#if defined(CAIRN_KERNELS_CPU_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CAIRN_KERNELS_CPU_PHILOX_INL_H_
#undef CAIRN_KERNELS_CPU_PHILOX_INL_H_
#else
#define CAIRN_KERNELS_CPU_PHILOX_INL_H_
#endif

#include "kernels/cpu/simd/simd-inl.h"
#include "runtime/base/random.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

// A multiple of every vector's lanes.
inline constexpr int64_t kPhiloxGroup = 16;

#if HWY_TARGET == HWY_SCALAR
inline void philox_group(const RandomKey& key, uint64_t first, uint32_t* words) {
  for (int64_t b = 0; b < kPhiloxGroup; ++b) {
    const PhiloxBlock bits = random_block(key, first + static_cast<uint64_t>(b));
    for (int64_t j = 0; j < 4; ++j) words[4 * b + j] = bits[static_cast<size_t>(j)];
  }
}
#else
using Words = hn::Vec<DU>;

// The upper halves of the products of 32 bits.
HWY_INLINE Words multiply_high(Words a, Words b) {
  const DU du;
  const hn::RepartitionToWide<DU> wide;
  const auto upper = [&](Words v) { return hn::BitCast(du, hn::ShiftRight<32>(hn::BitCast(wide, v))); };
  const auto even = hn::MulEven(a, b), odd = hn::MulEven(upper(a), upper(b));
  return hn::OddEven(hn::BitCast(du, odd), hn::BitCast(du, hn::ShiftRight<32>(even)));
}

// Blocks first, first + 1, ...: words of each, one block after the other.
inline void philox_group(const RandomKey& key, uint64_t first, uint32_t* words) {
  const DU du;
  const auto n = static_cast<int64_t>(hn::Lanes(du));
  alignas(64) uint32_t low[kPhiloxGroup], high[kPhiloxGroup];
  for (int64_t b = 0; b < kPhiloxGroup; ++b) {
    const PhiloxBlock counter = random_counter(key, first + static_cast<uint64_t>(b));
    low[b] = counter[0];
    high[b] = counter[1];
  }
  const PhiloxBlock same = random_counter(key, first);
  for (int64_t b = 0; b < kPhiloxGroup; b += n) {
    Words c0 = hn::Load(du, low + b), c1 = hn::Load(du, high + b), c2 = hn::Set(du, same[2]),
          c3 = hn::Set(du, same[3]);
    auto key0 = static_cast<uint32_t>(key.seed), key1 = static_cast<uint32_t>(key.seed >> 32);
    const Words m0 = hn::Set(du, kPhiloxMultiplier0), m1 = hn::Set(du, kPhiloxMultiplier1);
    for (int round = 0; round < kPhiloxRounds; ++round, key0 += kPhiloxStep0, key1 += kPhiloxStep1) {
      const Words high0 = multiply_high(c0, m0), high1 = multiply_high(c2, m1);
      const Words low0 = hn::Mul(c0, m0), low1 = hn::Mul(c2, m1);
      c0 = hn::Xor(hn::Xor(high1, c1), hn::Set(du, key0));
      c1 = low1;
      c2 = hn::Xor(hn::Xor(high0, c3), hn::Set(du, key1));
      c3 = low0;
    }
    hn::StoreInterleaved4(c0, c1, c2, c3, du, words + 4 * b);
  }
}
#endif

// Words of `count` blocks from `first` on; there is room for full groups.
HWY_INLINE void philox_blocks(const RandomKey& key, uint64_t first, int64_t count, uint32_t* words) {
  for (int64_t b = 0; b < count; b += kPhiloxGroup)
    philox_group(key, first + static_cast<uint64_t>(b), words + 4 * b);
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
