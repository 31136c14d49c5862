// Checkpoints of every optimizer, with states of 8 bits among them: a run saved after any micro-batch, its states in
// any tier, goes on with the same bits.
#include "runtime/ops/optimizers.h"

#include <gtest/gtest.h>

#include "runtime/io/checkpoint.h"
#include "runtime/io/manifest.h"
#include "tests/runtime/io/rig.h"
#include "tests/runtime/io/scratch.h"
#include "tests/support/seeds.h"

namespace cairn::io {
namespace {

// Of the rig's eight tokens; its weights are large enough for blocks, and no whole number of them.
std::shared_ptr<graph::Graph> wide_graph() {
  auto g = std::make_shared<graph::Graph>();
  graph::ParameterOptions normal;
  normal.init = graph::Init::kNormal;
  normal.init_scale = 0.1;
  const auto f32 = [](std::initializer_list<int64_t> dims) { return TensorDesc{DType::kF32, Shape(dims)}; };
  const auto ids = g->input("ids", {DType::kI32, {8}}), targets = g->input("targets", {DType::kI32, {8}});
  auto x = g->op("embedding", {g->parameter("wte", f32({11, 380}), normal), ids})[0];
  x = g->op("linear",
            {x, g->parameter("up", f32({72, 380}), normal), g->parameter("bias", f32({72}), normal)})[0];
  const auto loss = g->op("linear_cross_entropy",
                          {g->op("gelu", {x})[0], g->parameter("head", f32({11, 72}), normal), targets});
  g->freeze(loss[0], loss[1], {});
  return g;
}

engine::PlanOptions plan_options(std::string_view optimizer, std::vector<Tier> tiers) {
  engine::PlanOptions options;
  options.tiers = std::move(tiers);
  options.optimizer.name = optimizer;
  if (optimizer == "adamw8") options.optimizer.groups = {{.pattern = "wte", .optimizer = "adamw"}};
  if (options.tiers.empty()) return options;
  options.budget_bytes = 1;
  try {
    test::Rig refused(wide_graph(), 7, options);
  } catch (const Error& error) {
    options.budget_bytes = static_cast<int64_t>(error.fault()->smallest_budget_bytes);
  }
  return options;
}

class EachOptimizer : public testing::TestWithParam<std::string> {};

TEST_P(EachOptimizer, ResumesAfterAnyMicroBatch) {
  constexpr uint64_t kEnd = 12;
  constexpr int64_t kOneIn = support::kSanitized ? 36 : 6;  // every point plans the model twice
  const test::Scratch scratch;
  const engine::PlanOptions kinds[] = {plan_options(GetParam(), {}), plan_options(GetParam(), {Tier::kHost}),
                                       plan_options(GetParam(), {Tier::kDisk})};
  test::Rig whole(wide_graph(), 7, kinds[0]);
  whole.train(0, kEnd);
  int resumed = 0;
  for (uint64_t cut = 0; cut < kEnd; ++cut)
    for (int64_t kind = 0; kind < 9; ++kind) {
      if (!support::taken(static_cast<int64_t>(cut) * 9 + kind, kOneIn)) continue;
      SCOPED_TRACE(cat("micro-batch ", cut, ", saved and loaded where ", kind));
      test::Rig first(wide_graph(), 7, kinds[kind % 3]), second(wide_graph(), 99, kinds[kind / 3]);
      first.train(0, cut);
      save(*first.stepper, scratch / "saved", {});
      second.train(0, 1);
      Checkpoint(scratch / "saved").restore(*second.stepper);
      save(*second.stepper, scratch / "again", {});
      EXPECT_EQ(test::slurp(scratch / "again" / kTensorsName), test::slurp(scratch / "saved" / kTensorsName));
      second.train(cut, kEnd);
      EXPECT_EQ(second.digest(), whole.digest());
      ++resumed;
    }
  EXPECT_GT(resumed, support::kSanitized ? 0 : 5);
}

std::vector<std::string> names() {
  std::vector<std::string> list;
  for (const ops::OptimizerRow& row : ops::optimizers()) list.emplace_back(row.name);
  return list;
}
INSTANTIATE_TEST_SUITE_P(Rows, EachOptimizer, testing::ValuesIn(names()),
                         [](const auto& test) { return test.param; });

TEST(StatesOf8Bits, AreTensorsOfTheirFormat) {
  const test::Scratch scratch;
  test::Rig rig(wide_graph(), 7, plan_options("adamw8", {}));
  rig.train(0, 3);
  save(*rig.stepper, scratch / "saved", {});
  const Checkpoint checkpoint(scratch / "saved");
  const auto tensor = [&](std::string_view name) {
    const auto found = std::find_if(checkpoint.tensors().begin(), checkpoint.tensors().end(),
                                    [&](const auto& t) { return t.name == name; });
    return found == checkpoint.tensors().end() ? TensorDesc{DType::kU8, {1}} : found->desc;
  };
  EXPECT_EQ(tensor("up/m"), (TensorDesc{DType::kDynamic8, {72, 380}}));
  EXPECT_EQ(tensor("up/v"), (TensorDesc{DType::kUDynamic8, {72, 380}}));
  EXPECT_EQ(tensor("up/v").bytes(), 107 * 260);
  EXPECT_EQ(tensor("wte/m"), (TensorDesc{DType::kF32, {11, 380}})) << "of a group with adamw";
  EXPECT_EQ(tensor("bias/m"), (TensorDesc{DType::kF32, {72}})) << "too small";
  // Another optimizer's states are no states of this one.
  test::Rig other(wide_graph(), 7, plan_options("adamw", {}));
  EXPECT_THROW(checkpoint.restore(*other.stepper), Error);
}

}  // namespace
}  // namespace cairn::io
