// The dynamic 8-bit formats: the maps in order, nearest codes, blocks.
#include "runtime/formats/dynamic8.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace cairn {
namespace {

constexpr DType kFormats[] = {DType::kDynamic8, DType::kUDynamic8};

TEST(DynamicMap, CodesInOrderAreNumbersInOrder) {
  for (const DType type : kFormats) {
    const DynamicMap& map = dynamic_map_of(type);
    for (int code = 1; code < kDynamicCodes; ++code)
      EXPECT_GT(map.values[code], map.values[code - 1]) << code;
    EXPECT_EQ(map.values[map.zero], 0);
    EXPECT_EQ(map.values[255], 1);
    EXPECT_EQ(map.values[0], type == DType::kDynamic8 ? -map.values[254] : 0.0f);
    EXPECT_EQ(format(type).block_bytes(), static_cast<int64_t>(sizeof(DynamicBlock)));
    EXPECT_EQ(format(type).bytes(257), 2 * static_cast<int64_t>(sizeof(DynamicBlock)));
  }
}

// By trying all of them; the lower one of two that are as near.
int nearest(const DynamicMap& map, double magnitude) {
  int best = map.zero;
  for (int code = map.zero; code < kDynamicCodes; ++code)
    if (std::fabs(map.values[code] - magnitude) < std::fabs(map.values[best] - magnitude)) best = code;
  return best;
}

TEST(DynamicMap, ACodeIsTheNearest) {
  for (const DType type : kFormats) {
    const DynamicMap& map = dynamic_map_of(type);
    for (int code = 0; code < kDynamicCodes; ++code) EXPECT_EQ(nearest_code(map, map.values[code]), code);
    for (double x = 1e-9; x <= 1; x *= 1.0007) {
      const uint8_t code = nearest_code(map, x);
      EXPECT_EQ(code, nearest(map, x)) << x;
      if (type == DType::kUDynamic8) continue;
      // As far from 0 on the other side, but for 0 itself and for 1.
      EXPECT_EQ(nearest_code(map, -x), code == 127 ? 126 : code == 255 ? 0 : 254 - code) << x;
    }
    for (int place = 0; place < map.most; ++place) {
      const float middle = map.middles[place];
      EXPECT_EQ(nearest_code(map, middle), map.zero + place) << "of two as near the lower one";
      EXPECT_EQ(nearest_code(map, std::nextafter(middle, 2.0f)), map.zero + place + 1);
    }
  }
}

TEST(DynamicMap, ABlockKeepsItsLargestNumberAndItsZeros) {
  for (const DType type : kFormats) {
    const DynamicMap& map = dynamic_map_of(type);
    for (const float scale : {1.0f, 3e38f, 1e-30f, 1e-36f, 1e-40f, 1e-45f, 0.0f}) {
      std::array<float, 100> from, back;
      for (size_t i = 0; i < from.size(); ++i) from[i] = i % 3 == 0 ? 0.0f : scale / static_cast<float>(i);
      DynamicBlock block;
      encode_dynamic(map, from.data(), 100, block);
      EXPECT_EQ(block.scale, scale);
      for (int i = 100; i < kDynamicBlock; ++i)
        EXPECT_EQ(block.codes[i], map.zero) << "behind the last number";
      decode_dynamic(map, block, 100, back.data());
      EXPECT_EQ(back[1], scale);
      for (size_t i = 0; i < from.size(); ++i) {
        EXPECT_NEAR(back[i], from[i], std::max(0.15f * from[i], std::numeric_limits<float>::denorm_min()))
            << scale;
        if (from[i] == 0) EXPECT_EQ(back[i], 0);
      }
    }
  }
}

// What a run begins with, and a tier holds before it is written.
TEST(DynamicMap, BlocksOfAllBitsZeroAreZeros) {
  for (const DType type : kFormats) {
    const DynamicBlock block = {};
    std::array<float, kDynamicBlock> numbers;
    decode_dynamic(dynamic_map_of(type), block, kDynamicBlock, numbers.data());
    for (const float number : numbers) EXPECT_EQ(number, 0);
  }
}

TEST(DynamicMap, WhatIsNotFiniteHasACodeToo) {
  for (const DType type : kFormats)
    for (const float bad : {HUGE_VALF, -HUGE_VALF, std::nanf("")}) {
      const float from[] = {bad, 1.0f, 0.5f};
      DynamicBlock block;
      encode_dynamic(dynamic_map_of(type), from, 3, block);
      EXPECT_GE(block.codes[0], 0);
    }
}

}  // namespace
}  // namespace cairn
