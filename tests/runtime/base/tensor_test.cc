// Formats: what a tensor takes where it is stored.
#include "runtime/base/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace cairn {
namespace {

// The order is the value that the ABI and files hold.
TEST(Formats, RowsStandWhereTheyAlwaysDid) {
  struct Row {
    DType type;
    int value;
    const char* name;
    int64_t bytes;
  };
  const Row rows[] = {{DType::kF32, 0, "f32", 4}, {DType::kBF16, 1, "bf16", 2},    {DType::kF16, 2, "f16", 2},
                      {DType::kF64, 3, "f64", 8}, {DType::kI32, 4, "i32", 4},      {DType::kI64, 5, "i64", 8},
                      {DType::kU8, 6, "u8", 1},   {DType::kOpaque, 7, "opaque", 1}};
  const Row in_blocks[] = {{DType::kDynamic8, 8, "dynamic8", 260}, {DType::kUDynamic8, 9, "udynamic8", 260}};
  ASSERT_LE(static_cast<int>(std::size(rows) + std::size(in_blocks) + 2),
            kDTypeCount);  // new ones come after
  EXPECT_EQ(static_cast<int>(DType::kSplit), 10);
  EXPECT_EQ(dtype_from_name("split"), DType::kSplit);
  EXPECT_EQ((TensorDesc{DType::kSplit, {3, 5}, 0}.bytes()), 30);
  EXPECT_EQ(format(DType::kSplit).computed_as, DType::kF32);
  EXPECT_EQ(static_cast<int>(DType::kInt8), 11);
  EXPECT_EQ(dtype_from_name("int8"), DType::kInt8);
  EXPECT_EQ((TensorDesc{DType::kInt8, {3, 100}, 0}.bytes()), 5 * 68);
  for (const Row& row : in_blocks) {
    EXPECT_EQ(static_cast<int>(row.type), row.value) << row.name;
    EXPECT_EQ(dtype_name(row.type), row.name);
    EXPECT_EQ(dtype_from_name(row.name), row.type);
    EXPECT_EQ((TensorDesc{row.type, {3, 100}, 0}.bytes()), 2 * row.bytes) << row.name;
    EXPECT_THROW(dtype_bytes(row.type), Error) << row.name;
  }
  for (const Row& row : rows) {
    EXPECT_EQ(static_cast<int>(row.type), row.value) << row.name;
    EXPECT_EQ(dtype_name(row.type), row.name);
    EXPECT_EQ(dtype_from_name(row.name), row.type);
    EXPECT_EQ(dtype_bytes(row.type), row.bytes) << row.name;
    EXPECT_EQ((TensorDesc{row.type, {3, 5}, 0}.bytes()), 15 * row.bytes) << row.name;
    EXPECT_EQ(format(row.type).computed_as, row.type) << row.name;
  }
  EXPECT_EQ((TensorDesc{DType::kOpaque, {3, 5}, 4096}.bytes()), 4096);
  EXPECT_THROW(dtype_from_name("nf3"), Error);
}

// Formats in blocks, of other sizes than those of the table.
TEST(Formats, BlocksAreStoredWhole) {
  const Format eight{"q8", 8, 256, 256, 4, DType::kF32, Read::kDequantised, false};
  const Format four{"q4", 4, 64, 64, 4, DType::kBF16, Read::kDequantised, false};
  EXPECT_EQ(eight.block_bytes(), 260);
  EXPECT_EQ(eight.bytes(0), 0);
  EXPECT_EQ(eight.bytes(1), 260);
  EXPECT_EQ(eight.bytes(256), 260);
  EXPECT_EQ(eight.bytes(257), 520);
  EXPECT_EQ(four.block_bytes(), 36);
  EXPECT_EQ(four.bytes(1000), 16 * 36);
  const Format whole{"q4", 4, 2, 2, 0, DType::kF32, Read::kDequantised, false};
  EXPECT_EQ(whole.bytes(7), 4);
}

TEST(Formats, SizesThatNobodyCanCountAreRefused) {
  EXPECT_EQ(format(DType::kU8).bytes(INT64_MAX), INT64_MAX);
  EXPECT_THROW(format(DType::kBF16).bytes(INT64_MAX), Error);
  const Format eight{"q8", 8, 256, 256, 4, DType::kF32, Read::kDequantised, false};
  EXPECT_THROW(eight.bytes(INT64_MAX), Error);
  EXPECT_EQ(eight.bytes(INT64_MAX / 2), (INT64_MAX / 2 / 256 + 1) * 260);
}

// What the bits of a float16 mean, by the standard's formula.
double meaning(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double sign = bits >> 15 != 0 ? -1 : 1;
  if (exponent == 31) return fraction != 0 ? std::nan("") : sign * HUGE_VAL;
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

TEST(Float16, EveryNumberIsReadAndWrittenBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const f16 v{static_cast<uint16_t>(bits)};
    const double means = meaning(v.bits);
    if (std::isnan(means)) {
      EXPECT_TRUE(std::isnan(to_float(v))) << bits;
      EXPECT_TRUE(std::isnan(meaning(to_f16(to_float(v)).bits))) << bits;
      continue;
    }
    ASSERT_EQ(to_float(v), means) << bits;
    ASSERT_EQ(to_f16(to_float(v)).bits, v.bits) << bits;
  }
}

// Between neighbours: to the nearer, halfway to the even one; above the largest by half a step, to infinity.
TEST(Float16, RoundsToNearestEven) {
  for (uint16_t low = 0; low < 0x7c00; ++low) {
    const auto high = static_cast<uint16_t>(low + 1);
    const double above = low == 0x7bff ? 65536.0 : meaning(high);
    const auto middle = static_cast<float>((meaning(low) + above) / 2);
    EXPECT_EQ(to_f16(middle).bits, low % 2 == 0 ? low : high) << low;
    EXPECT_EQ(to_f16(std::nextafter(middle, 0.0f)).bits, low) << low;
    EXPECT_EQ(to_f16(std::nextafter(middle, 1e9f)).bits, high) << low;
    EXPECT_EQ(to_f16(-middle).bits, 0x8000 | (low % 2 == 0 ? low : high)) << low;
  }
  EXPECT_EQ(to_f16(1e30f).bits, 0x7c00);
  EXPECT_EQ(to_f16(-std::numeric_limits<float>::infinity()).bits, 0xfc00);
  EXPECT_EQ(to_f16(1e-30f).bits, 0);
}

}  // namespace
}  // namespace cairn
