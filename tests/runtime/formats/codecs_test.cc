// Every codec: what it stores in the bytes that its row says, what comes back, and what it refuses.
#include "runtime/formats/codecs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "runtime/base/tensor.h"

namespace cairn::formats {
namespace {

// How far from a number what is stored may be, by the bits of a code; numbers here are below 1.
double apart(DType type) { return format(type).bits > 6 ? 0.05 : format(type).bits > 4 ? 0.08 : 0.17; }

TEST(Codecs, WhatIsReadIsNearWhatWasStored) {
  for (const DType type : kDTypes) {
    if (!codec(type)) continue;
    SCOPED_TRACE(dtype_name(type));
    const bool negative = type != DType::kUDynamic8;
    for (const int64_t count : {int64_t{1}, format(type).block, 3 * format(type).block + 1}) {
      std::vector<float> numbers(static_cast<size_t>(count)), once(numbers);
      for (size_t i = 0; i < numbers.size(); ++i)
        numbers[i] = static_cast<float>(i * 37 % 101) / 64.0f - (negative ? 0.75f : 0.0f);
      std::vector<char> bytes(static_cast<size_t>(format(type).bytes(count)) + 1, 'x');
      ASSERT_TRUE(codec(type).encode(numbers.data(), count, bytes.data()));
      EXPECT_EQ(bytes.back(), 'x');
      codec(type).decode(bytes.data(), count, once.data());
      for (size_t i = 0; i < numbers.size(); ++i) ASSERT_NEAR(once[i], numbers[i], apart(type)) << i;
    }
  }
}

// Finite numbers of any size: what is read is a number, or they were refused.
TEST(Codecs, FiniteNumbersAreNeverReadAsNone) {
  constexpr float kLargest = std::numeric_limits<float>::max(),
                  kLeast = std::numeric_limits<float>::denorm_min();
  for (const DType type : kDTypes) {
    if (format(type).read != Read::kDequantised) continue;
    SCOPED_TRACE(dtype_name(type));
    const int64_t count = format(type).block;
    for (const float size : {0.0f, -0.0f, kLeast, 3 * kLeast, 1e-39f, 1e-20f, 1.0f, 1e20f, 1e37f, kLargest}) {
      std::vector<float> numbers(static_cast<size_t>(count));
      for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = i % 3 == 0 ? size : i % 3 == 1 ? -size / 7 : 0;
      std::vector<char> bytes(static_cast<size_t>(format(type).bytes(count)));
      if (!codec(type).encode(numbers.data(), count, bytes.data())) {
        EXPECT_GE(size, 1e6f);
        continue;
      }
      codec(type).decode(bytes.data(), count, numbers.data());
      for (const float number : numbers) ASSERT_TRUE(std::isfinite(number)) << size;
    }
    for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
      std::vector<float> numbers(static_cast<size_t>(count), 1.0f);
      numbers.back() = -bad;
      std::vector<char> bytes(static_cast<size_t>(format(type).bytes(count)));
      EXPECT_FALSE(codec(type).encode(numbers.data(), count, bytes.data())) << bad;
    }
  }
}

// A tensor in parts: a scope that is not its block's needs to know all of it first.
TEST(Codecs, PartsAreEncodedAsTheTensorIs) {
  for (const DType type : kDTypes) {
    if (format(type).read != Read::kDequantised) continue;
    const int64_t block = format(type).block, count = 3 * block + 5;
    std::vector<float> numbers(static_cast<size_t>(count));
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i * 37 % 101 * (i % 5 + 1));
    std::vector<char> at_once(static_cast<size_t>(format(type).bytes(count))), in_parts(at_once);
    ASSERT_TRUE(codec(type).encode(numbers.data(), count, at_once.data()));
    Known known;
    for (int64_t at = 0; at < count; at += 2 * block)
      codec(type).measure(numbers.data() + at, std::min(2 * block, count - at), known);
    for (int64_t at = 0; at < count; at += 2 * block)
      ASSERT_TRUE(codec(type).encode_part(numbers.data() + at, std::min(2 * block, count - at), known,
                                          in_parts.data() + format(type).bytes(at)));
    EXPECT_EQ(at_once, in_parts) << dtype_name(type);
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
