// MXFP4 (Open Compute's microscaling formats): blocks of 32 numbers of 4 bits (a sign, 2 bits of exponent, 1 of mantissa)
// with a power of 2 as scale. A block is that of GGUF: the exponent + 127, then value j and value j + 16 in a byte, the
// first one in the lower 4 bits.
#pragma once
#include "runtime/formats/arithmetic.h"

namespace cairn::formats {

struct Mxfp4 {
  static constexpr int kBlock = 32;
  struct Block {
    uint8_t exponent;
    uint8_t codes[kBlock / 2];
  };

  static constexpr float number(int code) {
    const int size = code & 7, quarters = size < 2 ? 2 * size : (2 + size % 2) << size / 2;
    const float magnitude = static_cast<float>(quarters) * 0.25f;
    return code < 8 ? magnitude : -magnitude;
  }
  static constexpr float scale(uint8_t exponent) {
    return exponent == 0 ? 0x1p-127f : __builtin_bit_cast(float, static_cast<uint32_t>(exponent) << 23);
  }
  // The largest number of the block is from 4 to 8 times the scale.
  static constexpr bool encode(const float* from, int64_t count, Block& to) {
    float largest = 0;
    if (!find_largest(from, count, largest)) return false;
    const auto exponent = static_cast<int>(__builtin_bit_cast(uint32_t, largest) >> 23);
    to.exponent = static_cast<uint8_t>(exponent > 2 ? exponent - 2 : 0);
    for (int i = 0; i < kBlock / 2; ++i) {
      const int upper = i + kBlock / 2;
      const int first = i < count ? nearest(from[i], scale(to.exponent)) : 0;
      const int second = upper < count ? nearest(from[upper], scale(to.exponent)) : 0;
      to.codes[i] = static_cast<uint8_t>(first | second << 4);
    }
    return true;
  }
  static constexpr float decode(const Block& from, int i) {
    return number(nibble(from.codes[i % (kBlock / 2)], i >= kBlock / 2)) * scale(from.exponent);
  }

 private:
  // The lower one of two that are as near. Of what is not 0 the sign is kept only where the number is not 0.
  static constexpr int nearest(float x, float scale) {
    int code = 0;
    for (int i = 0; i < 7; ++i) code += magnitude(x) > (number(i) + number(i + 1)) * 0.5f * scale;
    return x < 0 && code > 0 ? code + 8 : code;
  }
};
static_assert(sizeof(Mxfp4::Block) == 17);

}  // namespace cairn::formats
