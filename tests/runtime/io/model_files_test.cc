#include "runtime/io/safetensors/model_files.h"

#include <gtest/gtest.h>

#include "runtime/base/os/file.h"
#include "runtime/io/inspect.h"
#include "runtime/io/safetensors/names.h"
#include "tests/runtime/io/rig.h"
#include "tests/runtime/io/samples.h"
#include "tests/runtime/io/scratch.h"

namespace cairn::io {
namespace {

constexpr const char* kOne = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
constexpr const char* kTwo =
    R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"c":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})";

void put_shards(const test::Scratch& scratch, const std::string& index) {
  scratch.put("one.safetensors", test::safetensors(kOne, 8));
  scratch.put("two.safetensors", test::safetensors(kTwo, 8));
  scratch.put(kIndexName, index);
}

constexpr const char* kIndex =
    R"({"metadata": {"total_size": 16}, "weight_map": {"c": "two.safetensors", "a": "one.safetensors", "b": "two.safetensors"}})";

TEST(ModelFiles, AnIndexNamesTheFileOfEachTensor) {
  const test::Scratch scratch;
  put_shards(scratch, kIndex);
  const ModelFiles model(scratch.path());
  EXPECT_EQ(model.files().size(), 2u);
  ASSERT_EQ(model.tensors().size(), 3u);
  const ModelFiles::Found& c = model.tensors().at("c");
  EXPECT_EQ(c.file->path(), scratch / "two.safetensors");
  std::byte first{};
  c.file->read(*c.tensor, 0, &first, 1);
  EXPECT_EQ(static_cast<int>(first), 4);
  EXPECT_NE(inspect(scratch.path()).find(R"("file": "two.safetensors")"), std::string::npos);
}

TEST(ModelFiles, OneFileCountsMoreThanAnIndex) {
  const test::Scratch scratch;
  put_shards(scratch, "{");
  scratch.put(kModelName, test::safetensors(kOne, 8));
  EXPECT_EQ(ModelFiles(scratch.path()).tensors().size(), 1u);
  EXPECT_EQ(ModelFiles(scratch / "two.safetensors").tensors().size(), 2u);
}

struct Broken {
  const char* index;
  const char* reason;
  Code code = Code::kCorruptFile;
};
constexpr Broken kMustFail[] = {
    {R"({"weight_map": {"a": "one.safetensors", "b": "three.safetensors"}})", "three.safetensors', which",
     Code::kNotFound},
    {R"({"weight_map": {"a": "one.safetensors", "d": "two.safetensors", "b": "two.safetensors", "c": "two.safetensors"}})",
     "tensor 'd' is in 'two.safetensors', which has no such tensor"},
    {R"({"weight_map": {"a": "two.safetensors", "b": "two.safetensors", "c": "two.safetensors"}})",
     "tensor 'a'"},
    {R"({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}})", "has a tensor 'c'"},
    {R"({"weight_map": {"a": "one.safetensors", "a": "two.safetensors"}})", "'a' is there twice"},
    {R"({"weight_map": {"a": "../one.safetensors"}})", "'../one.safetensors'"},
    {R"({"weight_map": {"a": "/etc/passwd"}})", "next to the index"},
    {R"({"weight_map": {"a": "one.bin"}})", "next to the index"},
    {R"({"weight_map": {"a": 1}})", "is not a text"},
    {R"({"weight_map": []})", "not an object"},
    {R"({"weight_map": {}, "weight_map": {}})", "twice"},
    {R"({})", "no weight_map"},
    {R"([])", "not a JSON object"},
    {R"({"weight_map": )", "not JSON"},
};

TEST(ModelFiles, MustFail) {
  for (const Broken& broken : kMustFail) {
    const test::Scratch scratch;
    put_shards(scratch, broken.index);
    const auto result = test::failure([&] { ModelFiles model(scratch.path()); });
    EXPECT_EQ(result.code, broken.code) << broken.index << ": " << result.message;
    EXPECT_NE(result.message.find(broken.reason), std::string::npos)
        << broken.reason << " / " << result.message;
  }
}

TEST(ModelFiles, ATensorInTwoFilesIsNamedWithBoth) {
  const test::Scratch scratch;
  put_shards(scratch, R"({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}})");
  scratch.put("two.safetensors", test::safetensors(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                                                   R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                                                   8));
  const auto result = test::failure([&] { ModelFiles model(scratch.path()); });
  EXPECT_EQ(result.code, Code::kCorruptFile);
  for (const char* word : {"'a'", "one.safetensors", "two.safetensors"})
    EXPECT_NE(result.message.find(word), std::string::npos) << result.message;
}

TEST(ModelFiles, ADirectoryWithoutAModelSaysWhatIsThere) {
  const test::Scratch scratch;
  scratch.put("weights.safetensors", test::safetensors(kOne, 8));
  const auto result = test::failure([&] { ModelFiles model(scratch.path()); });
  EXPECT_EQ(result.code, Code::kNotFound);
  EXPECT_NE(result.message.find("it has weights.safetensors"), std::string::npos) << result.message;
}

// Nothing of a model is loaded where one of its files is missing.
TEST(ModelFiles, WhatIsWrittenInShardsIsReadBack) {
  const test::Scratch scratch;
  test::Rig a, b(test::sample_graph(), 99);
  const ExportOptions options{
      .dtype = {}, .frozen_dtype = {}, .directory = true, .shard_bytes = 600, .files = {}};
  export_safetensors(*a.session, {{"h0.qkv", "qkv", true}}, scratch / "model", options);
  const std::string before = b.digest(), index = test::slurp(scratch / "model" / kIndexName);
  EXPECT_NE(index.find("\"total_size\": 1408"), std::string::npos) << index;
  EXPECT_NE(index.find("\"h0.mlp\": \"model-00003-of-00003.safetensors\""), std::string::npos) << index;
  const std::filesystem::path last = scratch / "model" / "model-00003-of-00003.safetensors";
  std::filesystem::rename(last, scratch / "hidden");
  EXPECT_EQ(test::failure([&] {
              import_safetensors(*b.session, {{"h0.qkv", "qkv", true}}, scratch / "model");
            }).code,
            Code::kNotFound);
  EXPECT_EQ(b.digest(), before);
  std::filesystem::rename(scratch / "hidden", last);
  import_safetensors(*b.session, {{"h0.qkv", "qkv", true}}, scratch / "model");
  EXPECT_EQ(b.digest(), a.digest());
}

TEST(ModelFiles, ADirectoryIsWrittenWholeOrNotAtAll) {
  const test::Scratch scratch;
  test::Rig a;
  ExportOptions options{.dtype = DType::kBF16,
                        .frozen_dtype = DType::kF16,
                        .directory = true,
                        .shard_bytes = 0,
                        .files = {scratch.put("config.json", "{}")}};
  export_safetensors(*a.session, {}, scratch / "model", options);
  EXPECT_EQ(test::slurp(scratch / "model" / "config.json"), "{}");
  const ModelFiles model(scratch / "model");
  EXPECT_EQ(to_string(model.tensors().at("wte").tensor->desc), "bf16[11, 8]");
  EXPECT_EQ(to_string(model.tensors().at("h0.mlp").tensor->desc), "f16[8, 8]");
  const auto refused = test::failure([&] { export_safetensors(*a.session, {}, scratch / "model", options); });
  EXPECT_EQ(refused.code, Code::kInvalidArgument);
  EXPECT_NE(refused.message.find("holds other files"), std::string::npos) << refused.message;
  options.files = {scratch / "none.json"};
  EXPECT_NE(test::failure([&] { export_safetensors(*a.session, {}, scratch / "other", options); }).code,
            Code::kOk);
  EXPECT_FALSE(std::filesystem::exists(scratch / "other"));
  options.files = {};
  EXPECT_EQ(test::failure([&] {
              export_safetensors(*a.session, {{"h0.qkv", "wte", false}}, scratch / "other", options);
            }).code,
            Code::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(scratch / "other"));
  std::filesystem::create_directory(scratch / "empty");
  export_safetensors(*a.session, {}, scratch / "empty", options);
  EXPECT_TRUE(is_model_directory(scratch / "empty"));
}

TEST(ModelFiles, SixteenBitsThatWereReadAreWrittenAsTheyCame) {
  const test::Scratch scratch;
  for (const DType type : {DType::kBF16, DType::kF16}) {
    test::Rig a, b(test::sample_graph(), 99);
    const ExportOptions options{
        .dtype = type, .frozen_dtype = {}, .directory = false, .shard_bytes = 0, .files = {}};
    export_safetensors(*a.session, {{"h0.qkv", "h0.qkv", true}}, scratch / "first", options);
    import_safetensors(*b.session, {{"h0.qkv", "h0.qkv", true}}, scratch / "first");
    export_safetensors(*b.session, {{"h0.qkv", "h0.qkv", true}}, scratch / "second", options);
    EXPECT_EQ(test::slurp(scratch / "first"), test::slurp(scratch / "second"));
  }
}

}  // namespace
}  // namespace cairn::io
