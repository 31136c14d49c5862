// Parameters in other formats than float32 through checkpoints and safetensors files.
#include <gtest/gtest.h>

#include "runtime/io/checkpoint.h"
#include "runtime/io/inspect.h"
#include "runtime/io/manifest.h"
#include "runtime/io/safetensors/names.h"
#include "tests/runtime/io/reseal.h"
#include "tests/runtime/io/rig.h"
#include "tests/runtime/io/scratch.h"

namespace cairn::io {
namespace {

using test::Rig;
using test::Scratch;

std::shared_ptr<graph::Graph> model() {
  auto g = std::make_shared<graph::Graph>();
  const auto ids = g->input("ids", {DType::kI32, {2, 4}}),
             targets = g->input("targets", {DType::kI32, {2, 4}});
  const auto table =
      g->parameter("table", {DType::kF32, {11, 64}}, {.init = graph::Init::kNormal, .init_scale = 1});
  // Of more bytes than a piece of a file has, and orthogonal, which is drawn as one.
  const auto wide = g->parameter("wide", {DType::kF32, {62000, 64}},
                                 {.frozen = true, .init = graph::Init::kUniform, .init_scale = 0.1});
  const auto up = g->parameter("up", {DType::kF32, {64, 128}},
                               {.frozen = true, .init = graph::Init::kOrthogonal, .init_scale = 1});
  auto x = g->op("embedding", {table, ids})[0];
  x = g->op("matmul", {x, up})[0];
  x = g->op("linear", {x, g->parameter("down", {DType::kF32, {64, 128}}, {.frozen = true})})[0];
  x = g->op("add", {x, g->op("embedding", {wide, ids})[0]})[0];
  const auto loss = g->op("linear_cross_entropy", {x, table, targets});
  g->freeze(loss[0], loss[1], {});
  return g;
}

engine::PlanOptions stored_as(const std::string& format) {
  engine::PlanOptions options;
  options.formats = {{"wide", format}, {"up", format}, {"down", format}};
  return options;
}
Rig rig(const std::string& format, uint64_t seed = 7) { return Rig(model(), seed, stored_as(format)); }

std::vector<float> numbers_of(const Rig& rig, const char* name) {
  const int32_t value = rig.session->plan().joint->find(name);
  std::vector<float> numbers(static_cast<size_t>(rig.session->declared(value).shape.elements()));
  rig.session->read_declared(value, numbers.data());
  return numbers;
}

TEST(StoredFormats, TheyStartAsFloat32DoesAndAreThenEncoded) {
  const Rig wide = rig("f32"), narrow = rig("int8"), again = rig("int8");
  EXPECT_EQ(narrow.digest(), again.digest());
  EXPECT_NE(narrow.digest(), wide.digest());
  for (const char* name : {"wide", "up"}) {
    const std::vector<float> exact = numbers_of(wide, name), stored = numbers_of(narrow, name);
    for (size_t i = 0; i < exact.size(); ++i) ASSERT_NEAR(stored[i], exact[i], 0.005) << name << ' ' << i;
    EXPECT_NE(stored, exact);
  }
}

TEST(StoredFormats, ARunGoesOnFromItsBytes) {
  Scratch scratch;
  Rig whole = rig("int8"), half = rig("int8");
  const std::vector<double> losses = whole.train(0, 6);
  half.train(0, 3);
  save(*half.stepper, scratch / "c", {});
  Rig resumed = rig("int8", 9);
  const Checkpoint checkpoint(scratch / "c");
  checkpoint.restore(*resumed.stepper);
  EXPECT_EQ(resumed.train(3, 6), (std::vector<double>{losses[3], losses[4], losses[5]}));
  EXPECT_EQ(resumed.digest(), whole.digest());
  for (const Checkpoint::TensorInfo& tensor : checkpoint.tensors())
    if (tensor.name == "wide") EXPECT_EQ(tensor.desc.bytes(), 62000 * 68);
  EXPECT_NE(inspect(scratch / "c").find("\"wide\": {\"dtype\": \"int8\""), std::string::npos)
      << inspect(scratch / "c");
  Rig other = rig("f32");
  const test::Failure refused = test::failure([&] { checkpoint.restore(*other.stepper); });
  EXPECT_NE(refused.message.find("=int8'"), std::string::npos) << refused.message;
}

TEST(StoredFormats, ParametersAloneAreDecodedAndEncoded) {
  Scratch scratch;
  const Rig narrow = rig("int8");
  save(*narrow.stepper, scratch / "narrow", {});
  const Rig wide = rig("f32", 9), back = rig("int8", 9);
  Checkpoint(scratch / "narrow").load_parameters(*wide.session);
  for (const char* name : {"wide", "up", "down", "table"})
    EXPECT_EQ(numbers_of(wide, name), numbers_of(narrow, name));
  save(*wide.stepper, scratch / "wide", {});
  Checkpoint(scratch / "wide").load_parameters(*back.session);
  EXPECT_EQ(back.digest(), narrow.digest());  // what int8 gave, it takes
}

TEST(StoredFormats, SafetensorsHoldTheNumbers) {
  Scratch scratch;
  const Rig narrow = rig("int8"), back = rig("int8", 9), wide = rig("f32", 9);
  const std::vector<NameRow> names = {{.ours = "up", .theirs = "up.T", .transposed = true}};
  export_safetensors(*narrow.session, names, scratch / "m.safetensors");
  import_safetensors(*back.session, names, scratch / "m.safetensors");
  import_safetensors(*wide.session, names, scratch / "m.safetensors");
  EXPECT_EQ(back.digest(), narrow.digest());
  for (const char* name : {"wide", "up", "down"}) EXPECT_EQ(numbers_of(wide, name), numbers_of(narrow, name));
  EXPECT_NE(inspect(scratch / "m.safetensors").find("\"up.T\": {\"dtype\": \"f32\", \"shape\": [128, 64]"),
            std::string::npos)
      << inspect(scratch / "m.safetensors");
}

// Blocks that depend on their row or tensor, of tensors that come in pieces.
TEST(StoredFormats, WhatIsReadInPiecesIsEncodedAsAllOfIt) {
  Scratch scratch;
  const std::vector<NameRow> names = {{.ours = "up", .theirs = "up.T", .transposed = true}};
  export_safetensors(*rig("f32").session, names, scratch / "m.safetensors");
  for (const char* format : {"nf4", "nf4_nested", "llm_int8", "f16"}) {
    const Rig drawn = rig(format), read = rig(format, 9);
    EXPECT_NE(read.digest(), drawn.digest());
    import_safetensors(*read.session, names, scratch / "m.safetensors");
    EXPECT_EQ(read.digest(), drawn.digest()) << format;
  }
}

TEST(StoredFormats, AFormatOfANewerLibraryIsNamed) {
  Scratch scratch;
  save(*rig("int8").stepper, scratch / "c", {});
  std::string manifest = test::slurp(scratch / "c" / kManifestName);
  const size_t at = manifest.find("int8");
  ASSERT_NE(at, std::string::npos);
  for (size_t i = at; i != std::string::npos; i = manifest.find("int8", i)) manifest[i + 3] = '9';
  scratch.put(std::string("c/") + kManifestName, test::reseal(manifest));
  const test::Failure refused = test::failure([&] { const Checkpoint newer(scratch / "c"); });
  EXPECT_EQ(refused.code, Code::kUnsupported);
  for (const char* word : {"'int9'", "int8"})
    EXPECT_NE(refused.message.find(word), std::string::npos) << refused.message;
}

}  // namespace
}  // namespace cairn::io
