// Every codec: what it stores in the bytes that its row says, what comes back, and what it refuses.
#include "runtime/formats/codecs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "runtime/base/tensor.h"

namespace cairn::formats {
namespace {

TEST(Codecs, WhatIsReadIsStoredAsItself) {
  for (const DType type : kDTypes) {
    if (!codec(type)) continue;
    SCOPED_TRACE(dtype_name(type));
    const bool negative = type != DType::kUDynamic8;
    for (const int64_t count : {int64_t{1}, format(type).block, 3 * format(type).block + 1}) {
      std::vector<float> numbers(static_cast<size_t>(count)), once(numbers), twice(numbers);
      for (size_t i = 0; i < numbers.size(); ++i)
        numbers[i] = static_cast<float>(i * 37 % 101) / 64.0f - (negative ? 0.75f : 0.0f);
      std::vector<char> bytes(static_cast<size_t>(format(type).bytes(count)) + 1, 'x'), again(bytes);
      ASSERT_TRUE(codec(type).encode(numbers.data(), count, bytes.data()));
      EXPECT_EQ(bytes.back(), 'x');
      codec(type).decode(bytes.data(), count, once.data());
      for (size_t i = 0; i < numbers.size(); ++i) EXPECT_NEAR(once[i], numbers[i], 0.05) << i;
      if (format(type).read == Read::kByUpdates) continue;  // there is no -1 in the maps of states
      ASSERT_TRUE(codec(type).encode(once.data(), count, again.data()));
      codec(type).decode(again.data(), count, twice.data());
      EXPECT_EQ(once, twice);
    }
  }
}

TEST(Codecs, FormatsThatAreDequantisedHaveOneAndNoneOfThemTrains) {
  int count = 0;
  for (const DType type : kDTypes) {
    const bool visited = with_dequantised(type, [&](auto of) { EXPECT_EQ(of.kBlock, format(type).block); });
    EXPECT_EQ(visited, format(type).read == Read::kDequantised) << dtype_name(type);
    if (!visited) continue;
    ++count;
    EXPECT_TRUE(static_cast<bool>(codec(type)) && !format(type).trains) << dtype_name(type);
  }
  EXPECT_GE(count, 1);
}

TEST(Codecs, Int8RefusesWhatHasNoScale) {
  Int8::Block block;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float bad : {kInfinity, -kInfinity, std::nanf(""), std::numeric_limits<float>::max()}) {
    std::vector<float> numbers(64, 1.0f);
    numbers[63] = bad;
    EXPECT_FALSE(Int8::encode(numbers.data(), 64, block)) << bad;
    EXPECT_FALSE(codec(DType::kInt8).encode(numbers.data(), 64, &block)) << bad;
  }
}

TEST(Codecs, NumbersThatWereReadGiveTheirBlock) {
  std::mt19937 random(3);
  for (int b = 0; b < 20000; ++b) {
    float numbers[64];
    for (float& number : numbers) number = static_cast<float>(random() % 20001) / 1e4f - 1;
    Int8::Block block, again;
    ASSERT_TRUE(Int8::encode(numbers, 64, block));
    for (int i = 0; i < 64; ++i) numbers[i] = Int8::decode(block, i);
    ASSERT_TRUE(Int8::encode(numbers, 64, again));
    ASSERT_EQ(std::memcmp(&block, &again, sizeof block), 0) << b;
  }
}

TEST(Codecs, Int8OfNothingIsNothing) {
  const float zeros[64] = {};
  Int8::Block block;
  ASSERT_TRUE(Int8::encode(zeros, 3, block));
  for (int i = 0; i < 64; ++i) EXPECT_EQ(Int8::decode(block, i), 0.0f);
  constexpr float kSmallest = std::numeric_limits<float>::denorm_min();
  const float least[2] = {kSmallest, -kSmallest};
  ASSERT_TRUE(Int8::encode(least, 2, block));
  EXPECT_EQ(Int8::decode(block, 0), 0.0f);
}

}  // namespace
}  // namespace cairn::formats
