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

}  // namespace
}  // namespace cairn::io
