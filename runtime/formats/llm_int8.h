// LLM.int8 (Dettmers et al., 2022) as bitsandbytes stores it: whole numbers with a scale for each row, which is the largest
// magnitude of the row. A block repeats it. A value is code * scale * (1 / 127), from left to right.
#pragma once
#include "runtime/formats/arithmetic.h"
#include "runtime/formats/scope.h"

namespace cairn::formats {

struct LlmInt8 {
  static constexpr Scope kScope = Scope::kRow;
  static constexpr int kBlock = 64;
  struct Block {
    int8_t codes[kBlock];
    float scale;
  };

  static constexpr void measure(const float* from, int64_t count, Known& known) {
    float largest = 0;
    find_largest(from, count, largest);
    known.number = static_cast<double>(largest) > known.number ? static_cast<double>(largest) : known.number;
  }
  static constexpr bool encode(const float* from, int64_t count, const Known& known, Block& to) {
    float largest = 0;
    if (!find_largest(from, count, largest)) return false;
    to.scale = static_cast<float>(known.number);
    if (to.scale * 127.0f > kLargestFloat) return false;
    const float factor = to.scale > 0 ? 127.0f / to.scale : 0.0f;
    for (int64_t i = 0; i < kBlock; ++i)
      to.codes[i] = static_cast<int8_t>(i < count ? nearest_whole(from[i] * factor, -127, 127) : 0);
    return true;
  }
  static constexpr float decode(const Block& from, int i) {
    return static_cast<float>(from.codes[i]) * from.scale * 7.874015718698502e-3f;
  }
};
static_assert(sizeof(LlmInt8::Block) == 68);

}  // namespace cairn::formats
