// The 8-bit formats `dynamic8` and `udynamic8` of optimizer states: the dynamic maps of Dettmers et al. (2022,
// "8-bit optimizers via block-wise quantization"), with the values of bitsandbytes' create_dynamic_map. A code
// names one of 256 numbers of [-1, 1], or of [0, 1]; a block of 256 codes has a scale, its largest magnitude.
//
// Seven decades from 1e-6 to 1 hold twice as many numbers each as the one below, the middles of equal parts of
// [0.1, 1] of it; and there are 0 and 1. So codes in order are numbers in order, and -1 has none.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "runtime/formats/dtype.h"

namespace cairn {

inline constexpr int kDynamicBlock = 256, kDynamicCodes = 256;

// A block as stored in memory. Behind a tensor's last value its codes are those of 0.
struct DynamicBlock {
  uint8_t codes[kDynamicBlock];
  float scale;
};
static_assert(sizeof(DynamicBlock) == 260);

namespace dynamic_map {

// The boundary of part j of n of [0.1, 1], by the rule of torch.linspace: from the nearer end, rounded once.
constexpr float boundary(int j, int n) {
  const double part = (1.0f - 0.1f) / static_cast<float>(n);
  return static_cast<float>(j < (n + 1) / 2 ? static_cast<double>(0.1f) + part * j : 1.0 - part * (n - j));
}

// Of the decade's n numbers, the j-th.
constexpr float number(int decade, int n, int j) {
  constexpr float kTop[] = {1e-6f, 1e-5f, 1e-4f, 1e-3f, 1e-2f, 1e-1f, 1.0f};
  return kTop[decade] * ((boundary(j, n) + boundary(j + 1, n)) / 2.0f);
}

}  // namespace dynamic_map

// How the numbers of a format that are not negative stand in order: 0, those of the decades, 1.
struct DynamicMap {
  int zero;                     // the code of 0
  int most;                     // the place of 1: `zero` + `most` is the last code
  float values[kDynamicCodes];  // by code
  // Between places k and k + 1; a number above it is nearer to the upper one. Behind the last place: infinity.
  float middles[kDynamicCodes];

  constexpr explicit DynamicMap(bool with_sign)
      : zero(with_sign ? 127 : 0), most(kDynamicCodes - 1 - zero), values{}, middles{} {
    values[zero + most] = 1.0f;
    int place = 1;
    for (int decade = 0; decade < 7; ++decade) {
      const int n = (with_sign ? 1 : 2) << decade;
      for (int j = 0; j < n; ++j, ++place) {
        values[zero + place] = dynamic_map::number(decade, n, j);
        if (with_sign) values[zero - place] = -values[zero + place];
      }
    }
    for (int k = 0; k < kDynamicCodes; ++k)
      middles[k] = k < most ? (values[zero + k] + values[zero + k + 1]) * 0.5f
                            : std::numeric_limits<float>::infinity();
  }
};

inline constexpr DynamicMap kDynamicMap{true}, kUnsignedDynamicMap{false};

constexpr bool has_sign(DType t) { return t == DType::kDynamic8; }
constexpr const DynamicMap& dynamic_map_of(DType t) {
  return has_sign(t) ? kDynamicMap : kUnsignedDynamicMap;
}

// The place of what is nearest to `magnitude`, the lower one of two that are as near: how many of `most`
// middles are below it. middle(k): that between places k and k + 1.
template <class T, class Middle>
constexpr int nearest_place(const Middle& middle, int most, T magnitude) {
  int place = 0;
  for (int step = 128; step > 0; step /= 2)
    if (place + step <= most && magnitude > middle(place + step - 1)) place += step;
  return place;
}

// The code of the place of x's magnitude. Of what is not 0 the sign is kept where there is one to keep: a small
// negative number becomes the smallest there is, as bitsandbytes has it; and there is no -1.
constexpr uint8_t dynamic_code(int zero, int place, bool negative) {
  if (!negative || zero == 0) return static_cast<uint8_t>(zero + place);
  return static_cast<uint8_t>(zero - std::clamp(place, 1, zero));
}
template <class T>
constexpr uint8_t nearest_code(const DynamicMap& map, T x) {
  const auto middle = [&map](int place) { return map.middles[place]; };
  return dynamic_code(map.zero, nearest_place(middle, map.most, x < 0 ? -x : x), x < 0);
}

// What brings a block's numbers to [-1, 1]: x * first * second. Two factors, since 1 / scale is infinite where
// the scale is next to nothing; both are 0 where it is 0.
struct DynamicFactors {
  float first, second;
};
constexpr DynamicFactors dynamic_factors(float scale) {
  constexpr float kSmall = 0x1p-100f;
  if (scale >= kSmall) return {1.0f, 1.0f / scale};
  return scale > 0 ? DynamicFactors{1.0f / kSmall, 1.0f / (scale * (1.0f / kSmall))} : DynamicFactors{0, 0};
}

// count: up to kDynamicBlock.
template <class T>
void encode_dynamic(const DynamicMap& map, const T* from, int64_t count, DynamicBlock& to) {
  T largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, static_cast<T>(std::fabs(from[i])));
  to.scale = static_cast<float>(largest);
  const DynamicFactors factors = dynamic_factors(to.scale);
  for (int64_t i = 0; i < kDynamicBlock; ++i)
    to.codes[i] = i < count ? nearest_code(map, from[i] * factors.first * factors.second)
                            : static_cast<uint8_t>(map.zero);
}
template <class T>
void decode_dynamic(const DynamicMap& map, const DynamicBlock& from, int64_t count, T* to) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = static_cast<T>(map.values[from.codes[i]]) * static_cast<T>(from.scale);
}

}  // namespace cairn
