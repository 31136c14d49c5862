// NF4, the 4-bit format of QLoRA (Dettmers et al., 2023), as bitsandbytes stores it: blocks of 64 codes with the largest
// magnitude of the block in float32. A code names one of 16 numbers of [-1, 1]; a value is its number times the scale.
// The first value of a pair is in the upper 4 bits.
#pragma once
#include "runtime/formats/arithmetic.h"

namespace cairn::formats {
namespace nf4 {

inline constexpr int kBlock = 64, kZero = 7;  // values that share a scale; the code of 0

// In ascending order.
struct Numbers {
  float at[16];
};
inline constexpr Numbers kNumbers = {{-1.0f, -0.6961928009986877f, -0.5250730514526367f,
                                      -0.39491748809814453f, -0.28444138169288635f, -0.18477343022823334f,
                                      -0.09105003625154495f, 0.0f, 0.07958029955625534f, 0.16093020141124725f,
                                      0.24611230194568634f, 0.33791524171829224f, 0.44070982933044434f,
                                      0.5626170039176941f, 0.7229568362236023f, 1.0f}};
#ifdef __CUDACC__
static __device__ const Numbers kDeviceNumbers = kNumbers;  // the host's have no address there
#endif
template <class Code>
constexpr float number(Code code) {
#ifdef __CUDA_ARCH__
  return kDeviceNumbers.at[code];
#else
  return kNumbers.at[code];
#endif
}

// The code of what is nearest to x, the lower one of two that are as near.
constexpr int nearest(float x) {
  int code = 0;
  for (int i = 0; i < 15; ++i) code += x > (number(i) + number(i + 1)) * 0.5f;
  return code;
}

// Up to kBlock numbers, whose largest magnitude is `largest`; codes of 0 after the last one.
constexpr void encode(const float* from, int64_t count, float largest, uint8_t* to) {
  // Below this, 1 / largest could be infinite.
  constexpr float kLeast = 1e-38f;
  const float factor = largest > 0 ? 1.0f / (largest > kLeast ? largest : kLeast) : 0.0f;
  for (int64_t i = 0; i < kBlock; i += 2) {
    const int first = i < count ? nearest(from[i] * factor) : kZero;
    const int second = i + 1 < count ? nearest(from[i + 1] * factor) : kZero;
    to[i / 2] = static_cast<uint8_t>(first << 4 | second);
  }
}
constexpr float decode(const uint8_t* codes, int i) { return number(nibble(codes[i / 2], i % 2 == 0)); }

}  // namespace nf4

struct Nf4 {
  static constexpr int kBlock = nf4::kBlock;
  struct Block {
    uint8_t codes[kBlock / 2];
    float scale;
  };

  static constexpr bool encode(const float* from, int64_t count, Block& to) {
    if (!find_largest(from, count, to.scale)) return false;
    nf4::encode(from, count, to.scale, to.codes);
    return true;
  }
  static constexpr float decode(const Block& from, int i) { return nf4::decode(from.codes, i) * from.scale; }
};
static_assert(sizeof(Nf4::Block) == 36);

}  // namespace cairn::formats
