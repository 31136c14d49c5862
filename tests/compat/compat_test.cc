// Every file under tests/compat/<release>/ still loads and means the same. A release adds a folder:
// CAIRN_COMPAT_WRITE=<release> bin/test_compat --gtest_also_run_disabled_tests --gtest_filter=*Write
#include <gtest/gtest.h>

#include <cstdlib>

#include "runtime/data/data.h"
#include "runtime/io/checkpoint.h"
#include "runtime/io/graph_file.h"
#include "runtime/io/plan_file.h"
#include "runtime/io/safetensors/names.h"
#include "runtime/io/safetensors/safetensors.h"
#include "tests/runtime/io/rig.h"
#include "tests/runtime/io/scratch.h"

namespace cairn::io {
namespace {
namespace fs = std::filesystem;

const fs::path kRoot = fs::path(CAIRN_SOURCE_DIR) / "tests" / "compat";
constexpr std::string_view kText = "the way back\n  is marked by stones\n";

std::vector<fs::path> releases() {
  std::vector<fs::path> all;
  for (const auto& entry : fs::directory_iterator(kRoot))
    if (entry.is_directory()) all.push_back(entry.path());
  return all;
}

// What the files mean, one fact a line. Numbers that depend on a processor's rounding are not among them.
std::string facts(const fs::path& folder) {
  const auto bytes = [&](const char* name) { return test::slurp(folder / name); };
  std::string out;
  const auto graph = decode_graph(test::bytes_of(bytes("model.cairn")));
  out += cat("model ", graph->ops().size(), " ops, loss ", graph->values()[graph->loss()].name, "\n");
  for (const graph::Value& v : graph->values())
    if (v.kind != graph::ValueKind::kActivation) out += cat("value ", v.name, " ", to_string(v.desc), "\n");
  for (const graph::Region& r : graph->regions())
    out += cat("region ", r.name, " ", static_cast<int>(r.policy), "\n");
  const DecodedPlan plan = decode_plan(test::bytes_of(bytes("plan.cairn")));
  out += cat("plan ", plan.plan.steps.size(), " steps, arena ", plan.plan.arena_bytes, "\n");
  const Checkpoint checkpoint(folder / "checkpoint");
  out += cat("checkpoint step ", checkpoint.state().step, " micro ", checkpoint.state().micro, " recipe ",
             checkpoint.metadata().at("recipe"), "\n");
  for (const auto& tensor : checkpoint.tensors()) {
    std::vector<std::byte> data(static_cast<size_t>(tensor.desc.bytes()));
    checkpoint.read(tensor, data.data());
    char digest[17];
    std::snprintf(digest, sizeof digest, "%llx", static_cast<unsigned long long>(tensor.digest_high));
    out += cat("tensor ", tensor.name, " ", to_string(tensor.desc), " ", digest, "\n");
  }
  const SafeTensors weights(folder / "weights.safetensors");
  for (const SafeTensor& tensor : weights.tensors())
    out += cat("weight ", tensor.name, " ", to_string(tensor.desc), "\n");
  const auto set = data::Dataset::open(folder / "tokens.bin", 4);
  out += cat("tokens ", set->tokens(), " of ", set->vocabulary(), "\n");
  const auto tokenizer = data::load_bpe(folder / "tokenizer.model");
  out += "tokenizer";
  for (int32_t token : tokenizer->encode(kText)) out += cat(" ", token);
  return out + "\n";
}

TEST(Compat, EveryReleaseIsRead) {
  ASSERT_FALSE(releases().empty());
  for (const fs::path& folder : releases())
    EXPECT_EQ(facts(folder), test::slurp(folder / "facts.txt")) << folder;
}

TEST(Compat, DISABLED_Write) {
  const char* release = std::getenv("CAIRN_COMPAT_WRITE");
  ASSERT_NE(release, nullptr);
  const fs::path folder = kRoot / release;
  ASSERT_FALSE(fs::exists(folder)) << "a release's files never change";
  const test::Scratch scratch;
  const auto text = scratch.put("text", std::string(kText));
  write_file_durably(folder / "model.cairn", encode_graph(*test::sample_graph()));
  const test::SamplePlan s = test::sample_plan();
  write_file_durably(folder / "plan.cairn", encode_plan(s.problem, s.plan));
  test::Rig rig;
  rig.train(0, 4);
  save(*rig.stepper, folder / "checkpoint", {{{"recipe", "gpt2.lua"}}, {}});
  export_safetensors(*rig.session, {}, folder / "weights.safetensors");
  data::write_tokens(text, *data::bytes_tokenizer(), folder / "tokens.bin");
  data::train_bpe(text, 280)->save(folder / "tokenizer.model");
  write_file_durably(folder / "facts.txt", test::bytes_of(facts(folder)));
}

}  // namespace
}  // namespace cairn::io
