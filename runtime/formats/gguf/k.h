// Q4_K, Q5_K and Q6_K of GGUF: blocks of 256 whole numbers in parts that have scales of their own, which are themselves
// whole numbers. Files come with these formats; what is encoded here is rounded to them in one go, without the search for
// better scales that llama.cpp makes.
#pragma once
#include "runtime/formats/arithmetic.h"

namespace cairn::formats {
namespace k_quants {

inline constexpr int kBlock = 256, kPart = 32, kParts = kBlock / kPart;

// Of each part 6 bits of a scale and of a minimum, in 12 bytes.
struct Scales {
  f16 scale, least;  // what the whole numbers below are multiplied with
  uint8_t bits[12];

  constexpr int scale_of(int part) const {
    return part < 4 ? bits[part] & 63 : (bits[part + 4] & 15) | (bits[part - 4] >> 6 << 4);
  }
  constexpr int least_of(int part) const {
    return part < 4 ? bits[part + 4] & 63 : bits[part + 4] >> 4 | (bits[part] >> 6 << 4);
  }
  constexpr void set(int part, int of_scale, int of_least) {
    if (part < 4) {
      bits[part] = static_cast<uint8_t>(bits[part] | of_scale);
      bits[part + 4] = static_cast<uint8_t>(bits[part + 4] | of_least);
      return;
    }
    bits[part + 4] = static_cast<uint8_t>((of_scale & 15) | (of_least & 15) << 4);
    bits[part - 4] = static_cast<uint8_t>(bits[part - 4] | of_scale >> 4 << 6);
    bits[part] = static_cast<uint8_t>(bits[part] | of_least >> 4 << 6);
  }
  constexpr float value(int part, int code) const {
    const float step = to_float(scale) * static_cast<float>(scale_of(part));
    const float below = to_float(least) * static_cast<float>(least_of(part));
    return product_plus(step, static_cast<float>(code), -below);
  }

  // The scales for up to kBlock numbers with codes from 0 to `most`, and code(i, the number's) for each of them.
  template <class Code>
  constexpr bool encode(const float* from, int64_t count, int most, const Code& code) {
    float steps[kParts] = {}, belows[kParts] = {}, step = 0, below = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (!(magnitude(from[i]) <= kLargestFloat)) return false;
      float &high = steps[i / kPart], &low = belows[i / kPart];
      high = from[i] > high ? from[i] : high;
      low = -from[i] > low ? -from[i] : low;
    }
    for (int part = 0; part < kParts; ++part) {
      steps[part] = steps[part] / static_cast<float>(most) + belows[part] / static_cast<float>(most);
      step = steps[part] > step ? steps[part] : step;
      below = belows[part] > below ? belows[part] : below;
    }
    scale = to_f16(step / 63.0f);
    least = to_f16(below / 63.0f);
    const float unit = to_float(scale), low_unit = to_float(least);
    if (!(unit <= kLargestFloat && low_unit <= kLargestFloat)) return false;
    for (uint8_t& byte : bits) byte = 0;
    for (int part = 0; part < kParts; ++part)
      set(part, unit > 0 ? nearest_whole(steps[part] / unit, 0, 63) : 0,
          low_unit > 0 ? nearest_whole(belows[part] / low_unit, 0, 63) : 0);
    for (int i = 0; i < kBlock; ++i) {
      const float apart = value(i / kPart, 1) - value(i / kPart, 0);
      const float x = i < count ? from[i] : 0.0f;
      code(i, apart > 0 ? nearest_whole((x - value(i / kPart, 0)) / apart, 0, most) : 0);
    }
    return true;
  }
};

}  // namespace k_quants

// Values j and j + 32 of each 64 are in a byte, the first one in the lower 4 bits.
struct Q4_K {
  static constexpr int kBlock = k_quants::kBlock;
  struct Block {
    k_quants::Scales scales;
    uint8_t codes[kBlock / 2];
  };

  static constexpr bool encode(const float* from, int64_t count, Block& to) {
    for (uint8_t& byte : to.codes) byte = 0;
    return to.scales.encode(from, count, 15, [&to](int i, int code) {
      to.codes[byte(i)] = static_cast<uint8_t>(to.codes[byte(i)] | code << (upper(i) ? 4 : 0));
    });
  }
  static constexpr float decode(const Block& from, int i) {
    return from.scales.value(i / k_quants::kPart, nibble(from.codes[byte(i)], upper(i)));
  }
  static constexpr int byte(int i) { return i / 64 * 32 + i % 32; }
  static constexpr bool upper(int i) { return i % 64 >= 32; }
};
static_assert(sizeof(Q4_K::Block) == 144);

// As Q4_K; the fifth bits of values j, j + 32, ... are in a byte.
struct Q5_K {
  static constexpr int kBlock = k_quants::kBlock;
  struct Block {
    k_quants::Scales scales;
    uint8_t high[kBlock / 8];
    uint8_t codes[kBlock / 2];
  };

  static constexpr bool encode(const float* from, int64_t count, Block& to) {
    for (uint8_t& byte : to.codes) byte = 0;
    for (uint8_t& byte : to.high) byte = 0;
    return to.scales.encode(from, count, 31, [&to](int i, int code) {
      uint8_t& pair = to.codes[Q4_K::byte(i)];
      pair = static_cast<uint8_t>(pair | (code & 15) << (Q4_K::upper(i) ? 4 : 0));
      to.high[i % 32] = static_cast<uint8_t>(to.high[i % 32] | code >> 4 << i / 32);
    });
  }
  static constexpr float decode(const Block& from, int i) {
    const int code = nibble(from.codes[Q4_K::byte(i)], Q4_K::upper(i)) | (from.high[i % 32] >> i / 32 & 1)
                                                                             << 4;
    return from.scales.value(i / k_quants::kPart, code);
  }
};
static_assert(sizeof(Q5_K::Block) == 176);

// Codes from -32 to 31, stored with 32 added; each 16 have a scale. Of each 128, the lower 4 bits of values j and j + 64 are
// in a byte, and the upper 2 bits of values j, j + 32, j + 64 and j + 96.
struct Q6_K {
  static constexpr int kBlock = k_quants::kBlock, kPart = 16;
  struct Block {
    uint8_t low[kBlock / 2];
    uint8_t high[kBlock / 4];
    int8_t scales[kBlock / kPart];
    f16 scale;
  };

  static constexpr bool encode(const float* from, int64_t count, Block& to) {
    float extremes[kBlock / kPart] = {}, largest = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (!(magnitude(from[i]) <= kLargestFloat)) return false;
      float& extreme = extremes[i / kPart];
      if (magnitude(from[i]) > magnitude(extreme)) extreme = from[i];
      largest = magnitude(extreme) > largest ? magnitude(extreme) : largest;
    }
    to.scale = to_f16(largest / (32.0f * 127.0f));
    const float unit = to_float(to.scale);
    if (!(unit <= kLargestFloat)) return false;
    for (uint8_t& byte : to.low) byte = 0;
    for (uint8_t& byte : to.high) byte = 0;
    for (int part = 0; part < kBlock / kPart; ++part)
      to.scales[part] =
          static_cast<int8_t>(unit > 0 ? nearest_whole(extremes[part] / -32.0f / unit, -127, 127) : 0);
    for (int i = 0; i < kBlock; ++i) {
      const float step = unit * static_cast<float>(to.scales[i / kPart]);
      const int code = (i < count && step != 0 ? nearest_whole(from[i] / step, -32, 31) : 0) + 32;
      to.low[low(i)] = static_cast<uint8_t>(to.low[low(i)] | (code & 15) << (i % 128 >= 64 ? 4 : 0));
      to.high[high(i)] = static_cast<uint8_t>(to.high[high(i)] | code >> 4 << i % 128 / 32 * 2);
    }
    return true;
  }
  static constexpr float decode(const Block& from, int i) {
    const int code = nibble(from.low[low(i)], i % 128 >= 64) | (from.high[high(i)] >> i % 128 / 32 * 2 & 3)
                                                                   << 4;
    const float step = to_float(from.scale) * static_cast<float>(from.scales[i / kPart]);
    return step * static_cast<float>(code - 32);
  }
  static constexpr int low(int i) { return i / 128 * 64 + i % 64; }
  static constexpr int high(int i) { return i / 128 * 32 + i % 32; }
};
static_assert(sizeof(Q6_K::Block) == 210);

}  // namespace cairn::formats
