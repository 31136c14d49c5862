// Q4_0 and Q8_0 of GGUF: blocks of 32 whole numbers with a scale in half precision. What is encoded is what the package
// `gguf` and ggml encode.
#pragma once
#include "runtime/formats/arithmetic.h"

namespace cairn::formats {

// Value j and value j + 16 in a byte, the first one in the lower 4 bits, each with 8 added.
struct Q4_0 {
  static constexpr int kBlock = 32;
  struct Block {
    f16 scale;
    uint8_t codes[kBlock / 2];
  };

  static constexpr bool encode(const float* from, int64_t count, Block& to) {
    int64_t extreme = 0;
    if (!find_extreme(from, count, extreme)) return false;
    const float scale = from[extreme] / -8.0f, factor = scale != 0 ? 1.0f / scale : 0.0f;
    to.scale = to_f16(scale);
    if (!(magnitude(to_float(to.scale)) <= kLargestFloat)) return false;
    const auto code = [&](int i) {
      const float shifted = (i < count ? from[i] * factor : 0.0f) + 8.5f;
      return shifted < 15.0f ? static_cast<int>(shifted > 0 ? shifted : 0.0f) : 15;
    };
    for (int i = 0; i < kBlock / 2; ++i)
      to.codes[i] = static_cast<uint8_t>(code(i) | code(i + kBlock / 2) << 4);
    return true;
  }
  static constexpr float decode(const Block& from, int i) {
    const int code = nibble(from.codes[i % (kBlock / 2)], i >= kBlock / 2);
    return to_float(from.scale) * static_cast<float>(code - 8);
  }
};
static_assert(sizeof(Q4_0::Block) == 18);

struct Q8_0 {
  static constexpr int kBlock = 32;
  struct Block {
    f16 scale;
    int8_t codes[kBlock];
  };

  static constexpr bool encode(const float* from, int64_t count, Block& to) {
    float largest = 0;
    if (!find_largest(from, count, largest)) return false;
    const float scale = largest / 127.0f;
    to.scale = to_f16(scale);
    if (!(to_float(to.scale) <= kLargestFloat)) return false;
    const float factor = scale > 0 ? 1.0f / scale : 0.0f;
    for (int64_t i = 0; i < kBlock; ++i)
      to.codes[i] = i < count ? away_from_zero(from[i] * factor) : int8_t{0};
    return true;
  }
  static constexpr float decode(const Block& from, int i) {
    return static_cast<float>(from.codes[i]) * to_float(from.scale);
  }

 private:
  // To nearest, ties away from zero.
  static constexpr int8_t away_from_zero(float x) {
    const float size = magnitude(x) < 127.0f ? magnitude(x) : 127.0f;
    const int below = static_cast<int>(size), code = below + (size - static_cast<float>(below) >= 0.5f);
    return static_cast<int8_t>(x < 0 ? -code : code);
  }
};
static_assert(sizeof(Q8_0::Block) == 34);

}  // namespace cairn::formats
