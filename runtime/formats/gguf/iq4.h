// IQ4_NL and IQ4_XS of GGUF: codes of 4 bits that name one of 16 whole numbers, which are denser around 0. Value j and value
// j + 16 of each 32 are in a byte, the first one in the lower 4 bits.
#pragma once
#include "runtime/formats/arithmetic.h"

namespace cairn::formats {
namespace iq4 {

inline constexpr int kPart = 32;

// Eight of the numbers as the bytes of a word, which a GPU has in a register where a table would be in memory.
constexpr uint64_t word_of(int first) {
  constexpr int8_t kNumbers[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  uint64_t word = 0;
  for (int i = 0; i < 8; ++i)
    word |= static_cast<uint64_t>(static_cast<uint8_t>(kNumbers[first + i])) << 8 * i;
  return word;
}
constexpr int number(int code) {
  constexpr uint64_t kLower = word_of(0), kUpper = word_of(8);
  return static_cast<int8_t>((code < 8 ? kLower : kUpper) >> 8 * (code % 8));
}
constexpr int nearest(float x) {
  int code = 0;
  for (int i = 0; i < 15; ++i) code += x > static_cast<float>(number(i) + number(i + 1)) * 0.5f;
  return code;
}

// Up to kPart numbers, of which one is `step` apart from the next whole number's.
constexpr void encode(const float* from, int64_t count, float step, uint8_t* to) {
  const auto code = [&](int i) { return nearest(i < count && step != 0 ? from[i] / step : 0.0f); };
  for (int i = 0; i < kPart / 2; ++i) to[i] = static_cast<uint8_t>(code(i) | code(i + kPart / 2) << 4);
}
constexpr float decode(const uint8_t* codes, int i) {
  return static_cast<float>(number(nibble(codes[i % (kPart / 2)], i >= kPart / 2)));
}

}  // namespace iq4

struct Iq4Nl {
  static constexpr int kBlock = iq4::kPart;
  struct Block {
    f16 scale;
    uint8_t codes[kBlock / 2];
  };

  static constexpr bool encode(const float* from, int64_t count, Block& to) {
    int64_t extreme = 0;
    if (!find_extreme(from, count, extreme)) return false;
    to.scale = to_f16(from[extreme] / -127.0f);
    if (!(magnitude(to_float(to.scale)) <= kLargestFloat)) return false;
    iq4::encode(from, count, to_float(to.scale), to.codes);
    return true;
  }
  static constexpr float decode(const Block& from, int i) {
    return to_float(from.scale) * iq4::decode(from.codes, i);
  }
};
static_assert(sizeof(Iq4Nl::Block) == 18);

// 8 parts of 32 with scales from -32 to 31, stored with 32 added: 4 bits of each, then 2 bits of each.
struct Iq4Xs {
  static constexpr int kBlock = 256, kParts = kBlock / iq4::kPart;
  struct Block {
    f16 scale;
    uint16_t high;
    uint8_t low[kParts / 2];
    uint8_t codes[kBlock / 2];
  };

  static constexpr bool encode(const float* from, int64_t count, Block& to) {
    int64_t extreme = 0;
    if (!find_extreme(from, count, extreme)) return false;
    to.scale = to_f16(magnitude(from[extreme]) / (127.0f * 31.0f));
    const float unit = to_float(to.scale);
    if (!(unit <= kLargestFloat)) return false;
    to.high = 0;
    for (uint8_t& pair : to.low) pair = 0;
    for (int part = 0; part < kParts; ++part) {
      const int64_t at = static_cast<int64_t>(part) * iq4::kPart, left = count > at ? count - at : 0;
      const int64_t here = left < iq4::kPart ? left : iq4::kPart;
      find_extreme(from + at, here, extreme);
      const int scale =
          here > 0 && unit > 0 ? nearest_whole(from[at + extreme] / -127.0f / unit, -32, 31) : 0;
      to.low[part / 2] = static_cast<uint8_t>(to.low[part / 2] | ((scale + 32) & 15) << part % 2 * 4);
      to.high = static_cast<uint16_t>(to.high | (scale + 32) >> 4 << part * 2);
      iq4::encode(from + at, here, unit * static_cast<float>(scale), to.codes + at / 2);
    }
    return true;
  }
  static constexpr float decode(const Block& from, int i) {
    const int part = i / iq4::kPart;
    const int scale = (nibble(from.low[part / 2], part % 2 == 1) | (from.high >> part * 2 & 3) << 4) - 32;
    return to_float(from.scale) * static_cast<float>(scale) *
           iq4::decode(from.codes + part * (iq4::kPart / 2), i % iq4::kPart);
  }
};
static_assert(sizeof(Iq4Xs::Block) == 136);

}  // namespace cairn::formats
