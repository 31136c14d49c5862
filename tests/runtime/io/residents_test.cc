// Statistics and caches in files: a statistic is saved, its sum in the middle of an effective batch, a cache is not.
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/io/checkpoint.h"
#include "runtime/io/graph_file.h"
#include "tests/runtime/io/rig.h"
#include "tests/runtime/io/scratch.h"

namespace cairn::io {
namespace {

using graph::ValueId;
using graph::ValueKind;

// The last op makes no value: the mean of the embedded words.
std::shared_ptr<graph::Graph> model() {
  auto g = std::make_shared<graph::Graph>();
  const ValueId ids = g->input("ids", {DType::kI32, {8}}), targets = g->input("targets", {DType::kI32, {8}});
  const ValueId table =
      g->parameter("wte", {DType::kF32, {11, 8}}, {.init = graph::Init::kNormal, .init_scale = 0.5});
  const ValueId mean = g->resident("mean", ValueKind::kStatistic, {DType::kF32, {8}}, 0.125);
  const ValueId cache = g->resident("cache", ValueKind::kCache, {DType::kF32, {32, 8}});
  const ValueId x = g->op("embedding", {table, ids})[0];
  const ValueId at = g->input("at", {DType::kI32, {1}});
  const auto loss = g->op("linear_cross_entropy", {g->op("sub", {x, mean})[0], table, targets});
  g->op("append", {cache, x, at});
  g->op("running_mean", {x, mean}, {{"momentum", 0.5}});
  g->freeze(loss[0], loss[1], {});
  return g;
}

struct Trained : test::Rig {
  Trained() : Rig(model()) { place(0); }
  void place(int32_t at) { session->write(session->plan().joint->find("at"), &at, sizeof at); }
  std::vector<float> read(const char* name) const {
    const int32_t value = session->plan().joint->find(name);
    std::vector<float> numbers(static_cast<size_t>(session->saved(value).bytes() / 4));
    session->read(value, numbers.data(), static_cast<int64_t>(numbers.size() * 4));
    return numbers;
  }
};

std::vector<std::string> names(const Checkpoint& checkpoint) {
  std::vector<std::string> found;
  for (const auto& tensor : checkpoint.tensors()) found.push_back(tensor.name);
  return found;
}

TEST(ResidentsInFiles, AGraphComesBack) {
  const auto g = model();
  const auto again = decode_graph(encode_graph(*g));
  EXPECT_EQ(again->digest(), g->digest());
  const ValueId mean = again->find("mean");
  ASSERT_NE(mean, graph::kNone);
  EXPECT_EQ(again->values()[mean].kind, ValueKind::kStatistic);
  EXPECT_EQ(again->values()[mean].parameter.init_scale, 0.125);
  EXPECT_EQ(again->values()[again->find("cache")].kind, ValueKind::kCache);
}

// Of an effective batch of three.
class Cut : public testing::TestWithParam<uint64_t> {};

TEST_P(Cut, ResumesBitForBit) {
  const uint64_t cut = GetParam(), end = 9;
  const test::Scratch scratch;
  Trained whole;
  const std::vector<double> expected = whole.train(0, end);
  {
    Trained first;
    first.train(0, cut);
    save(*first.stepper, scratch / "saved", {});
  }
  Trained resumed;
  resumed.train(0, 2);
  const Checkpoint checkpoint(scratch / "saved");
  const std::vector<std::string> step = {"wte", "wte/m", "wte/v", "mean"},
                                 midst = {"wte", "wte/m", "wte/v", "wte/gradient", "mean", "mean/sum"};
  EXPECT_EQ(names(checkpoint), cut % 3 == 0 ? step : midst);
  checkpoint.restore(*resumed.stepper);
  EXPECT_EQ(resumed.train(cut, end),
            std::vector<double>(expected.begin() + static_cast<ptrdiff_t>(cut), expected.end()));
  EXPECT_EQ(resumed.digest(), whole.digest());
  EXPECT_EQ(resumed.read("mean"), whole.read("mean"));
  EXPECT_NE(whole.read("mean"), std::vector<float>(8, 0.125f));
}
INSTANTIATE_TEST_SUITE_P(Batches, Cut, testing::Values(0, 1, 3, 5));

TEST(ResidentsInFiles, AModelIsItsParametersAndStatistics) {
  const test::Scratch scratch;
  Trained run, other;
  run.train(0, 3);
  const std::vector<float> filled = run.read("cache");
  EXPECT_NE(filled, std::vector<float>(filled.size(), 0.0f));
  save(*run.stepper, scratch / "saved", {});
  EXPECT_TRUE(Checkpoint(scratch / "saved").load_parameters(*other.session).empty());
  EXPECT_EQ(other.digest(), run.digest());
  EXPECT_EQ(other.read("mean"), run.read("mean"));
  EXPECT_EQ(other.read("cache"), std::vector<float>(filled.size(), 0.0f));
  test::Rig without;  // of a model that has none of it
  without.train(0, 3);
  save(*without.stepper, scratch / "plain", {});
  const auto tensors = names(Checkpoint(scratch / "plain"));
  EXPECT_EQ(std::count(tensors.begin(), tensors.end(), "mean"), 0);
}

TEST(ResidentsInFiles, AveragesOfParametersComeBackAndStandInForThem) {
  const test::Scratch scratch;
  engine::PlanOptions plan = test::Rig::two_tiers();
  plan.optimizer.average_decay = 0.5;
  const auto rig = [&] { return test::Rig(test::sample_graph(), 7, plan); };
  const auto read = [](const test::Rig& of, const std::string& name) {
    const int32_t value = of.session->plan().joint->find(name);
    std::vector<float> numbers(static_cast<size_t>(of.session->saved(value).bytes() / 4));
    of.session->read_saved(value, 0, numbers.data(), static_cast<int64_t>(numbers.size() * 4));
    return numbers;
  };
  test::Rig whole = rig(), first = rig(), resumed = rig(), evaluated;
  whole.train(0, 9);
  first.train(0, 6);
  save(*first.stepper, scratch / "saved", {});
  const Checkpoint checkpoint(scratch / "saved");
  resumed.train(0, 3);
  checkpoint.restore(*resumed.stepper);
  resumed.train(6, 9);
  EXPECT_EQ(resumed.digest(), whole.digest());
  size_t averages = 0;
  EXPECT_TRUE(checkpoint.load_parameters(*evaluated.session, true).empty());
  for (const auto& tensor : checkpoint.tensors()) {
    if (!tensor.name.ends_with("/ema")) continue;
    const std::string parameter = tensor.name.substr(0, tensor.name.size() - 4);
    EXPECT_EQ(read(resumed, tensor.name), read(whole, tensor.name)) << tensor.name;
    EXPECT_EQ(read(evaluated, parameter), read(first, tensor.name)) << tensor.name;
    EXPECT_NE(read(evaluated, parameter), read(first, parameter)) << tensor.name;
    ++averages;
  }
  EXPECT_GT(averages, 0U);
  save(*evaluated.stepper, scratch / "without", {});
  const auto refused =
      test::failure([&] { Checkpoint(scratch / "without").load_parameters(*evaluated.session, true); });
  EXPECT_EQ(refused.code, Code::kNotFound);
}

}  // namespace
}  // namespace cairn::io
