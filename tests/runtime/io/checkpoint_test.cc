#include "runtime/io/checkpoint.h"

#include <gtest/gtest.h>

#include "runtime/base/os/file.h"
#include "runtime/io/manifest.h"
#include "tests/runtime/io/rig.h"
#include "tests/runtime/io/scratch.h"
#include "tests/support/seeds.h"

namespace cairn::io {
namespace {
namespace fs = std::filesystem;

// Saved after `cut` micro-batches of three a step: at a step's end and in the middle of an accumulation.
class Resume : public testing::TestWithParam<uint64_t> {};

TEST_P(Resume, ContinuesBitForBit) {
  const uint64_t cut = GetParam(), end = 15;
  const test::Scratch scratch;
  test::Rig whole;
  const std::vector<double> expected = whole.train(0, end);
  {
    test::Rig first;
    first.train(0, cut);
    save(*first.stepper, scratch / "saved", {});
    EXPECT_EQ(first.train(cut, end),
              std::vector<double>(expected.begin() + static_cast<ptrdiff_t>(cut), expected.end()));
  }
  test::Rig resumed(test::sample_graph(), 99);  // other initial values: all must come from the checkpoint
  resumed.train(0, 1);
  const Checkpoint checkpoint(scratch / "saved");
  EXPECT_EQ(checkpoint.state().micro, cut % 3);
  EXPECT_EQ(checkpoint.state().step, cut / 3);
  checkpoint.restore(*resumed.stepper);
  EXPECT_EQ(resumed.train(cut, end),
            std::vector<double>(expected.begin() + static_cast<ptrdiff_t>(cut), expected.end()));
  EXPECT_EQ(resumed.digest(), whole.digest());
}
INSTANTIATE_TEST_SUITE_P(Cuts, Resume, testing::Values(0, 1, 2, 3, 7, 12));

// A checkpoint is by value: where a plan keeps optimizer state is nothing to it.
void resume_across_plans(const std::string& optimizer, uint64_t cut) {
  constexpr uint64_t end = 15;
  const test::Scratch scratch;
  engine::PlanOptions host, plain = test::Rig::two_tiers();
  host.optimizer.name = plain.optimizer.name = optimizer;
  engine::PlanOptions disk = host;
  host.tiers = {Tier::kHost, Tier::kDisk};
  disk.tiers = {Tier::kDisk};
  for (engine::PlanOptions* options : {&host, &disk}) {
    options->budget_bytes = 1;
    try {
      test::Rig refused(test::sample_graph(), 7, *options);
    } catch (const Error& error) {
      options->budget_bytes = static_cast<int64_t>(error.fault()->smallest_budget_bytes);
    }
  }
  test::Rig whole(test::sample_graph(), 7, plain);
  ASSERT_TRUE(whole.session->plan().offloaded.empty());
  whole.train(0, end);
  test::Rig first(test::sample_graph(), 7, host);
  // The sample's momenta alone are smaller than the room that they would stream through.
  const bool leaves = optimizer != "muon";
  ASSERT_GT(first.session->plan().offloaded_bytes[1], 0);
  first.train(0, cut);
  save(*first.stepper, scratch / "saved", {});
  test::Rig second(test::sample_graph(), 99, disk);
  ASSERT_EQ(second.session->plan().offloaded_bytes[2] > 0, leaves);
  Checkpoint(scratch / "saved").restore(*second.stepper);
  save(*second.stepper, scratch / "again", {});
  EXPECT_EQ(test::slurp(scratch / "again" / kTensorsName), test::slurp(scratch / "saved" / kTensorsName));
  test::Rig resident(test::sample_graph(), 98, plain);
  Checkpoint(scratch / "again").restore(*resident.stepper);
  for (test::Rig* rig : {&first, &second, &resident}) {
    rig->train(cut, end);
    EXPECT_EQ(rig->digest(), whole.digest());
  }
}
class Across : public testing::TestWithParam<uint64_t> {};
TEST_P(Across, PlansWithOtherOffloadedState) { resume_across_plans("adamw", GetParam()); }
// With sanitizers, at the beginning, at the end of a step, and inside of one.
std::vector<uint64_t> cuts() {
  if (support::stride(2) > 1) return {0, 3, 7};
  return {0, 1, 2, 3, 7, 12};
}
INSTANTIATE_TEST_SUITE_P(Cuts, Across, testing::ValuesIn(cuts()));
TEST(Checkpoint, ResumesAcrossPlansWhoseStateDoesNotSplit) {
  resume_across_plans("adafactor", 7);
  resume_across_plans("muon", 5);
}

TEST(Checkpoint, HoldsWhatWasSaved) {
  const test::Scratch scratch;
  test::Rig rig;
  rig.train(0, 4);
  const auto tokenizer = scratch.put("tokenizer.model", "abc");
  save(*rig.stepper, scratch / "saved", {{{"recipe", "gpt2.lua"}}, {tokenizer}});
  const Checkpoint checkpoint(scratch / "saved");
  EXPECT_EQ(checkpoint.graph()->digest(), test::sample_graph()->digest());
  EXPECT_EQ(checkpoint.metadata().at("recipe"), "gpt2.lua");
  EXPECT_EQ(test::slurp(scratch / "saved" / "tokenizer.model"), "abc");
  std::vector<std::string> names;
  for (const auto& tensor : checkpoint.tensors()) {
    names.push_back(tensor.name);
    EXPECT_EQ(tensor.offset % 64, 0u);
    const int32_t id = rig.session->plan().joint->find(tensor.name);
    if (id < 0) continue;
    std::vector<std::byte> stored(static_cast<size_t>(tensor.desc.bytes())), live(stored.size());
    checkpoint.read(tensor, stored.data());
    rig.session->read(id, live.data(), tensor.desc.bytes());
    EXPECT_EQ(stored, live) << tensor.name;
  }
  for (const char* name : {"wte", "wte/m", "wte/v", "wte/gradient", "h0.qkv", "h0.qkv/gradient", "h0.mlp"})
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  EXPECT_EQ(std::find(names.begin(), names.end(), "h0.mlp/m"), names.end());  // frozen

  rig.train(4, 6);  // a step's end: no gradients
  save(*rig.stepper, scratch / "saved", {});
  const Checkpoint again(scratch / "saved");
  for (const auto& tensor : again.tensors()) EXPECT_FALSE(tensor.name.ends_with("/gradient")) << tensor.name;
  EXPECT_FALSE(fs::exists(scratch / "saved" / "tokenizer.model"));
}

TEST(Checkpoint, ParametersAloneByName) {
  const test::Scratch scratch;
  test::Rig rig, other(test::sample_graph(), 99);
  rig.train(0, 3);
  save(*rig.stepper, scratch / "saved", {});
  EXPECT_TRUE(Checkpoint(scratch / "saved").load_parameters(*other.session).empty());
  EXPECT_EQ(other.digest(), rig.digest());
  EXPECT_EQ(other.stepper->state().step, 0u);

  const auto model = [](const char* name, int64_t width) {
    auto g = std::make_shared<graph::Graph>();
    const auto x = g->input("ids", {DType::kI32, {2}}), t = g->input("targets", {DType::kI32, {2}});
    const auto table = g->parameter("wte", {DType::kF32, {11, width}}, {});
    const auto head = g->parameter(name, {DType::kF32, {5, width}}, {});
    const auto loss = g->op("linear_cross_entropy", {g->op("embedding", {table, x})[0], head, t});
    g->freeze(loss[0], loss[1], {});
    return g;
  };
  test::Rig tuned(model("head", 8));
  EXPECT_EQ(Checkpoint(scratch / "saved").load_parameters(*tuned.session), std::vector<std::string>{"head"});
  const std::string before = tuned.digest();
  test::Rig wide(model("head", 6));
  const auto result = test::failure([&] { Checkpoint(scratch / "saved").load_parameters(*wide.session); });
  EXPECT_EQ(result.code, Code::kInvalidArgument);
  EXPECT_NE(result.message.find("[11, 6]"), std::string::npos) << result.message;
  EXPECT_NE(result.message.find("[11, 8]"), std::string::npos) << result.message;

  const auto foreign = test::failure([&] { Checkpoint(scratch / "saved").restore(*tuned.stepper); });
  EXPECT_EQ(foreign.code, Code::kInvalidArgument);
  EXPECT_NE(foreign.message.find("another model"), std::string::npos) << foreign.message;
  EXPECT_EQ(tuned.digest(), before);
}

TEST(Checkpoint, MicroBatchesOfAnotherSizeAreOfTheSameModel) {
  const test::Scratch scratch;
  const auto model = [](int64_t ids, int64_t targets, int64_t length) {
    auto g = std::make_shared<graph::Graph>();
    const auto x = g->input("ids", {DType::kI32, {ids, length}});
    const auto t = g->input("targets", {DType::kI32, {targets, length}});
    const auto table = g->parameter("wte", {DType::kF32, {11, 8}}, {}),
               head = g->parameter("head", {DType::kF32, {5, 8}}, {});
    const auto flat = g->op("reshape", {g->op("embedding", {table, x})[0]},
                            {{"shape", std::vector<int64_t>{ids * length, 8}}});
    const auto rows = g->op("reshape", {t}, {{"shape", std::vector<int64_t>{targets * length}}});
    const auto loss = g->op("linear_cross_entropy", {flat[0], head, rows[0]});
    g->freeze(loss[0], loss[1], {});
    return g;
  };
  test::Rig large(model(4, 4, 2)), small(model(2, 2, 2), 99);
  save(*large.stepper, scratch / "saved", {});
  Checkpoint(scratch / "saved").restore(*small.stepper);
  EXPECT_EQ(small.digest(), large.digest());
  test::Rig longer(model(4, 4, 4), 99);
  const std::string before = longer.digest();
  const auto other = test::failure([&] { Checkpoint(scratch / "saved").restore(*longer.stepper); });
  EXPECT_EQ(other.code, Code::kInvalidArgument);
  EXPECT_NE(other.message.find("'ids' is i32[4, 4], in the checkpoint i32[4, 2]"), std::string::npos)
      << other.message;
  EXPECT_EQ(longer.digest(), before);
}

TEST(Checkpoint, EveryDamageIsFoundAndLeavesTheSessionAlone) {
  const test::Scratch scratch;
  test::Rig rig, other(test::sample_graph(), 99);
  rig.train(0, 4);
  save(*rig.stepper, scratch / "saved", {});
  const std::string untouched = other.digest();
  const auto damage = [&](const char* name, const std::string& content) {
    fs::remove_all(scratch / "bad");
    fs::copy(scratch / "saved", scratch / "bad");
    scratch.put(std::string("bad/") + name, content);
    const auto result = test::failure([&] { Checkpoint(scratch / "bad").restore(*other.stepper); });
    if (result.code != Code::kOk) {
      EXPECT_EQ(other.stepper->state().step, 0u);
    }
    return result.code;
  };
  const std::string tensors = test::slurp(scratch / "saved" / kTensorsName);
  const std::string manifest = test::slurp(scratch / "saved" / kManifestName);
  std::mt19937 random(1);
  for (int round = 0; round < 150; round += support::stride(5)) {
    std::string bad = tensors;
    bad[random() % bad.size()] ^= static_cast<char>(1u << random() % 8);
    ASSERT_EQ(damage(kTensorsName, bad), Code::kCorruptFile);
    bad = manifest;
    bad[random() % bad.size()] ^= static_cast<char>(1u << random() % 8);
    ASSERT_EQ(damage(kManifestName, bad), Code::kCorruptFile);
    ASSERT_EQ(damage(kManifestName, manifest.substr(0, random() % manifest.size())), Code::kCorruptFile);
    ASSERT_EQ(damage(kTensorsName, tensors.substr(0, random() % tensors.size())), Code::kCorruptFile);
  }
  EXPECT_EQ(damage(kTensorsName, tensors + std::string(64, '\0')), Code::kCorruptFile);
  EXPECT_EQ(damage(kManifestName, ""), Code::kCorruptFile);
  EXPECT_EQ(other.digest(), untouched);
  EXPECT_EQ(damage(kManifestName, manifest), Code::kOk);
}

TEST(Checkpoint, ADamagedTensorIsNamedWhenItIsRead) {
  const test::Scratch scratch;
  test::Rig rig;
  save(*rig.stepper, scratch / "saved", {});
  std::string tensors = test::slurp(scratch / "saved" / kTensorsName);
  tensors[0] ^= 1;
  scratch.put(std::string("saved/") + kTensorsName, tensors);
  const Checkpoint checkpoint(scratch / "saved");
  std::vector<std::byte> to(static_cast<size_t>(checkpoint.tensors()[0].desc.bytes()));
  const auto result = test::failure([&] { checkpoint.read(checkpoint.tensors()[0], to.data()); });
  EXPECT_EQ(result.code, Code::kCorruptFile);
  EXPECT_NE(result.message.find("'" + checkpoint.tensors()[0].name + "'"), std::string::npos)
      << result.message;
  auto strange = checkpoint.tensors()[0];
  strange.offset += 64;
  EXPECT_EQ(test::failure([&] { checkpoint.read(strange, to.data()); }).code, Code::kInvalidArgument);
}

TEST(Checkpoint, SavingNeverReplacesOtherPeoplesFiles) {
  const test::Scratch scratch;
  test::Rig rig;
  fs::create_directory(scratch / "home");
  scratch.put("home/letter", "dear");
  EXPECT_EQ(test::failure([&] { save(*rig.stepper, scratch / "home", {}); }).code, Code::kInvalidArgument);
  EXPECT_EQ(test::slurp(scratch / "home" / "letter"), "dear");
  EXPECT_EQ(test::failure([&] { save(*rig.stepper, scratch / "home" / "letter", {}); }).code,
            Code::kInvalidArgument);
  fs::create_directory(scratch / "empty");
  save(*rig.stepper, scratch / "empty", {});
  const auto twice = test::failure([&] {
    save(*rig.stepper, scratch / "x", {{}, {scratch / "home" / "letter", scratch / "home" / "letter"}});
  });
  EXPECT_EQ(twice.code, Code::kInvalidArgument);
  EXPECT_EQ(test::failure([&] {
              save(*rig.stepper, scratch / "x", {{}, {scratch / "none"}});
            }).code,
            Code::kNotFound);
  EXPECT_FALSE(fs::exists(scratch / "x"));
}

TEST(Checkpoint, TheNewestCompleteOneIsFound) {
  const test::Scratch scratch;
  test::Rig rig;
  EXPECT_EQ(test::failure([&] { newest_checkpoint(scratch / "none"); }).code, Code::kNotFound);
  cairn::write_file_durably(scratch / "file", {});
  const auto file = test::failure([&] { newest_checkpoint(scratch / "file"); });
  EXPECT_EQ(file.code, Code::kNotFound);
  EXPECT_TRUE(file.message.ends_with("file' is not a directory")) << file.message;
  EXPECT_EQ(test::failure([&] { newest_checkpoint(scratch.path()); }).code, Code::kNotFound);
  EXPECT_EQ(test::failure([&] { Checkpoint checkpoint(scratch / "none"); }).code, Code::kNotFound);
  EXPECT_EQ(test::failure([&] { Checkpoint checkpoint(scratch.path()); }).code, Code::kNotFound);
  for (const char* name : {"step-9", "step-10", "step-100x", "other-200"})
    save(*rig.stepper, scratch / name, {});
  EXPECT_EQ(newest_checkpoint(scratch.path()), scratch / "step-10");
  EXPECT_EQ(newest_checkpoint(scratch / "step-9"), scratch / "step-9");
  fs::create_directory(scratch / "step-11");
  save(*rig.stepper, scratch / "step-12", {});
  fs::resize_file(scratch / "step-12" / kTensorsName, 64);
  EXPECT_EQ(newest_checkpoint(scratch.path()), scratch / "step-10");
  fs::remove_all(scratch / "step-10");
  fs::remove_all(scratch / "step-9");
  const auto result = test::failure([&] { newest_checkpoint(scratch.path()); });
  EXPECT_EQ(result.code, Code::kNotFound);
  EXPECT_NE(result.message.find("step-12"), std::string::npos) << result.message;
}

}  // namespace
}  // namespace cairn::io
