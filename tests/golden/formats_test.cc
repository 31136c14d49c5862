// The formats of frozen parameters against their judges (make_formats.py), to the bit: what blocks decode to, and what
// numbers encode to.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "runtime/base/tensor.h"
#include "runtime/formats/codecs.h"
#include "runtime/io/safetensors/safetensors.h"

namespace cairn::golden {
namespace {

struct Row {
  const char *file, *format;
  int64_t row = 0;  // > 0: values of a row whose numbers are encoded together
};
class Formats : public testing::TestWithParam<Row> {};

template <class T>
std::vector<T> all_of(const io::SafeTensors& file, const char* name) {
  const auto found = std::ranges::find(file.tensors(), name, &io::SafeTensor::name);
  if (found == file.tensors().end()) return {};
  std::vector<T> values(static_cast<size_t>(found->desc.bytes()) / sizeof(T));
  file.read(*found, 0, values.data(), values.size() * sizeof(T));
  return values;
}

TEST_P(Formats, AreTheirJudges) {
  const Row& row = GetParam();
  const io::SafeTensors file(cat(CAIRN_SOURCE_DIR, "/tests/golden/data/formats/", row.file, ".safetensors"));
  const auto blocks = all_of<char>(file, "blocks");
  const auto values = all_of<float>(file, "values"), numbers = all_of<float>(file, "numbers");
  const DType type = dtype_from_name(row.format);
  const formats::Codec& codec = formats::codec(type);
  const auto count = static_cast<int64_t>(values.size());
  ASSERT_EQ(format(type).bytes(count), static_cast<int64_t>(blocks.size()));
  std::vector<float> decoded(values.size());
  codec.decode(blocks.data(), count, decoded.data());
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(std::memcmp(&decoded[i], &values[i], 4), 0) << i << ": " << decoded[i] << ", " << values[i];
  if (numbers.empty()) return;
  std::vector<char> encoded(blocks.size());
  const int64_t each = row.row > 0 ? row.row : count;
  for (int64_t at = 0; at < count; at += each)
    ASSERT_TRUE(codec.encode(numbers.data() + at, each, encoded.data() + format(type).bytes(at)));
  for (size_t i = 0; i < blocks.size(); ++i)
    ASSERT_EQ(encoded[i], blocks[i]) << "byte " << i % static_cast<size_t>(format(type).block_bytes())
                                     << " of block " << i / static_cast<size_t>(format(type).block_bytes());
}

INSTANTIATE_TEST_SUITE_P(All, Formats,
                         testing::Values(Row{"int8", "int8"}, Row{"nf4", "nf4"},
                                         Row{"nf4_nested", "nf4_nested"}, Row{"llm_int8", "llm_int8", 192},
                                         Row{"fp8", "fp8"}, Row{"fp8_codes", "fp8"}, Row{"mxfp4", "mxfp4"},
                                         Row{"u4", "u4"}, Row{"q4_0", "q4_0"}, Row{"q8_0", "q8_0"},
                                         Row{"q4_0_blocks", "q4_0"}, Row{"q8_0_blocks", "q8_0"},
                                         Row{"q4_k_blocks", "q4_k"}, Row{"q5_k_blocks", "q5_k"},
                                         Row{"q6_k_blocks", "q6_k"}, Row{"iq4_nl_blocks", "iq4_nl"},
                                         Row{"iq4_xs_blocks", "iq4_xs"}),
                         [](const auto& test) { return std::string(test.param.file); });

}  // namespace
}  // namespace cairn::golden
