// Whole numbers from 0 to 15 with a scale and a zero per block of 32, both in half precision: what GPTQ and AWQ files of 4
// bits are repacked to. A value is (code - zero) * scale. Value j and value j + 16 are in a byte, the first one in the
// lower 4 bits.
#pragma once
#include "runtime/formats/arithmetic.h"

namespace cairn::formats {

struct U4 {
  static constexpr int kBlock = 32;
  struct Block {
    f16 scale, zero;
    uint8_t codes[kBlock / 2];
  };

  static constexpr bool encode(const float* from, int64_t count, Block& to) {
    float largest = 0;
    if (!find_largest(from, count, largest)) return false;
    float least = 0, most = 0;
    for (int64_t i = 0; i < count; ++i) {
      least = from[i] < least ? from[i] : least;
      most = from[i] > most ? from[i] : most;
    }
    to.scale = to_f16(most / 15.0f - least / 15.0f);
    const float scale = to_float(to.scale);
    if (!(scale <= kLargestFloat)) return false;
    to.zero = to_f16(scale > 0 ? static_cast<float>(nearest_whole(-least / scale, 0, 15)) : 0.0f);
    const auto code = [&](int i) {
      return i < count && scale > 0 ? nearest_whole(from[i] / scale + to_float(to.zero), 0, 15) : 0;
    };
    for (int i = 0; i < kBlock / 2; ++i)
      to.codes[i] = static_cast<uint8_t>(code(i) | code(i + kBlock / 2) << 4);
    return true;
  }
  static constexpr float decode(const Block& from, int i) {
    const int code = nibble(from.codes[i % (kBlock / 2)], i >= kBlock / 2);
    return (static_cast<float>(code) - to_float(from.zero)) * to_float(from.scale);
  }
};
static_assert(sizeof(U4::Block) == 20);

}  // namespace cairn::formats
