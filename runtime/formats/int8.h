// The format `int8` of frozen parameters: blocks of 64 integers from -127 to 127 with a scale, which is the block's
// largest magnitude / 127. A value is its number times the scale, rounded once to float32.
#pragma once
#include <cstdint>

namespace cairn::formats {

struct Int8 {
  static constexpr int kBlock = 64;
  // A block as stored in memory. After a tensor's last value its codes are 0.
  struct Block {
    int8_t codes[kBlock];
    float scale;
  };

  // count: up to kBlock. False where a number is not finite, or so large that it would not be when it is read.
  static constexpr bool encode(const float* from, int64_t count, Block& to) {
    constexpr float kLargest = 3.4028234663852886e38f;
    float largest = 0;
    for (int64_t i = 0; i < count; ++i) {
      const float magnitude = from[i] < 0 ? -from[i] : from[i];
      if (!(magnitude <= kLargest)) return false;
      largest = magnitude > largest ? magnitude : largest;
    }
    to.scale = largest / 127.0f;
    if (to.scale * 127.0f > kLargest) return false;
    for (int64_t i = 0; i < kBlock; ++i)
      to.codes[i] = i < count && to.scale > 0 ? nearest(from[i] / to.scale) : int8_t{0};
    return true;
  }
  static constexpr float decode(const Block& from, int i) {
    return static_cast<float>(from.codes[i]) * from.scale;
  }

 private:
  // To nearest, ties to even. A scale that is next to nothing is itself rounded, so a quotient may be above 127.
  static constexpr int8_t nearest(float quotient) {
    constexpr float kShift = 0x1.8p23f;  // here floats are integers
    const float rounded = quotient > 127.0f    ? 127.0f
                          : quotient < -127.0f ? -127.0f
                                               : quotient + kShift - kShift;
    return static_cast<int8_t>(rounded);
  }
};
static_assert(sizeof(Int8::Block) == 68);

}  // namespace cairn::formats
