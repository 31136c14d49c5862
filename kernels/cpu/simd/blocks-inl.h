// How values of blocks are decoded by vectors: a unit of them at once, by codec. A codec without vectors of its own here has
// those that compilers make of its function. Included inside foreach_target files (per-target include guard).
#if defined(CAIRN_KERNELS_CPU_SIMD_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CAIRN_KERNELS_CPU_SIMD_BLOCKS_INL_H_
#undef CAIRN_KERNELS_CPU_SIMD_BLOCKS_INL_H_
#else
#define CAIRN_KERNELS_CPU_SIMD_BLOCKS_INL_H_
#endif

#include "kernels/cpu/simd/block_lists-inl.h"
#include "runtime/formats/codecs.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

// Values `first` and those after it, counted from the beginning of `block`, which may end in blocks after it.
template <class Of>
struct PlainUnit {
  static constexpr int kValues = 32;
  template <class Value, class Stored>
  static HWY_INLINE void decode(const typename Of::Block* block, int first, Stored* out) {
    for (int i = 0; i < kValues; ++i) out[i] = stored_as<Value, Stored>(Of::decode(*block, first + i));
  }
};
template <class Of>
struct Unit : PlainUnit<Of> {};

// What is decoded where fewer values are left than a unit has.
template <class Of>
struct SmallUnit : Unit<Of> {};
#if HWY_TARGET == HWY_AVX3

// A codec's values where a scale is a NaN or infinite.
template <class Of, int kValues, class Value, class Stored>
HWY_NOINLINE void decode_unusual(const typename Of::Block* block, int first, Stored* out) {
  for (int i = 0; i < kValues; ++i)
    out[i] = stored_as<Value, Stored>(Of::decode(block[(first + i) / Of::kBlock], (first + i) % Of::kBlock));
}

// NF4: 64 values have a list; two lists at once.
HWY_INLINE float nf_scale(const formats::Nf4::Block* block, int first) { return block[first / 64].scale; }
HWY_INLINE float nf_scale(const formats::Nf4Nested::Block* block, int first) {
  return formats::product_plus(kDynamicMap.values[block->scales[first / 64]], block->scale, block->offset);
}
HWY_INLINE const uint8_t* nf_codes(const formats::Nf4::Block* block, int first) {
  return block[first / 64].codes;
}
HWY_INLINE const uint8_t* nf_codes(const formats::Nf4Nested::Block* block, int first) {
  return block->codes + first / 2;
}
template <class Of, int kLists>
struct NfUnit {
  static constexpr int kValues = 64 * kLists;
  template <class Value, class Stored>
  static HWY_INLINE void decode(const typename Of::Block* block, int first, Stored* out) {
    const int second = first + kValues - 64;
    const float scale = nf_scale(block, first), other = nf_scale(block, second);
    if (HWY_UNLIKELY(!is_usual(scale) || !is_usual(other)))
      return decode_unusual<Of, kValues, Value>(block, first, out);
    const uint8_t *const p = nf_codes(block, first), *const q = nf_codes(block, second);
    const __m512 numbers = numbers_of<formats::nf4::number<int>>(), a = scaled(numbers, scale),
                 b = scaled(numbers, other);
    if constexpr (!std::is_same_v<Stored, bf16>) {
      look_up<Order::kPairs, Value>(p, p + 16, a, a, out);
      if (kLists == 2) look_up<Order::kPairs, Value>(q, q + 16, b, b, out + 64);
    } else if constexpr (kLists == 2) {
      const ByteLists lists(words<Value>(a, b));
      look_up<Order::kPairs>(lists, p, q, out, out + 64);
      look_up<Order::kPairs>(lists, p + 16, q + 16, out + 32, out + 96);
    } else {
      look_up<Order::kPairs>(ByteLists(words<Value>(a, a)), p, p + 16, out, out + 32);
    }
  }
};
template <>
struct Unit<formats::Nf4> : NfUnit<formats::Nf4, 2> {};
template <>
struct SmallUnit<formats::Nf4> : NfUnit<formats::Nf4, 1> {};
template <>
struct Unit<formats::Nf4Nested> : NfUnit<formats::Nf4Nested, 2> {};
template <>
struct SmallUnit<formats::Nf4Nested> : NfUnit<formats::Nf4Nested, 1> {};

// Blocks of 32 values with a list: two blocks at once.
HWY_INLINE __m512 list(const formats::Mxfp4::Block& block) {
  return scaled(numbers_of<formats::Mxfp4::number>(), formats::Mxfp4::scale(block.exponent));
}
HWY_INLINE __m512 list(const formats::U4::Block& block) {
  return _mm512_mul_ps(_mm512_sub_ps(numbers_of<same>(), spread(block.zero)), spread(block.scale));
}
HWY_INLINE __m512 list(const formats::Q4_0::Block& block) {
  return _mm512_mul_ps(_mm512_sub_ps(numbers_of<same>(), _mm512_set1_ps(8)), spread(block.scale));
}
HWY_INLINE __m512 list(const formats::Iq4Nl::Block& block) {
  return _mm512_mul_ps(numbers_of<formats::iq4::number>(), spread(block.scale));
}
HWY_INLINE bool is_usual(const formats::Mxfp4::Block& block) {
  return block.exponent > 40 && block.exponent < 255;
}
HWY_INLINE bool is_usual(const formats::U4::Block& block) {
  return is_usual(block.scale) && is_usual(block.zero);
}
template <class Block>
HWY_INLINE bool is_usual(const Block& block) {
  return is_usual(block.scale);
}
template <class Of>
struct ListUnit {
  static constexpr int kValues = 64;
  template <class Value, class Stored>
  static HWY_INLINE void decode(const typename Of::Block* block, int first, Stored* out) {
    if (HWY_UNLIKELY(!is_usual(block[0]) || !is_usual(block[1])))
      return decode_unusual<Of, kValues, Value>(block, first, out);
    look_up_64<Order::kHalves, Value>(block[0].codes, block[1].codes, list(block[0]), list(block[1]), out);
  }
};
template <>
struct Unit<formats::Mxfp4> : ListUnit<formats::Mxfp4> {};
template <>
struct Unit<formats::U4> : ListUnit<formats::U4> {};
template <>
struct Unit<formats::Q4_0> : ListUnit<formats::Q4_0> {};
template <>
struct Unit<formats::Iq4Nl> : ListUnit<formats::Iq4Nl> {};

// 32 codes of 8 bits with a sign; value(codes, i) makes the values of codes [i, i + 16).
template <class Value, class Stored, class Make>
HWY_INLINE void put_codes(__m256i codes, const Make& value, Stored* out) {
  const auto wide = [](__m128i bytes) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes)); };
  put32<Value>(value(wide(_mm256_castsi256_si128(codes)), 0),
               value(wide(_mm256_extracti128_si256(codes, 1)), 16), out);
}
HWY_INLINE __m512 value_of(const formats::Int8::Block& block, __m512 codes) {
  return scaled(codes, block.scale);
}
HWY_INLINE __m512 value_of(const formats::LlmInt8::Block& block, __m512 codes) {
  return scaled(scaled(codes, block.scale), 7.874015718698502e-3f);
}
HWY_INLINE __m512 value_of(const formats::Q8_0::Block& block, __m512 codes) {
  return _mm512_mul_ps(codes, spread(block.scale));
}
template <class Of>
struct ByteUnit {
  static constexpr int kValues = 32;
  template <class Value, class Stored>
  static HWY_INLINE void decode(const typename Of::Block* block, int first, Stored* out) {
    if (HWY_UNLIKELY(!is_usual(block->scale))) return decode_unusual<Of, kValues, Value>(block, first, out);
    put_codes<Value>(
        load32(block->codes + first), [&](__m512 v, int) { return value_of(*block, v); }, out);
  }
};
template <>
struct Unit<formats::Int8> : ByteUnit<formats::Int8> {};
template <>
struct Unit<formats::LlmInt8> : ByteUnit<formats::LlmInt8> {};
template <>
struct Unit<formats::Q8_0> : ByteUnit<formats::Q8_0> {};

// FP8 as half precision, which has the same bits with an exponent that is 8 less; but for NaN.
template <>
struct Unit<formats::Fp8> {
  static constexpr int kValues = 32;
  // 16 codes, in the lower halves of elements.
  static HWY_INLINE __m512 values(__m256i codes, float scale) {
    const __m256i rest = _mm256_and_si256(codes, _mm256_set1_epi16(0x7f));
    const __m256i sign = _mm256_slli_epi16(_mm256_and_si256(codes, _mm256_set1_epi16(0x80)), 8);
    const __mmask16 nan = _mm256_cmpeq_epi16_mask(rest, _mm256_set1_epi16(0x7f));
    const __m256i bits = _mm256_mask_blend_epi16(nan, _mm256_slli_epi16(rest, 7), _mm256_set1_epi16(0x7e00));
    return scaled(scaled(_mm512_cvtph_ps(_mm256_or_si256(bits, sign)), 256.0f), scale);
  }
  template <class Value, class Stored>
  static HWY_INLINE void decode(const formats::Fp8::Block* block, int first, Stored* out) {
    const float scale = block->scale;
    if (HWY_UNLIKELY(!is_usual(scale)))
      return decode_unusual<formats::Fp8, kValues, Value>(block, first, out);
    const __m256i codes = load32(block->codes + first);
    put32<Value>(values(_mm256_cvtepu8_epi16(_mm256_castsi256_si128(codes)), scale),
                 values(_mm256_cvtepu8_epi16(_mm256_extracti128_si256(codes, 1)), scale), out);
  }
};

// The steps of 8 parts of 32, and what is subtracted from each.
struct Lines {
  alignas(64) float numbers[16];
  HWY_INLINE explicit Lines(const formats::k_quants::Scales& from) {
    uint32_t w[3];
    __builtin_memcpy(w, from.bits, sizeof w);
    const uint32_t low = 0x3f3f3f3fu, nibbles = 0x0f0f0f0fu, upper = 0x30303030u;
    const __m128i bytes = _mm_setr_epi32(
        static_cast<int>(w[0] & low), static_cast<int>((w[2] & nibbles) | (w[0] >> 2 & upper)),
        static_cast<int>(w[1] & low), static_cast<int>((w[2] >> 4 & nibbles) | (w[1] >> 2 & upper)));
    const __m512 units = _mm512_mask_blend_ps(0xff00, spread(from.scale), spread(from.least));
    _mm512_store_ps(numbers, _mm512_mul_ps(units, _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes))));
  }
  HWY_INLINE __m512 value(int part, __m512 codes) const {
    return _mm512_sub_ps(scaled(codes, numbers[part]), _mm512_set1_ps(numbers[8 + part]));
  }
};
HWY_INLINE bool is_usual(const formats::k_quants::Scales& scales) {
  return is_usual(scales.scale) && is_usual(scales.least);
}
template <>
struct Unit<formats::Q4_K> {
  static constexpr int kValues = 256;
  template <class Value, class Stored>
  static HWY_INLINE void decode(const formats::Q4_K::Block* block, int first, Stored* out) {
    if (HWY_UNLIKELY(!is_usual(block->scales)))
      return decode_unusual<formats::Q4_K, kValues, Value>(block, first, out);
    const Lines lines(block->scales);
    for (int part = 0; part < 8; part += 2) {
      const uint8_t* const p = block->codes + part * 16;
      look_up_64<Order::kSplit, Value>(p, p + 16, lines.value(part, numbers_of<same>()),
                                       lines.value(part + 1, numbers_of<same>()), out + part * 32);
    }
  }
};
HWY_INLINE __m256i bits_of(__m256i bytes, int shift, int mask) {
  return _mm256_and_si256(_mm256_srl_epi16(bytes, _mm_cvtsi32_si128(shift)),
                          _mm256_set1_epi8(static_cast<char>(mask)));
}
template <>
struct Unit<formats::Q5_K> {
  static constexpr int kValues = 256;
  template <class Value, class Stored>
  static HWY_INLINE void decode(const formats::Q5_K::Block* block, int first, Stored* out) {
    if (HWY_UNLIKELY(!is_usual(block->scales)))
      return decode_unusual<formats::Q5_K, kValues, Value>(block, first, out);
    const Lines lines(block->scales);
    const __m256i high = load32(block->high);
    for (int part = 0; part < 8; ++part) {
      const __m256i codes = _mm256_or_si256(bits_of(load32(block->codes + part / 2 * 32), part % 2 * 4, 15),
                                            _mm256_slli_epi16(bits_of(high, part, 1), 4));
      put_codes<Value>(
          codes, [&](__m512 v, int) { return lines.value(part, v); }, out + part * 32);
    }
  }
};
template <>
struct Unit<formats::Q6_K> {
  static constexpr int kValues = 256;
  template <class Value, class Stored>
  static HWY_INLINE void decode(const formats::Q6_K::Block* block, int first, Stored* out) {
    if (HWY_UNLIKELY(!is_usual(block->scale)))
      return decode_unusual<formats::Q6_K, kValues, Value>(block, first, out);
    const __m512 steps =
        _mm512_mul_ps(spread(block->scale), _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load16(block->scales))));
    for (int part = 0; part < 8; ++part) {
      const int half = part / 4, quarter = part % 4;
      const __m256i low = bits_of(load32(block->low + half * 64 + part % 2 * 32), quarter / 2 * 4, 15);
      const __m256i high = bits_of(load32(block->high + half * 32), quarter * 2, 3);
      const __m256i codes =
          _mm256_sub_epi8(_mm256_or_si256(low, _mm256_slli_epi16(high, 4)), _mm256_set1_epi8(32));
      const auto value = [&](__m512 v, int i) {
        const __m512i place = _mm512_set1_epi32(2 * part + i / 16);
        return _mm512_mul_ps(_mm512_permutexvar_ps(place, steps), v);
      };
      put_codes<Value>(codes, value, out + part * 32);
    }
  }
};
template <>
struct Unit<formats::Iq4Xs> {
  static constexpr int kValues = 256;
  template <class Value, class Stored>
  static HWY_INLINE void decode(const formats::Iq4Xs::Block* block, int first, Stored* out) {
    if (HWY_UNLIKELY(!is_usual(block->scale)))
      return decode_unusual<formats::Iq4Xs, kValues, Value>(block, first, out);
    const __m512 unit = spread(block->scale), numbers = numbers_of<formats::iq4::number>();
    const auto list = [&](int part) {
      const int scale =
          ((block->low[part / 2] >> part % 2 * 4 & 15) | (block->high >> part * 2 & 3) << 4) - 32;
      return _mm512_mul_ps(_mm512_mul_ps(unit, _mm512_set1_ps(static_cast<float>(scale))), numbers);
    };
    for (int part = 0; part < 8; part += 2) {
      const uint8_t* const p = block->codes + part * 16;
      look_up_64<Order::kHalves, Value>(p, p + 16, list(part), list(part + 1), out + part * 32);
    }
  }
};

template <>
struct SmallUnit<formats::Q4_K> : PlainUnit<formats::Q4_K> {};
template <>
struct SmallUnit<formats::Q5_K> : PlainUnit<formats::Q5_K> {};
template <>
struct SmallUnit<formats::Q6_K> : PlainUnit<formats::Q6_K> {};
template <>
struct SmallUnit<formats::Iq4Xs> : PlainUnit<formats::Iq4Xs> {};

#endif
}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
