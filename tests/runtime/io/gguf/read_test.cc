#include <gtest/gtest.h>

#include "runtime/io/gguf/gguf.h"
#include "runtime/io/inspect.h"
#include "runtime/io/limits.h"
#include "tests/runtime/io/gguf/sample.h"
#include "tests/runtime/io/scratch.h"

namespace cairn::io {
namespace {

using test::GgufSample;

TEST(Gguf, every_type_of_value_and_tensors) {
  const test::Scratch scratch;
  const Gguf file(scratch.put("a.gguf", test::gguf_sample().bytes()));
  EXPECT_EQ(file.version(), 3u);
  EXPECT_EQ(file.alignment(), 32u);
  EXPECT_EQ(file.find("general.architecture")->text(), "llama");
  const std::pair<const char*, double> numbers[] = {
      {"u8", 200}, {"i8", -3},  {"u16", 60000},  {"i16", -3},    {"u32", 0x1p31}, {"i32", -3},
      {"yes", 1},  {"i64", -3}, {"u64", 0x1p63}, {"f32", 1e-5f}, {"f64", 0.1}};
  for (const auto& [key, value] : numbers) EXPECT_EQ(file.find(key)->number(), value) << key;
  EXPECT_EQ(file.find("words")->count, 3u);
  EXPECT_EQ(file.find("words")->text(2), "\xC3\xA4");
  EXPECT_EQ(file.find("scores")->number(1), 0.5);
  EXPECT_EQ(file.find("lists")->inner.size(), 2u);
  EXPECT_EQ(file.find("none"), nullptr);
  ASSERT_EQ(file.tensors().size(), 4u);
  const GgufTensor& first = file.tensors()[0];
  EXPECT_EQ(first.shape, (std::vector<uint64_t>{3, 4}));  // the file has columns first
  EXPECT_EQ(first.bytes, 48u);
  char byte = 0;
  file.file()->read(first.offset, &byte, 1);
  EXPECT_EQ(byte, '\1');
  EXPECT_EQ(file.tensors()[2].bytes, 36u);
}

TEST(Gguf, inspected_as_json) {
  const test::Scratch scratch;
  const std::string json = inspect(scratch.put("a.gguf", test::gguf_sample().bytes()));
  for (const char* part :
       {R"("kind": "gguf", "version": 3)", R"("general.architecture": "llama")", R"("f32": 1e-05)",
        R"("lists": [[7], []])", R"("u64": 9223372036854775808)", R"("words": ["a", "", "ä"])",
        R"("yes": true)", R"("f32.weight": {"dtype": "f32", "shape": [3, 4], "bytes": 48)",
        R"("q4_0.weight": {"dtype": "q4_0", "shape": [2, 32], "bytes": 36)", R"("unusable": "Q2_K")"})
    EXPECT_NE(json.find(part), std::string::npos) << part << "\n" << json;
}

TEST(Gguf, version_2_and_other_alignments) {
  const test::Scratch scratch;
  GgufSample sample;
  sample.version = 2;
  sample.alignment = 64;
  sample.key("general.alignment", 4, GgufSample::number(uint32_t{64}));
  sample.tensor("a", {1}, 0, "abcd").tensor("b", {1}, 0, "efgh");
  const Gguf file(scratch.put("a", sample.bytes()));
  EXPECT_EQ(file.tensors()[1].offset - file.tensors()[0].offset, 64u);
  // The last tensor need not be padded.
  std::string bytes = sample.bytes();
  bytes.resize(bytes.size() - 60);
  EXPECT_NO_THROW(Gguf(scratch.put("b", bytes)));
}

// Each of these is refused, with a reason in words.
TEST(Gguf, refuses) {
  const test::Scratch scratch;
  const auto fails = [&](const std::string& bytes, Code code, const char* reason) {
    const test::Failure failed = test::failure([&] { Gguf(scratch.put("bad.gguf", bytes)); });
    EXPECT_EQ(failed.code, code) << reason << ": " << failed.message;
    EXPECT_NE(failed.message.find(reason), std::string::npos) << failed.message;
  };
  const auto with = [&](const auto& change) {
    GgufSample sample = test::gguf_sample();
    change(sample);
    return sample.bytes();
  };
  const std::string good = test::gguf_sample().bytes();
  fails("GGUF", Code::kCorruptFile, "it is no GGUF file");
  fails(with([](auto& s) { s.version = 1; }), Code::kUnsupported, "version 1");
  fails(with([](auto& s) { s.version = 4; }), Code::kUnsupported, "version 4");
  fails(with([](auto& s) { s.version = 0x03000000; }), Code::kUnsupported, "big-endian");
  for (const size_t size : {size_t{25}, size_t{60}, size_t{200}, good.size() - 100})
    fails(good.substr(0, size), Code::kCorruptFile, size > 300 ? "cut short" : "");
  fails(good + std::string(40, '\0'), Code::kCorruptFile, "belong to no tensor");
  fails(with([](auto& s) { s.key_count += uint64_t{1} << 60; }), Code::kCorruptFile, "do not fit the file");
  fails(with([](auto& s) { s.flag("yes", true); }), Code::kCorruptFile, "the key 'yes' is there twice");
  fails(with([](auto& s) { s.key("x", 13, "abcd"); }), Code::kUnsupported, "type 13");
  fails(with([](auto& s) { s.key("x", 7, "\2"); }), Code::kCorruptFile, "neither 0 nor 1");
  fails(with([](auto& s) { s.key("x", 8, GgufSample::number(uint64_t{1} << 62)); }), Code::kCorruptFile,
        "does not fit the file");
  fails(with([](auto& s) {
          s.key("x", 9, GgufSample::number(uint32_t{10}) + GgufSample::number((uint64_t{1} << 61) + 1));
        }),
        Code::kCorruptFile, "do not fit the file");
  std::string deep = GgufSample::number(uint32_t{9}) + GgufSample::number(uint64_t{1});
  for (int i = 0; i < 4; ++i) deep += deep.substr(0, 12);
  fails(with([&](auto& s) {
          s.key("x", 9, deep + GgufSample::number(uint32_t{4}) + GgufSample::number(uint64_t{0}));
        }),
        Code::kCorruptFile, "deeper than 4");
  fails(with([](auto& s) { s.key("\xff", 4, "abcd"); }), Code::kCorruptFile, "not UTF-8");
  for (const uint32_t alignment : {0u, 24u, 1u << 30})
    fails(with([&](auto& s) { s.key("general.alignment", 4, GgufSample::number(alignment)); }),
          Code::kCorruptFile, "a power of two");
  fails(with([](auto& s) { s.tensors[1].name = "f32.weight"; }), Code::kCorruptFile, "is there twice");
  fails(with([](auto& s) { s.tensors[1].type = 4; }), Code::kUnsupported, "block type 4, which is not known");
  fails(with([](auto& s) {
          s.tensors[2].dims = {33, 2};
        }),
        Code::kCorruptFile, "rows of 33 values do not divide by 32, the block of Q4_0");
  fails(with([](auto& s) { s.tensors[0].dims = {0}; }), Code::kCorruptFile, "a dimension of 0");
  fails(with([](auto& s) {
          s.tensors[0].dims = {uint64_t{1} << 40, uint64_t{1} << 40};
        }),
        Code::kCorruptFile, "");
  fails(with([](auto& s) { s.tensors[0].dims = {uint64_t{1} << 60}; }), Code::kCorruptFile, "");
  fails(with([](auto& s) { s.tensors[0].dims = {1, 1, 1, 1, 1}; }), Code::kCorruptFile, "5 dimensions");
  fails(with([](auto& s) { s.tensors[1].offset += 32; }), Code::kCorruptFile, "is expected");
  fails(with([](auto& s) { s.tensors[1].offset = 0; }), Code::kCorruptFile, "is expected");
  fails(with([](auto& s) { s.tensors[0].dims = {1 << 20}; }), Code::kCorruptFile, "cut short");
}

}  // namespace
}  // namespace cairn::io
