#include "runtime/io/safetensors/safetensors.h"

#include <gtest/gtest.h>

#include "runtime/io/convert.h"
#include "tests/runtime/io/samples.h"
#include "tests/runtime/io/scratch.h"
#include "tests/support/seeds.h"

namespace cairn::io {
namespace {

test::Failure load(const test::Scratch& scratch, const std::string& file) {
  scratch.put("file", file);
  return test::failure([&] { SafeTensors tensors(scratch / "file"); });
}

const char* const kGood =
    R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
    R"("b":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]},"c":{"dtype":"F64","shape":[],"data_offsets":[32,40]}})";

TEST(SafeTensors, ReadsWhatTheFormatSays) {
  const test::Scratch scratch;
  scratch.put("file", test::safetensors(std::string(kGood) + "   ", 40));
  const SafeTensors file(scratch / "file");
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(to_string(file.find("a")->desc), "f32[2, 3]");
  EXPECT_EQ(to_string(file.find("b")->desc), "bf16[4]");
  EXPECT_EQ(to_string(file.find("c")->desc), "f64[]");
  std::byte first{};
  file.read(*file.find("b"), 0, &first, 1);
  EXPECT_EQ(static_cast<int>(first), 24);
  EXPECT_EQ(file.find("d"), nullptr);
  EXPECT_EQ(file.metadata().at("format"), "pt");
}

struct Broken {
  const char* reason;  // part of the message
  const char* header;
  size_t data;
  Code code = Code::kCorruptFile;
};
#define ONE(fields) "{\"a\":{" fields "}}"
const Broken kMustFail[] = {
    {"is there twice",
     R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
     2},
    {"inside the tensor before it",
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
     6},
    {"inside the tensor before it",
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
     4},
    {"after a hole",
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[5,9]}})",
     9},
    {"after a hole", ONE(R"("dtype":"U8","shape":[4],"data_offsets":[1,5])"), 5},
    {"belong to no tensor", ONE(R"("dtype":"U8","shape":[4],"data_offsets":[0,4])"), 5},
    {"belong to no tensor", "{}", 1},
    {"after the data's", ONE(R"("dtype":"U8","shape":[4],"data_offsets":[0,4])"), 3},
    {"4 bytes, but has 5", ONE(R"("dtype":"U8","shape":[4],"data_offsets":[0,5])"), 5},
    {"16 bytes, but has 4", ONE(R"("dtype":"F32","shape":[4],"data_offsets":[0,4])"), 4},
    {"not a range", ONE(R"("dtype":"U8","shape":[4],"data_offsets":[4,0])"), 4},
    {"not a range", ONE(R"("dtype":"U8","shape":[4],"data_offsets":[0,2,4])"), 4},
    {"not a range", ONE(R"("dtype":"U8","shape":[4],"data_offsets":[])"), 4},
    {"something else than a size", ONE(R"("dtype":"U8","shape":[4],"data_offsets":[0,4.0])"), 4},
    {"something else than a size", ONE(R"("dtype":"U8","shape":[-4],"data_offsets":[0,4])"), 4},
    {"something else than a size", ONE(R"("dtype":"U8","shape":["4"],"data_offsets":[0,4])"), 4},
    {"something else than a size", ONE(R"("dtype":"U8","shape":[4],"data_offsets":[0,18446744073709551615])"),
     4},
    {"overflows", ONE(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4])"), 4},
    {"overflows", ONE(R"("dtype":"F64","shape":[2305843009213693951],"data_offsets":[0,4])"), 4},
    {"lacks dtype", ONE(R"("shape":[4],"data_offsets":[0,4])"), 4},
    {"lacks shape", ONE(R"("dtype":"U8","data_offsets":[0,4])"), 4},
    {"lacks data_offsets", ONE(R"("dtype":"U8","shape":[4])"), 4},
    {"has 'shape' twice", ONE(R"("dtype":"U8","shape":[4],"shape":[4],"data_offsets":[0,4])"), 4},
    {"unknown field 'extra'", ONE(R"("dtype":"U8","shape":[4],"data_offsets":[0,4],"extra":1)"), 4},
    {"is not a text", ONE(R"("dtype":3,"shape":[4],"data_offsets":[0,4])"), 4},
    {"is not a list", ONE(R"("dtype":"U8","shape":4,"data_offsets":[0,4])"), 4},
    {"is not an object", R"({"a":[]})", 0},
    {"__metadata__ is not an object", R"({"__metadata__":"x"})", 0},
    {"is not a text", R"({"__metadata__":{"x":1}})", 0},
    {"is there twice", R"({"__metadata__":{"x":"1","x":"2"}})", 0},
    {"__metadata__ is there twice", R"({"__metadata__":{},"__metadata__":{}})", 0},
    {"does not begin with '{'", R"([1])", 0},
    {"does not begin with '{'", R"( {})", 0},
    {"does not end with '}'", "{}\n", 0},
    {"is not JSON", R"({"a"})", 0},
    {"is not JSON", "{}{}", 0},
    {"is not JSON", "{\"\xFF\":1}", 0},
    {"dtype 'F8_E9M9'", ONE(R"("dtype":"F8_E9M9","shape":[4],"data_offsets":[0,4])"), 4, Code::kUnsupported},
    {"4 bytes, but has 5", ONE(R"("dtype":"BOOL","shape":[4],"data_offsets":[0,5])"), 5},
    {"3 bytes, but has 4", ONE(R"("dtype":"F6_E2M3","shape":[4],"data_offsets":[0,4])"), 4},
    {"no whole number of bytes", ONE(R"("dtype":"F4","shape":[3],"data_offsets":[0,2])"), 2},
    {"0 bytes, but has 1", ONE(R"("dtype":"U8","shape":[0],"data_offsets":[0,1])"), 1},
};

TEST(SafeTensors, MustFail) {
  const test::Scratch scratch;
  for (const Broken& broken : kMustFail) {
    const auto result = load(scratch, test::safetensors(broken.header, broken.data));
    EXPECT_EQ(result.code, broken.code) << broken.header << ": " << result.message;
    EXPECT_NE(result.message.find(broken.reason), std::string::npos)
        << broken.reason << " / " << result.message;
  }
}

TEST(SafeTensors, TensorsOfOtherTypesAreListed) {
  const test::Scratch scratch;
  scratch.put("file", test::safetensors(
                          R"({"mask":{"dtype":"BOOL","shape":[4],"data_offsets":[0,4]},)"
                          R"("x":{"dtype":"F32","shape":[2],"data_offsets":[4,12]},)"
                          R"("none":{"dtype":"F32","shape":[0,7],"data_offsets":[4,4]},)"
                          R"("four":{"dtype":"F4","shape":[3,2],"data_offsets":[12,15]},)"
                          R"("deep":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[15,16]}})",
                          16));
  const SafeTensors file(scratch / "file");
  ASSERT_EQ(file.tensors().size(), 5u);
  EXPECT_EQ(file.find("mask")->unusable, "BOOL");
  EXPECT_EQ(file.find("none")->unusable, "empty");
  EXPECT_EQ(file.find("four")->unusable, "F4");
  EXPECT_EQ(file.find("deep")->unusable, "of rank 9");
  EXPECT_TRUE(file.find("x")->usable());
  std::byte first{};
  file.read(*file.find("x"), 0, &first, 1);
  EXPECT_EQ(static_cast<int>(first), 4);
}

TEST(SafeTensors, OtherFilesAreNamedForWhatTheyAre) {
  const test::Scratch scratch;
  const std::pair<std::string, const char*> files[] = {
      {std::string("PK\3\4\0\0\0\0", 8), "a zip archive"},  // below the longest header, taken as a length
      {std::string("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46", 8), "a pickle"},
      {std::string("\x93NUMPY\1\0", 8), "a NumPy array"},
      {std::string("\x89HDF\r\n\x1a\n", 8), "an HDF5 file"},
  };
  for (const auto& [head, what] : files) {
    const auto result = load(scratch, head + std::string(64, 'x'));
    EXPECT_EQ(result.code, Code::kCorruptFile);
    EXPECT_NE(result.message.find(what), std::string::npos) << result.message;
  }
}

TEST(SafeTensors, HeaderLengthsAreNotTrusted) {
  const test::Scratch scratch;
  std::string file = test::safetensors(kGood, 40);
  for (uint64_t length : {uint64_t{0}, uint64_t{1}, uint64_t{100'000'001}, uint64_t{1} << 40, ~uint64_t{0},
                          file.size() - 7, uint64_t{99'999'999}}) {
    std::memcpy(file.data(), &length, 8);
    EXPECT_EQ(load(scratch, file).code, Code::kCorruptFile) << length;
  }
  EXPECT_EQ(test::failure([&] { SafeTensors none(scratch / "none"); }).code, Code::kNotFound);
}

TEST(SafeTensors, DeepJsonIsAnError) {
  const test::Scratch scratch;
  std::string deep = "{\"a\":";
  for (int i = 0; i < 100000; ++i) deep += '[';
  EXPECT_EQ(load(scratch, test::safetensors(deep + "}", 0)).code, Code::kCorruptFile);
}

TEST(SafeTensors, EveryTruncationIsAnErrorAndNoFlippedBitCrashes) {
  const test::Scratch scratch;
  const std::string good = test::safetensors(kGood, 40);
  const auto stride = static_cast<size_t>(support::stride(9));
  for (size_t size = 0; size < good.size(); size += stride)
    ASSERT_EQ(load(scratch, good.substr(0, size)).code, Code::kCorruptFile) << size;
  // The format has no digest: a flipped letter of a name or bit of data is another valid file. Structure must
  // hold.
  for (size_t bit = 0; bit < good.size() * 8; bit += stride) {
    std::string bad = good;
    bad[bit / 8] ^= static_cast<char>(1u << bit % 8);
    scratch.put("file", bad);
    const auto result = test::failure([&] {
      const SafeTensors file(scratch / "file");
      int64_t bytes = 0;
      for (const SafeTensor& tensor : file.tensors()) bytes += static_cast<int64_t>(tensor.bytes);
      ASSERT_EQ(bytes, 40);
    });
    ASSERT_TRUE(result.code == Code::kOk || result.code == Code::kCorruptFile ||
                result.code == Code::kUnsupported);
  }
}

TEST(SafeTensors, WhatIsWrittenIsRead) {
  const test::Scratch scratch;
  std::vector<SafeTensorSource> sources;
  int asked = 0;
  for (const char* name : {"z", "quote\"and\\slash\n", "\xC3\xA9\xF0\x9F\x98\x80", "a"})
    sources.push_back({name, {DType::kF32, {asked + 1, 3}}, [&asked](void* to) {
                         ++asked;
                         static_cast<float*>(to)[0] = static_cast<float>(asked);
                       }});
  write_safetensors(scratch / "out", sources, {{"format", "pt"}, {"note", "tab\there"}});
  EXPECT_EQ(asked, 4);
  const SafeTensors file(scratch / "out");
  ASSERT_EQ(file.tensors().size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(file.tensors()[i].name, sources[i].name);
    EXPECT_EQ(file.tensors()[i].desc, sources[i].desc);
    float first;
    file.read(file.tensors()[i], 0, &first, 4);
    EXPECT_EQ(first, static_cast<float>(i + 1));
  }
  EXPECT_EQ(file.metadata().at("note"), "tab\there");
  const std::string text = test::slurp(scratch / "out");
  uint64_t length;
  std::memcpy(&length, text.data(), 8);
  EXPECT_EQ(length % 8, 0u);

  sources.push_back(sources[0]);
  EXPECT_EQ(test::failure([&] { write_safetensors(scratch / "out", sources, {}); }).code,
            Code::kInvalidArgument);
  EXPECT_TRUE(test::slurp(scratch / "out") == text);  // the old file is untouched
  sources.pop_back();
  sources[0].desc.dtype = DType::kOpaque;
  EXPECT_EQ(test::failure([&] { write_safetensors(scratch / "out", sources, {}); }).code, Code::kUnsupported);
}

TEST(Convert, HalfIsExactForEveryValue) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double magnitude = exponent == 31 ? (fraction ? NAN : INFINITY)
                             : exponent     ? std::ldexp(1024 + fraction, exponent - 25)
                                            : std::ldexp(fraction, -24);
    const float value = half_to_float(static_cast<uint16_t>(bits));
    if (std::isnan(magnitude))
      EXPECT_TRUE(std::isnan(value));
    else
      ASSERT_EQ(value, static_cast<float>(bits >> 15 ? -magnitude : magnitude)) << bits;
    EXPECT_EQ(std::signbit(value), bits >> 15 != 0);
  }
}

}  // namespace
}  // namespace cairn::io
