#include "runtime/io/gguf/write.h"

#include <gtest/gtest.h>

#include <cstring>

#include "runtime/io/gguf/gguf.h"
#include "tests/runtime/io/scratch.h"

namespace cairn::io {
namespace {

GgufSource source(std::string name, Shape shape, DType dtype, const std::string& bytes) {
  return {std::move(name), shape, gguf_block(dtype),
          [bytes](const auto& append) { append(bytes.data(), bytes.size()); }};
}

TEST(GgufWriter, what_it_writes_is_read_again) {
  const test::Scratch scratch;
  write_gguf(scratch / "a.gguf",
             R"({"metadata": {"general.architecture": "x", "n": {"u32": 3}, "e": {"f32": 1e-5},
    "b": true, "list": ["a", "b"], "numbers": {"i32": [-1, 2]}, "none": {"text": []}, "big": {"u64": 18446744073709551615}},
    "tensors": {"rope": [1, 2.5]}})",
             {source("w", Shape{2, 3}, DType::kF32, std::string(24, 'w')),
              source("q", Shape{32}, DType::kQ8_0, std::string(34, 'q'))});
  const Gguf file(scratch / "a.gguf");
  EXPECT_EQ(file.find("n")->number(), 3);
  EXPECT_EQ(file.find("n")->type, GgufType::kU32);
  EXPECT_EQ(file.find("e")->number(), 1e-5f);
  EXPECT_EQ(file.find("b")->type, GgufType::kBool);
  EXPECT_EQ(file.find("list")->text(1), "b");
  EXPECT_EQ(file.find("numbers")->number(0), -1);
  EXPECT_EQ(file.find("none")->count, 0u);
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.tensors()[0].name, "rope");
  EXPECT_EQ(file.tensors()[1].shape, (std::vector<uint64_t>{2, 3}));
  char bytes[34];
  file.file()->read(file.tensors()[2].offset, bytes, 34);
  EXPECT_EQ(std::string(bytes, 34), std::string(34, 'q'));
}

TEST(GgufWriter, refuses) {
  const test::Scratch scratch;
  const auto fails = [&](const char* text, const char* reason) {
    const test::Failure failed = test::failure([&] { write_gguf(scratch / "a", text, {}); });
    EXPECT_EQ(failed.code, Code::kInvalidArgument) << text;
    EXPECT_NE(failed.message.find(reason), std::string::npos) << failed.message;
    EXPECT_FALSE(std::filesystem::exists(scratch / "a"));
  };
  fails("[", "no JSON");
  fails("[]", "the member 'metadata'");
  fails(R"({"metadata": {"a": 1}})", "a number without a type");
  fails(R"({"metadata": {"a": {"u8": 256}}})", "no number of its type");
  fails(R"({"metadata": {"a": {"u32": -1}}})", "no number of its type");
  fails(R"({"metadata": {"a": {"u33": 1}}})", "there is no type 'u33'");
  fails(R"({"metadata": {"a": ["b", 1]}})", "no text");
  fails(R"({"metadata": {"a": "x", "a": "y"}})", "twice");
  fails(R"({"metadata": {}, "tensors": {"a": ["b"]}})", "no list of numbers");
}

TEST(GgufWriter, block_types_as_the_converter_gives_them) {
  const GgufBlock& q8 = *gguf_block(DType::kQ8_0);
  const auto given = [&](const char* name, Shape shape) { return gguf_block_for(name, shape, q8).name; };
  EXPECT_EQ(given("blk.0.attn_q.weight", {4, 64}), "Q8_0");
  EXPECT_EQ(given("token_embd.weight", {4, 64}), "Q8_0");
  EXPECT_EQ(given("blk.0.attn_q.weight", {4, 40}), "F16");  // no complete blocks
  EXPECT_EQ(given("blk.0.attn_q.bias", {64}), "F32");
  EXPECT_EQ(given("blk.0.attn_norm.weight", {64}), "F32");
  EXPECT_EQ(given("blk.0.ffn_gate_inp.weight", {4, 64}), "F32");
  EXPECT_EQ(given("position_embd.weight", {4, 64}), "F32");
  EXPECT_EQ(given("blk.0.ffn_gate_exps.bias", {4, 64}), "F32");
  EXPECT_EQ(given("blk.0.attn_q.weight.lora_a", {4, 64}), "Q8_0");
}

}  // namespace
}  // namespace cairn::io
