// The format int8 against numpy (make_int8.py), to the bit.
#include <gtest/gtest.h>

#include "runtime/formats/codecs.h"
#include "tests/golden/fixture.h"

namespace cairn::golden {
namespace {

TEST(Int8, BlocksAreThoseOfNumpy) {
  const std::vector<FixtureCase> cases = read_fixture(cat(CAIRN_SOURCE_DIR, "/tests/golden/data/int8.txt"));
  ASSERT_EQ(cases.size(), 8u);
  for (size_t c = 0; c < cases.size(); ++c) {
    SCOPED_TRACE(c);
    const auto values = [&](std::string_view word) -> const std::vector<double>& {
      return cases[c].all(word).at(0)->values;
    };
    std::vector<float> numbers(values("numbers").begin(), values("numbers").end()), read(numbers.size());
    formats::Int8::Block block;
    ASSERT_TRUE(formats::Int8::encode(numbers.data(), formats::Int8::kBlock, block));
    EXPECT_EQ(block.scale, values("scale")[0]);
    formats::codec(DType::kInt8).decode(&block, formats::Int8::kBlock, read.data());
    for (size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_EQ(block.codes[i], values("codes")[i]) << numbers[i] << " / " << block.scale;
      EXPECT_EQ(read[i], values("read")[i]);
    }
  }
}

}  // namespace
}  // namespace cairn::golden
