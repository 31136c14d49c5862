// Parameters to and from GGUF files: as they are stored, decoded, and with rows in another order.
#include <gtest/gtest.h>

#include "runtime/formats/codecs.h"
#include "runtime/io/gguf/gguf.h"
#include "runtime/io/safetensors/names.h"
#include "tests/runtime/io/gguf/sample.h"
#include "tests/runtime/io/rig.h"
#include "tests/runtime/io/scratch.h"

namespace cairn::io {
namespace {

using test::Rig;
using test::Scratch;

constexpr const char* kMetadata = R"({"metadata": {"general.architecture": "test"}})";

std::shared_ptr<graph::Graph> model() {
  auto g = std::make_shared<graph::Graph>();
  const auto ids = g->input("ids", {DType::kI32, {2, 4}}),
             targets = g->input("targets", {DType::kI32, {2, 4}});
  const auto table =
      g->parameter("table", {DType::kF32, {11, 64}}, {.init = graph::Init::kNormal, .init_scale = 1});
  const auto down = g->parameter("down", {DType::kF32, {64, 64}},
                                 {.frozen = true, .init = graph::Init::kUniform, .init_scale = 0.1});
  const auto gamma = g->parameter("gamma", {DType::kF32, {64}}, {.decay = false, .init_scale = 1});
  auto x = g->op("embedding", {table, ids})[0];
  x = g->op("layernorm", {g->op("linear", {x, down})[0], gamma}, {{"eps", 1e-6}})[0];
  const auto loss = g->op("linear_cross_entropy", {x, table, targets});
  g->freeze(loss[0], loss[1], {});
  return g;
}

Rig rig(const std::string& format, uint64_t seed) {
  engine::PlanOptions options;
  if (format != "f32") options.formats = {{"down", format}};
  return Rig(model(), seed, options);
}

std::vector<float> numbers_of(const Rig& rig, const char* name) {
  const int32_t value = rig.session->plan().joint->find(name);
  std::vector<float> numbers(static_cast<size_t>(rig.session->declared(value).shape.elements()));
  rig.session->read_declared(value, numbers.data());
  return numbers;
}

ExportOptions as(std::optional<DType> dtype, std::vector<LayoutRow> layouts = {}) {
  return {.dtype = dtype, .layouts = std::move(layouts), .gguf = kMetadata};
}

const std::vector<NameRow> kNames = {
    {"down", "blk.0.down.weight"}, {"gamma", "blk.0.attn_norm.weight"}, {"table", "table.weight"}};
const std::vector<LayoutRow> kLayouts = {{.ours = "down", .groups = 4, .ways = 2},
                                         {.ours = "gamma", .offset = 1}};

TEST(GgufImport, blocks_keep_their_bytes) {
  const Scratch scratch;
  Rig stored = rig("q8_0", 7), again = rig("q8_0", 8), decoded = rig("f32", 9);
  for (const auto& layouts : {std::vector<LayoutRow>{}, kLayouts}) {
    export_safetensors(*stored.session, kNames, scratch / "a", as(DType::kQ8_0, layouts));
    import_safetensors(*again.session, kNames, scratch / "a", layouts);
    const int32_t value = stored.session->plan().joint->find("down");
    std::vector<char> one(64 * 68), other(one.size());
    stored.session->read(value, one.data(), static_cast<int64_t>(one.size()));
    again.session->read(value, other.data(), static_cast<int64_t>(one.size()));
    EXPECT_EQ(one, other);
    import_safetensors(*decoded.session, kNames, scratch / "a", layouts);
    EXPECT_EQ(numbers_of(decoded, "down"), numbers_of(stored, "down"));
    // The table is written in the same type, and the norm is not.
    const Gguf file(scratch / "a");
    EXPECT_EQ(file.tensors()[0].block->name, "Q8_0");
    EXPECT_EQ(file.find("general.architecture")->text(), "test");
  }
}

TEST(GgufImport, rows_in_turns_and_values_above) {
  const Scratch scratch;
  Rig a = rig("f32", 7), b = rig("f32", 8);
  export_safetensors(*a.session, kNames, scratch / "a", as(DType::kF32, kLayouts));
  const std::vector<float> ours = numbers_of(a, "down"), gamma = numbers_of(a, "gamma");
  const Gguf file(scratch / "a");
  for (const GgufTensor& tensor : file.tensors()) {
    std::vector<float> there(tensor.bytes / 4);
    file.file()->read(tensor.offset, there.data(), tensor.bytes);
    if (tensor.name == "blk.0.attn_norm.weight")
      for (size_t i = 0; i < there.size(); ++i) EXPECT_EQ(there[i], gamma[i] + 1);
    if (tensor.name != "blk.0.down.weight") continue;
    // Four groups of 16 rows; there the halves of each take turns.
    for (size_t row = 0; row < 64; ++row) {
      const size_t here = row % 16, from = row / 16 * 16 + here % 2 * 8 + here / 2;
      for (size_t i = 0; i < 64; ++i) ASSERT_EQ(there[row * 64 + i], ours[from * 64 + i]) << row;
    }
  }
  import_safetensors(*b.session, kNames, scratch / "a", kLayouts);
  EXPECT_EQ(numbers_of(b, "down"), ours);
  EXPECT_EQ(a.train(0, 3), b.train(0, 3));
}

TEST(GgufImport, units_of_rows) {
  const Scratch scratch;
  Rig a = rig("f32", 7), b = rig("f32", 8);
  const std::vector<LayoutRow> units = {{.ours = "down", .groups = 1, .ways = 4, .unit = 8}};
  export_safetensors(*a.session, kNames, scratch / "a", as(DType::kF16, units));
  import_safetensors(*b.session, kNames, scratch / "a", units);
  std::vector<float> halves = numbers_of(a, "down");
  for (float& value : halves) value = to_float(to_f16(value));
  EXPECT_EQ(numbers_of(b, "down"), halves);
}

TEST(GgufImport, refuses) {
  const Scratch scratch;
  Rig a = rig("f32", 7);
  const std::string before = a.digest();
  const auto fails = [&](const std::vector<LayoutRow>& layouts, Code code, const char* reason) {
    const test::Failure failed =
        test::failure([&] { import_safetensors(*a.session, kNames, scratch / "a", layouts); });
    EXPECT_EQ(failed.code, code) << failed.message;
    EXPECT_NE(failed.message.find(reason), std::string::npos) << failed.message;
    EXPECT_EQ(a.digest(), before);
  };
  export_safetensors(*a.session, kNames, scratch / "a", as(DType::kF32));
  fails({{.ours = "down", .groups = 3, .ways = 2}}, Code::kInvalidArgument, "3 groups of 2 runs");
  fails({{.ours = "none"}}, Code::kInvalidArgument, "no parameter of the model");
  fails({{.ours = "down"}, {.ours = "down"}}, Code::kInvalidArgument, "two rows in the table of layouts");
  fails({{.ours = "down", .groups = 0}}, Code::kInvalidArgument, "0 groups");
  test::GgufSample sample;
  sample.tensor("blk.0.down.weight", {256, 16}, 10, std::string(84 * 16, '\0'));
  sample.tensor("blk.0.attn_norm.weight", {64}, 0, std::string(256, '\0'));
  sample.tensor("table.weight", {64, 11}, 0, std::string(64 * 44, '\0'));
  scratch.put("a", sample.bytes());
  fails({}, Code::kUnsupported, "'blk.0.down.weight' is Q2_K");
}

}  // namespace
}  // namespace cairn::io
