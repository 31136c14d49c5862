// What decoding by vectors of AVX-512 is made of: rounding to bfloat16, and codes of 4 bits that are looked up in lists of 16
// values. Included inside foreach_target files (per-target include guard).
#if defined(CAIRN_KERNELS_CPU_SIMD_BLOCK_LISTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CAIRN_KERNELS_CPU_SIMD_BLOCK_LISTS_INL_H_
#undef CAIRN_KERNELS_CPU_SIMD_BLOCK_LISTS_INL_H_
#else
#define CAIRN_KERNELS_CPU_SIMD_BLOCK_LISTS_INL_H_
#endif

#include <type_traits>

#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

// bfloat16 where the processor rounds to it in one step, which takes denormals as zero.
struct QuickBf16 {};

// A value rounded to Value, as Stored has it: the same type, or float.
template <class Value, class Stored>
HWY_INLINE Stored stored_as(float value) {
  using Rounded = std::conditional_t<std::is_same_v<Value, QuickBf16>, bf16, Value>;
  return round_to<Stored>(to_float(round_to<Rounded>(value)));
}

#if HWY_TARGET == HWY_AVX3

HWY_INLINE __m128i load16(const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); }
HWY_INLINE __m256i load32(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
// A number of 16 bits in all elements. Scales are often denormals, which this instruction takes as fast as others.
HWY_INLINE __m512 spread(f16 v) { return _mm512_cvtph_ps(_mm256_set1_epi16(static_cast<int16_t>(v.bits))); }
HWY_INLINE bool is_usual(f16 v) { return (v.bits & 0x7c00u) != 0x7c00u; }
// No NaN, and not so small that products with it may be denormals.
HWY_INLINE bool is_usual(float v) { return v >= 0x1p-90f || v <= -0x1p-90f || v == 0; }
HWY_INLINE __m512 scaled(__m512 v, float scale) { return _mm512_mul_ps(v, _mm512_set1_ps(scale)); }

// bfloat16 in the upper halves of elements, of numbers that are no NaN but one that arithmetic makes.
HWY_INLINE __m512i rounded(__m512 v) {
  const __m512i u = _mm512_castps_si512(v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
  return _mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd);
}
HWY_INLINE __m512i upper_halves(__m512i v) {
  return _mm512_and_si512(v, _mm512_set1_epi32(static_cast<int>(0xffff0000u)));
}
// 32 values in bfloat16.
template <class Value>
HWY_INLINE __m512i words(__m512 first, __m512 last) {
  if constexpr (std::is_same_v<Value, QuickBf16>) {
    __m512i both;  // no intrinsic: these functions are compiled for processors without it, too
    __asm__("vcvtne2ps2bf16 %1, %2, %0" : "=v"(both) : "v"(first), "v"(last));
    return both;
  } else {
    return _mm512_permutex2var_epi16(rounded(first), _mm512_load_si512(kUpperHalves), rounded(last));
  }
}

// 16 values.
template <class Value, class Stored>
HWY_INLINE void emit(__m512 v, Stored* out) {
  if constexpr (std::is_same_v<Value, Stored>)
    put(Full(), V{v}, out);
  else
    _mm512_storeu_si512(out, upper_halves(rounded(v)));
}

template <class Value, class Stored>
HWY_INLINE void put32(__m512 first, __m512 last, Stored* out) {
  if constexpr (std::is_same_v<Stored, bf16>) {
    _mm512_storeu_si512(out, words<Value>(first, last));
  } else {
    emit<Value>(first, out);
    emit<Value>(last, out + 16);
  }
}

// The order of codes of 4 bits in memory: value j and the next one in a byte, the first in the upper bits; j and j + 16 of
// each 32, the first in the lower bits; j and j + 32 of each 64.
enum class Order : uint8_t { kPairs, kHalves, kSplit };

// 64 codes of 4 bits, each of which names one of 16 values: the first 32 one of `a`, the others one of `b`. p, q: where the
// codes of these begin; in kSplit, where all begin and 16 bytes later.
template <Order kOrder, class Value, class Stored>
HWY_INLINE void look_up(const uint8_t* p, const uint8_t* q, __m512 a, __m512 b, Stored* out) {
  const __m128i mask = _mm_set1_epi8(15), first = load16(p), second = load16(q);
  const __m128i low = _mm_and_si128(first, mask), high = _mm_and_si128(_mm_srli_epi16(first, 4), mask),
                low2 = _mm_and_si128(second, mask), high2 = _mm_and_si128(_mm_srli_epi16(second, 4), mask);
  const auto put16 = [](__m512 list, __m128i codes, Stored* to) {
    emit<Value>(_mm512_permutexvar_ps(_mm512_cvtepu8_epi32(codes), list), to);
  };
  if constexpr (kOrder == Order::kPairs) {
    put16(a, _mm_unpacklo_epi8(high, low), out);
    put16(a, _mm_unpackhi_epi8(high, low), out + 16);
    put16(b, _mm_unpacklo_epi8(high2, low2), out + 32);
    put16(b, _mm_unpackhi_epi8(high2, low2), out + 48);
  } else {
    put16(a, low, out);
    put16(a, kOrder == Order::kHalves ? high : low2, out + 16);
    put16(b, kOrder == Order::kHalves ? low2 : high, out + 32);
    put16(b, high2, out + 48);
  }
}

// The values as bfloat16, byte by byte: a list of the lower and one of the upper bytes, in each lane; two lanes have those of
// `a`, the others those of `b`.
struct ByteLists {
  __m512i lower, upper;
  HWY_INLINE explicit ByteLists(__m512i words_of_both) {
    const __m512i bytes = _mm512_shuffle_epi8(
        words_of_both,
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15)));
    lower = _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 0, 2, 4, 6, 4, 6), bytes);
    upper = _mm512_permutexvar_epi64(_mm512_setr_epi64(1, 3, 1, 3, 5, 7, 5, 7), bytes);
  }
};
// As above, of which those of `a` go to `to_a`.
template <Order kOrder>
HWY_INLINE void look_up(const ByteLists& lists, const uint8_t* p, const uint8_t* q, bf16* to_a, bf16* to_b) {
  // Each lane holds codes of one list, those of values [n, n + 8) and [n + 16, n + 24).
  const __m512i source =
      _mm512_castsi256_si512(_mm256_inserti128_si256(_mm256_castsi128_si256(load16(p)), load16(q), 1));
  const __m512i mask = _mm512_set1_epi8(15);
  __m512i codes;
  if constexpr (kOrder == Order::kPairs) {
    const __m512i wide =
        _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 2, 0, 2, 1, 3, 1, 3, 4, 6, 4, 6, 5, 7, 5, 7), source);
    codes = _mm512_unpacklo_epi8(_mm512_and_si512(_mm512_srli_epi16(wide, 4), mask),
                                 _mm512_and_si512(wide, mask));
  } else {
    constexpr bool kHalves = kOrder == Order::kHalves;
    const __m512i wide = _mm512_permutexvar_epi64(
        kHalves ? _mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3) : _mm512_setr_epi64(0, 2, 1, 3, 0, 2, 1, 3),
        source);
    const __m512i shifts =
        kHalves ? _mm512_setr_epi64(0, 4, 0, 4, 0, 4, 0, 4) : _mm512_setr_epi64(0, 0, 0, 0, 4, 4, 4, 4);
    codes = _mm512_and_si512(_mm512_srlv_epi64(wide, shifts), mask);
  }
  const __m512i l = _mm512_shuffle_epi8(lists.lower, codes), h = _mm512_shuffle_epi8(lists.upper, codes);
  const __m512i near = _mm512_unpacklo_epi8(l, h), far = _mm512_unpackhi_epi8(l, h);
  const auto put16 = [](bf16* to, __m256i v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v); };
  put16(to_a, _mm512_castsi512_si256(near));
  put16(to_a + 16, _mm512_castsi512_si256(far));
  put16(to_b, _mm512_extracti64x4_epi64(near, 1));
  put16(to_b + 16, _mm512_extracti64x4_epi64(far, 1));
}
template <Order kOrder, class Value, class Stored>
HWY_INLINE void look_up_64(const uint8_t* p, const uint8_t* q, __m512 a, __m512 b, Stored* out) {
  if constexpr (std::is_same_v<Stored, bf16>)
    look_up<kOrder>(ByteLists(words<Value>(a, b)), p, q, out, out + 32);
  else
    look_up<kOrder, Value>(p, q, a, b, out);
}

// The numbers that codes of 4 bits name.
template <auto kNumber>
HWY_INLINE __m512 numbers_of() {
  struct List {
    alignas(64) float at[16];
    constexpr List() : at() {
      for (int code = 0; code < 16; ++code) at[code] = static_cast<float>(kNumber(code));
    }
  };
  static constexpr List kList;
  return _mm512_load_ps(kList.at);
}
constexpr float same(int code) { return static_cast<float>(code); }

#endif
}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
