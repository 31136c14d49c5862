#include "runtime/io/plan_file.h"

#include <gtest/gtest.h>

#include "runtime/io/graph_file.h"
#include "tests/runtime/io/reseal.h"
#include "tests/runtime/io/samples.h"
#include "tests/runtime/io/scratch.h"
#include "tests/support/seeds.h"

namespace cairn::io {
namespace {

std::string sample() {
  test::SamplePlan s = test::sample_plan();
  s.plan.solve_seconds = 0.25;
  return test::text_of(encode_plan(s.problem, s.plan));
}

TEST(PlanFile, GivesBackTheSamePlan) {
  const test::SamplePlan s = test::sample_plan();
  const DecodedPlan d = decode_plan(encode_plan(s.problem, s.plan));
  EXPECT_EQ(plan::to_json(d.problem), plan::to_json(s.problem));
  EXPECT_EQ(plan::to_json(d.problem, d.plan, true), plan::to_json(s.problem, s.plan, true));
  EXPECT_EQ(d.plan.gap, s.plan.gap);
  EXPECT_EQ(d.plan.totals.offload_bytes, s.plan.totals.offload_bytes);
  ASSERT_EQ(d.plan.values.size(), s.plan.values.size());
  for (size_t i = 0; i < d.plan.values.size(); ++i)
    EXPECT_EQ(d.plan.values[i].reason, s.plan.values[i].reason);
  ASSERT_EQ(d.plan.steps.size(), s.plan.steps.size());
  for (size_t i = 0; i < d.plan.steps.size(); ++i) {
    EXPECT_EQ(d.plan.steps[i].kind, s.plan.steps[i].kind);
    EXPECT_EQ(d.plan.steps[i].index, s.plan.steps[i].index);
    EXPECT_EQ(d.plan.steps[i].offsets, s.plan.steps[i].offsets);
  }
  EXPECT_TRUE(test::text_of(encode_plan(d.problem, d.plan)) == test::text_of(encode_plan(s.problem, s.plan)));
}

TEST(PlanFile, KnowsWhatIsFresh) {
  test::SamplePlan s = test::sample_plan();
  s.problem.values.push_back({"gradient", 64, true, 0, 0.5, true});
  s.problem.ops.back().outputs.push_back(static_cast<int32_t>(s.problem.values.size()) - 1);
  s.plan = plan::solve(s.problem);
  EXPECT_EQ(decode_plan(encode_plan(s.problem, s.plan)).problem.values, s.problem.values);
}

TEST(PlanFile, APlanThatBreaksTheRulesIsRefused) {
  test::SamplePlan s = test::sample_plan();
  s.plan.arena_bytes -= 64;  // claims less than it uses
  const auto result = test::failure([&] { decode_plan(encode_plan(s.problem, s.plan)); });
  EXPECT_EQ(result.code, Code::kCorruptFile);
  s = test::sample_plan();
  s.problem.values[2].bytes += 4096;
  EXPECT_EQ(test::failure([&] { decode_plan(encode_plan(s.problem, s.plan)); }).code, Code::kCorruptFile);
  s = test::sample_plan();
  s.plan.values[0].tier = 7;
  EXPECT_EQ(test::failure([&] { decode_plan(encode_plan(s.problem, s.plan)); }).code, Code::kCorruptFile);
  s = test::sample_plan();
  s.problem.links[0].out_bytes_per_second = -1;
  EXPECT_EQ(test::failure([&] { decode_plan(encode_plan(s.problem, s.plan)); }).code, Code::kCorruptFile);
}

TEST(PlanFile, EveryTruncationAndEveryFlippedBitIsFound) {
  const std::string good = sample();
  for (size_t size = 0; size < good.size(); ++size)
    ASSERT_EQ(test::failure([&] { decode_plan(test::bytes_of(good).first(size)); }).code, Code::kCorruptFile);
  std::string bad = good;
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    bad[bit / 8] ^= static_cast<char>(1u << bit % 8);
    ASSERT_EQ(test::failure([&] { decode_plan(test::bytes_of(bad)); }).code, Code::kCorruptFile) << bit;
    bad[bit / 8] = good[bit / 8];
  }
}

TEST(PlanFile, DamageUnderARightDigestNeverCrashes) {
  const std::string good = sample();
  std::mt19937 random(2);
  const int stride = support::stride(9);
  int refused = 0;
  for (int round = 0; round < 6000; round += stride) {
    std::string bad = good;
    for (size_t n = random() % 3 + 1; n > 0; --n) bad = test::mutate(bad, random);
    const auto result = test::failure([&] {
      const DecodedPlan d = decode_plan(test::bytes_of(test::reseal(bad)));
      ASSERT_EQ(plan::violation(d.problem, d.plan), "");
      plan::to_json(d.problem, d.plan, true);
    });
    ASSERT_TRUE(result.code == Code::kOk || result.code == Code::kCorruptFile) << result.message;
    refused += result.code != Code::kOk;
  }
  EXPECT_GT(refused * stride, 1000);
}

TEST(PlanFile, KindsAreNotMixedUp) {
  const std::string plan = sample(), model = test::text_of(encode_graph(*test::sample_graph()));
  EXPECT_EQ(test::failure([&] { decode_graph(test::bytes_of(plan)); }).code, Code::kCorruptFile);
  EXPECT_EQ(test::failure([&] { decode_plan(test::bytes_of(model)); }).code, Code::kCorruptFile);
}

}  // namespace
}  // namespace cairn::io
