#include "runtime/io/safetensors/names.h"

#include <gtest/gtest.h>

#include "runtime/io/safetensors/safetensors.h"
#include "tests/runtime/io/rig.h"
#include "tests/runtime/io/scratch.h"

namespace cairn::io {
namespace {

const std::vector<NameRow> kNames = {{"wte", "transformer.wte.weight", false},
                                     {"h0.qkv", "attn.c_attn.weight", true}};

std::vector<float> values(const test::Rig& rig, const char* name) {
  const int32_t id = rig.session->plan().joint->find(name);
  std::vector<float> all(static_cast<size_t>(rig.session->plan().joint->values[id].desc.shape.elements()));
  rig.session->read(id, all.data(), static_cast<int64_t>(all.size() * 4));
  return all;
}

TEST(Names, ExportThenImportGivesTheSameParameters) {
  const test::Scratch scratch;
  test::Rig a, b(test::sample_graph(), 99);
  export_safetensors(*a.session, kNames, scratch / "file");
  const SafeTensors file(scratch / "file");
  ASSERT_NE(file.find("transformer.wte.weight"), nullptr);
  ASSERT_NE(file.find("h0.ln.weight"), nullptr);
  const SafeTensor* qkv = file.find("attn.c_attn.weight");
  ASSERT_NE(qkv, nullptr);
  EXPECT_EQ(to_string(qkv->desc), "f32[8, 24]");
  const std::vector<float> ours = values(a, "h0.qkv");
  std::vector<float> stored(24 * 8);
  file.read(*qkv, 0, stored.data(), stored.size() * 4);
  for (int64_t r = 0; r < 24; ++r)
    for (int64_t c = 0; c < 8; ++c) {
      ASSERT_EQ(stored[c * 24 + r], ours[r * 8 + c]);
    }
  EXPECT_NE(a.digest(), b.digest());
  import_safetensors(*b.session, kNames, scratch / "file");
  EXPECT_EQ(a.digest(), b.digest());
  EXPECT_EQ(a.train(0, 3), b.train(0, 3));
}

TEST(Names, WhatTheFileIsNotAskedForStays) {
  const test::Scratch scratch;
  test::Rig a, b(test::sample_graph(), 99);
  export_safetensors(*a.session, {}, scratch / "file");
  const std::vector<float> before = values(b, "h0.qkv"), wte = values(a, "wte");
  import_safetensors(*b.session, {{.ours = "h0.qkv", .theirs = "", .kept = true}}, scratch / "file");
  EXPECT_EQ(values(b, "h0.qkv"), before);
  EXPECT_EQ(values(b, "wte"), wte);
  EXPECT_NE(values(b, "h0.qkv"), values(a, "h0.qkv"));
}

// Rewrites the exported file with one tensor as `type`.
void retype(const std::filesystem::path& from, const std::filesystem::path& to, const std::string& name,
            DType type) {
  const SafeTensors file(from);
  std::vector<SafeTensorSource> sources;
  for (const SafeTensor& tensor : file.tensors()) {
    TensorDesc desc = tensor.desc;
    const bool changed = tensor.name == name;
    if (changed) desc.dtype = type;
    sources.push_back({tensor.name, desc, [&file, &tensor, changed, type](void* out) {
                         const int64_t n = tensor.desc.shape.elements();
                         for (int64_t i = 0; i < n; ++i) {
                           float v;
                           file.read(tensor, static_cast<uint64_t>(4 * i), &v, 4);
                           if (!changed) static_cast<float*>(out)[i] = v;
                           if (changed && type == DType::kF64) static_cast<double*>(out)[i] = v;
                           if (changed && type == DType::kBF16) static_cast<bf16*>(out)[i] = to_bf16(v);
                           if (changed && type == DType::kF16)
                             static_cast<uint16_t*>(out)[i] = 0x3555;  // 0.33325
                           if (changed && type == DType::kI32) static_cast<int32_t*>(out)[i] = 1;
                         }
                       }});
  }
  write_safetensors(to, sources, {});
}

TEST(Names, OtherFloatTypesAreConverted) {
  const test::Scratch scratch;
  test::Rig a, b(test::sample_graph(), 99);
  export_safetensors(*a.session, {}, scratch / "file");
  const std::vector<float> before = values(a, "wte");
  retype(scratch / "file", scratch / "f64", "wte", DType::kF64);
  import_safetensors(*b.session, {}, scratch / "f64");
  EXPECT_EQ(values(b, "wte"), before);
  retype(scratch / "file", scratch / "bf16", "wte", DType::kBF16);
  import_safetensors(*b.session, {}, scratch / "bf16");
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(values(b, "wte")[i], to_float(to_bf16(before[i])));
  retype(scratch / "file", scratch / "f16", "wte", DType::kF16);
  import_safetensors(*b.session, {}, scratch / "f16");
  for (float v : values(b, "wte")) EXPECT_EQ(v, 0.333251953125f);
}

TEST(Names, WhatDoesNotFitIsNamedAndNothingIsChanged) {
  const test::Scratch scratch;
  test::Rig a, b(test::sample_graph(), 99);
  export_safetensors(*a.session, kNames, scratch / "file");
  const std::string before = b.digest();
  const auto fails = [&](const std::vector<NameRow>& names, const char* file, const char* reason) {
    const auto result = test::failure([&] { import_safetensors(*b.session, names, scratch / file); });
    EXPECT_EQ(result.code, Code::kInvalidArgument) << reason;
    EXPECT_NE(result.message.find(reason), std::string::npos) << result.message;
    EXPECT_EQ(b.digest(), before);
  };
  fails({}, "file", "no tensor 'wte' for parameter 'wte'");
  std::vector<NameRow> names = kNames;
  names[1].transposed = false;
  fails(names, "file", "'attn.c_attn.weight' is [8, 24]; parameter 'h0.qkv' needs [24, 8]");
  names = kNames;
  names.push_back({"h0.ln.weight", "h0.ln.weight", true});
  fails(names, "file", "only matrices");
  names = kNames;
  names.push_back(kNames[0]);
  fails(names, "file", "two rows");
  names = kNames;
  names.push_back({"h9.mlp", "h.9.mlp", false});
  fails(names, "file", "'h9.mlp', which is no parameter");
  const auto exported = test::failure([&] { export_safetensors(*a.session, names, scratch / "new"); });
  EXPECT_EQ(exported.code, Code::kInvalidArgument);
  EXPECT_NE(exported.message.find("'h9.mlp'"), std::string::npos) << exported.message;
  EXPECT_FALSE(std::filesystem::exists(scratch / "new"));
  retype(scratch / "file", scratch / "ints", "transformer.wte.weight", DType::kI32);
  fails(kNames, "ints", "needs a float type");
}

// A model with a matrix for each of three experts, [12, 64].
std::shared_ptr<graph::Graph> experts_graph(bool frozen = false) {
  auto g = std::make_shared<graph::Graph>();
  const auto ids = g->input("ids", {DType::kI32, {2, 4}});
  const auto targets = g->input("targets", {DType::kI32, {2, 4}});
  const auto table =
      g->parameter("wte", {DType::kF32, {11, 12}}, {.init = graph::Init::kNormal, .init_scale = 0.02});
  const auto x =
      g->op("reshape", {g->op("embedding", {table, ids})[0]}, {{"shape", std::vector<int64_t>{1, 8, 12}}})[0];
  const auto experts = g->parameter("experts", {DType::kF32, {3, 12, 64}},
                                    {.frozen = frozen, .init = graph::Init::kNormal, .init_scale = 0.3});
  const auto y =
      g->op("reduce_sum", {g->op("matmul", {x, experts})[0]}, {{"axes", std::vector<int64_t>{0}}})[0];
  const auto head =
      g->parameter("head", {DType::kF32, {211, 64}}, {.init = graph::Init::kNormal, .init_scale = 0.1});
  const auto rows = g->op("reshape", {y}, {{"shape", std::vector<int64_t>{2, 4, 64}}})[0];
  const auto loss = g->op("linear_cross_entropy", {rows, head, targets});
  g->freeze(loss[0], loss[1], {});
  return g;
}

std::vector<NameRow> stacked(const std::string& ours, int count, bool transposed) {
  std::vector<NameRow> rows;
  for (int i = 0; i < count; ++i)
    rows.push_back({.ours = ours,
                    .theirs = ours + "." + std::to_string(count - i) + ".weight",
                    .transposed = transposed,
                    .stacked = true});
  return rows;
}

TEST(Names, StackedTensorsAreOneParameter) {
  for (const bool transposed : {false, true}) {
    const test::Scratch scratch;
    test::Rig a(experts_graph()), b(experts_graph(), 99);
    const std::vector<NameRow> names = stacked("experts", 3, transposed);
    export_safetensors(*a.session, names, scratch / "file");
    const SafeTensors file(scratch / "file");
    ASSERT_EQ(file.tensors().size(), 5u);
    const SafeTensor* second =
        file.find("experts.2.weight");  // the names count down: the order is that of the rows
    ASSERT_NE(second, nullptr);
    EXPECT_EQ(to_string(second->desc), transposed ? "f32[64, 12]" : "f32[12, 64]");
    const std::vector<float> ours = values(a, "experts");
    std::vector<float> theirs(768);
    file.read(*second, 0, theirs.data(), theirs.size() * 4);
    for (size_t r = 0; r < 12; ++r)
      for (size_t c = 0; c < 64; ++c)
        ASSERT_EQ(theirs[transposed ? c * 12 + r : r * 64 + c], ours[768 + r * 64 + c]);
    import_safetensors(*b.session, names, scratch / "file");
    EXPECT_EQ(a.digest(), b.digest());
    retype(scratch / "file", scratch / "mixed", "experts.2.weight", DType::kF64);
    test::Rig c(experts_graph(), 3);
    import_safetensors(*c.session, names, scratch / "mixed");
    EXPECT_EQ(a.digest(), c.digest());
  }
}

TEST(Names, WhatIsNotStackedAsItSaysIsNamed) {
  const test::Scratch scratch;
  test::Rig a(experts_graph()), b(experts_graph(), 99);
  export_safetensors(*a.session, stacked("experts", 3, false), scratch / "file");
  const std::string before = b.digest();
  const auto fails = [&](std::vector<NameRow> names, const char* reason) {
    const auto result = test::failure([&] { import_safetensors(*b.session, names, scratch / "file"); });
    EXPECT_EQ(result.code, Code::kInvalidArgument) << reason;
    EXPECT_NE(result.message.find(reason), std::string::npos) << result.message;
    EXPECT_EQ(b.digest(), before);
  };
  std::vector<NameRow> names = stacked("experts", 3, false);
  names[1].theirs = "experts.9.weight";
  fails(names, "has no tensor 'experts.9.weight' for parameter 'experts'");
  fails(stacked("experts", 3, true), "is [12, 64]; parameter 'experts' needs [64, 12]");
  fails(stacked("experts", 2, false), "'experts' is f32[3, 12, 64], and 2 stacked tensors are named for it");
  names = stacked("experts", 3, false);
  names[1].stacked = false;
  fails(names, "two rows in the table of names, which do not agree");
  names = stacked("experts", 3, false);
  names[2].transposed = true;
  fails(names, "which do not agree");
}

TEST(Names, StackedTensorsAreEncoded) {
  const test::Scratch scratch;
  test::Rig a(experts_graph(true));
  engine::PlanOptions options = test::Rig::two_tiers();
  options.formats = {{"experts", "int8"}};
  test::Rig b(experts_graph(true), 99, options), c(experts_graph(true), 98, options);
  const std::vector<NameRow> names = stacked("experts", 3, false);
  export_safetensors(*a.session, {}, scratch / "one");
  export_safetensors(*a.session, names, scratch / "file");
  import_safetensors(*b.session, {}, scratch / "one");
  import_safetensors(*c.session, names, scratch / "file");
  EXPECT_EQ(b.digest(), c.digest());
  export_safetensors(*b.session, {}, scratch / "decoded");
  export_safetensors(*c.session, names, scratch / "parts");
  const SafeTensors decoded(scratch / "decoded"), parts(scratch / "parts");
  for (size_t i = 0; i < 3; ++i) {
    std::vector<float> wanted(768), found(768);
    decoded.read(*decoded.find("experts"), i * 3072, wanted.data(), 3072);
    parts.read(*parts.find(names[i].theirs), 0, found.data(), 3072);
    EXPECT_EQ(wanted, found);
  }
}

// A frozen parameter of the disk tier is read from where its parts lie.
TEST(Names, StackedTensorsAreBorrowed) {
  const test::Scratch scratch;
  test::Rig a(experts_graph(true));
  const std::vector<NameRow> names = stacked("experts", 3, false);
  export_safetensors(*a.session, names, scratch / "file");
  engine::PlanOptions options;
  options.tiers = {Tier::kDisk};
  options.smallest_budget = true;
  test::Rig b(experts_graph(true), 99, options);
  const int32_t experts = b.session->plan().joint->find("experts");
  ASSERT_FALSE(b.session->plan().where(experts, engine::Point::kBetween).on_device());
  import_safetensors(*b.session, names, scratch / "file");
  EXPECT_EQ(values(b, "experts"), values(a, "experts"));
  EXPECT_EQ(b.digest(), a.digest());
  EXPECT_EQ(b.train(0, 3), a.train(0, 3));
  std::filesystem::resize_file(scratch / "file", 100);
  EXPECT_EQ(test::failure([&] { values(b, "experts"); }).code, Code::kIo);
}

}  // namespace
}  // namespace cairn::io
