#include "runtime/io/inspect.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include "runtime/base/os/file.h"
#include "runtime/data/data.h"
#include "runtime/io/checkpoint.h"
#include "runtime/io/graph_file.h"
#include "runtime/io/manifest.h"
#include "runtime/io/plan_file.h"
#include "runtime/io/safetensors/names.h"
#include "tests/runtime/io/rig.h"
#include "tests/runtime/io/scratch.h"

namespace cairn::io {
namespace {

// The member `path` of what inspect() says, as text; the whole must be JSON.
std::string member(const std::string& json, std::string_view path) {
  simdjson::dom::parser parser;
  simdjson::dom::element root, found;
  EXPECT_FALSE(parser.parse(json).get(root)) << json;
  EXPECT_FALSE(root.at_pointer(path).get(found)) << path << " of " << json;
  return simdjson::minify(found);
}

TEST(Inspect, SaysWhatEachFileIs) {
  const test::Scratch scratch;
  test::Rig rig;
  rig.train(0, 4);
  save(*rig.stepper, scratch / "run" / "step-1", {{{"recipe", "a \"b\"\n"}}, {}});
  for (const auto& path :
       {scratch / "run", scratch / "run" / "step-1", scratch / "run" / "step-1" / kManifestName}) {
    const std::string text = inspect(path);
    EXPECT_EQ(member(text, "/kind"), "\"checkpoint\"");
    EXPECT_EQ(member(text, "/state/step"), "1");
    EXPECT_EQ(member(text, "/state/micro"), "1");
    EXPECT_EQ(member(text, "/tensors/wte/shape"), "[11,8]");
    EXPECT_EQ(member(text, "/metadata/recipe"), "\"a \\\"b\\\"\\n\"");
    EXPECT_EQ(member(text, "/model/regions/0/policy"), "\"recompute\"");
  }
  write_file_durably(scratch / "model", encode_graph(*test::sample_graph()));
  EXPECT_EQ(member(inspect(scratch / "model"), "/kind"), "\"model\"");
  EXPECT_EQ(member(inspect(scratch / "model"), "/model/parameter_count"), std::to_string(88 + 8 + 192 + 64));
  const test::SamplePlan s = test::sample_plan();
  write_file_durably(scratch / "plan", encode_plan(s.problem, s.plan));
  EXPECT_EQ(member(inspect(scratch / "plan"), "/kind"), "\"plan\"");
  export_safetensors(*rig.session, {}, scratch / "weights");
  EXPECT_EQ(member(inspect(scratch / "weights"), "/tensors/wte/dtype"), "\"f32\"");
  const auto text = scratch.put("text", "the river runs down\nfrom the mountain to the sea\n");
  data::write_tokens(text, *data::bytes_tokenizer(), scratch / "tokens");
  EXPECT_EQ(member(inspect(scratch / "tokens"), "/tokens"), "49");
  data::train_bpe(text, 280)->save(scratch / "tokenizer");
  EXPECT_EQ(member(inspect(scratch / "tokenizer"), "/vocabulary"), "280");
}

TEST(Inspect, ForeignFilesAreErrors) {
  const test::Scratch scratch;
  for (const char* content :
       {"", "x", "hello, world, this is a text", "\n\x05hello", "CGRFCGRFCGRFCGRFCGRFCGRFCGRF"})
    EXPECT_EQ(test::failure([&] { inspect(scratch.put("file", content)); }).code, Code::kCorruptFile)
        << content;
  EXPECT_EQ(test::failure([&] { inspect(scratch / "none"); }).code, Code::kNotFound);
  EXPECT_EQ(test::failure([&] { inspect(scratch.path()); }).code, Code::kNotFound);
}

}  // namespace
}  // namespace cairn::io
