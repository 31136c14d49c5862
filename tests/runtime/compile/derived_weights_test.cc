// Packed weights are there where they save seconds and there is room for them, and no number changes.
#include "runtime/compile/derived_weights.h"

#include "runtime/compile/cost_query.h"
#include "runtime/costs/recorder.h"
#include "tests/runtime/compile/support.h"

namespace cairn::engine {
namespace {

int64_t packed_bytes(const Lowered& plan) { return kept_bytes(plan, graph::Role::kPacked); }
int64_t given_up_bytes(const Lowered& plan) { return not_kept_bytes(plan, graph::Role::kPacked); }

struct PackedWeights : testing::Test {
  std::shared_ptr<device::Device> cpu = device::open("cpu", {.threads = 1, .disk_directory = {}});
  PlanOptions options{.amp = graph::AmpMode::kBf16, .micro_steps = 4};

  void SetUp() override {
    const TensorDesc weight{DType::kF32, {32, 32}, 0};
    if (cpu->kernels().packed_bytes(weight, "forward", 32, DType::kBF16, 1) == 0) GTEST_SKIP() << "needs amx";
  }
  std::shared_ptr<const CompiledPlan> plan(int64_t budget) {
    PlanOptions o = options;
    o.budget_bytes = budget;
    return compile(transformer(1), *cpu, o);
  }
  int64_t smallest() {
    try {
      plan(1);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kOverBudget) << error.what();
      return static_cast<int64_t>(error.fault()->smallest_budget_bytes);
    }
    ADD_FAILURE() << "a budget of one byte was met";
    return 0;
  }
  Result run(const std::shared_ptr<const CompiledPlan>& plan, uint32_t micro_steps = 2) {
    Session session(plan, device::checked(cpu));
    fill(session);
    for (uint32_t micro = 0; micro < micro_steps; ++micro) session.run({42, 7, micro});
    session.parameters_changed();  // packs are made again
    session.run({42, 8, 0});
    expect_exact_memory(session);
    return result(session);
  }
  costs::Model model() { return {cpu->info(), nullptr}; }
};

TEST_F(PackedWeights, WhereEverythingFitsAllArePacked) {
  const auto free = plan(0), exact = plan(free->plan.arena_bytes);
  for (const auto& p : {free, exact}) {
    EXPECT_GT(packed_bytes(*p), 0);
    EXPECT_EQ(given_up_bytes(*p), 0);
    EXPECT_TRUE(p->joint->not_kept.empty());
  }
}

// With one micro-batch per update a packed weight is made once and used once: packing where it is used takes the same
// time and no bytes.
TEST_F(PackedWeights, WhatIsUsedOnceIsNotKeptPacked) {
  const auto kept = plan(0);
  const Result expected = run(kept, 1);
  options.micro_steps = 1;
  const auto p = plan(0);
  EXPECT_EQ(packed_bytes(*p), 0);
  EXPECT_EQ(given_up_bytes(*p), packed_bytes(*kept));
  EXPECT_LT(p->plan.arena_bytes, kept->plan.arena_bytes);
  EXPECT_EQ(run(p, 1), expected);
  EXPECT_EQ(packed_bytes(*plan(kept->plan.arena_bytes)), 0) << "nor where a budget has room";
}

// No update changes it, so that it is packed once for good.
TEST_F(PackedWeights, WithoutAnOptimizerAllArePacked) {
  options.micro_steps = 1;
  options.optimizer.name = "";
  const auto p = plan(0);
  EXPECT_GT(packed_bytes(*p), 0);
  EXPECT_EQ(given_up_bytes(*p), 0);
}

// Packing in an op is by slices in its workspace: no second weight lies there.
TEST_F(PackedWeights, PackingWhereItIsUsedTakesASlice) {
  constexpr int64_t kRows = 4096, kWidth = 2048;
  const TensorDesc weight{DType::kF32, {kRows, kWidth}, 0}, x{DType::kBF16, {128, kWidth}, 0},
      y{DType::kBF16, {128, kRows}, 0};
  for (const bool forward : {true, false}) {
    const TensorDesc in[] = {forward ? x : y, weight};
    const TensorDesc out[] = {forward ? y : x};
    const Attrs none;
    const auto kernel =
        cpu->kernels().find({forward ? "linear" : "linear_grad_input", in, out, 0b11, 0b1, &none, 2});
    ASSERT_NE(kernel, nullptr);
    EXPECT_LT(kernel->workspace_bytes(), kRows * kWidth * 2 / 2) << forward;
  }
}

TEST_F(PackedWeights, ABudgetTakesAsManyAsItNeedsAndNoBitChanges) {
  const auto all = plan(0);
  const Result expected = run(all);
  const int64_t least = smallest();
  int64_t before = 0;
  for (const double share : {0.5, 0.0}) {
    const auto p =
        plan(least + static_cast<int64_t>(share * static_cast<double>(all->plan.arena_bytes - least)));
    EXPECT_EQ(packed_bytes(*p) + given_up_bytes(*p), packed_bytes(*all));
    EXPECT_GE(given_up_bytes(*p), before) << "a smaller budget kept more packs";
    EXPECT_EQ(plan::violation(p->problem, p->plan), "");
    EXPECT_EQ(run(p), expected) << share;
    before = given_up_bytes(*p);
  }
  EXPECT_EQ(before, packed_bytes(*all)) << "the smallest budget has no packs";
}

TEST_F(PackedWeights, TheSmallestBudgetShrinks) {
  plan::Problem packed = plan(0)->problem;
  packed.budget_bytes = 1;
  try {
    plan::solve(packed);
    FAIL();
  } catch (const Error& error) {
    EXPECT_LT(smallest(), static_cast<int64_t>(error.fault()->smallest_budget_bytes));
  }
  const int64_t least = smallest();
  EXPECT_NO_THROW(plan(least));
  EXPECT_THROW(plan(least - 64), Error);
}

TEST_F(PackedWeights, AnOpWithoutItsPackCostsThePackMore) {
  const auto all = plan(0);
  const DerivedWeightChoices choices = derived_weight_choices(*all, model(), 4);
  graph::JointOptions joint;
  joint.amp = graph::AmpMode::kBf16;
  joint.packed_bytes = cpu->kernels().packed_bytes;
  leave_out(choices, std::vector<bool>(choices.choices.size(), true), joint);
  const auto none = graph::derive(transformer(1), joint);
  EXPECT_TRUE(none->ops(graph::kRepack).empty());
  ASSERT_EQ(none->ops().size(), all->joint->ops().size());
  double with = 0, without = 0, packing = 0, added = 0;
  int64_t bytes = 0;
  for (size_t i = 0; i < none->ops().size(); ++i) {
    with += op_seconds(*all->joint, static_cast<int32_t>(i), model()).seconds;
    without += op_seconds(*none, static_cast<int32_t>(i), model()).seconds;
  }
  for (const graph::JointOp& op : all->joint->ops(graph::kRepack))
    packing += model().seconds(query_of(*all->joint, op)).seconds;
  for (const plan::Choice& choice : choices.choices) {
    added += choice.seconds;
    bytes += choice.bytes;
  }
  EXPECT_NEAR(without, with + packing, 1e-9 * with);      // each packed weight has one reader
  EXPECT_NEAR(added, packing * (1 - 0.25), 1e-9 * with);  // and was made once in four micro-batches
  EXPECT_EQ(bytes, packed_bytes(*all));
}

// The loss reads a packed weight for each of its products: both or none.
TEST_F(PackedWeights, PacksOfOneOpGoTogether) {
  const auto all = plan(0);
  const DerivedWeightChoices choices = derived_weight_choices(*all, model(), 1);
  EXPECT_EQ(choices.choices.size() + 1, all->joint->ops(graph::kRepack).size());
  size_t pairs = 0;
  for (const auto& uses : choices.uses) {
    pairs += uses.size() == 2;
    if (uses.size() == 2) {
      EXPECT_EQ(uses[0].first, uses[1].first);
      EXPECT_NE(uses[0].second, uses[1].second);
    }
  }
  EXPECT_EQ(pairs, 1u);
}

TEST_F(PackedWeights, MeasuredSecondsOfAPlainWeightCount) {
  graph::JointOptions joint;
  joint.amp = graph::AmpMode::kBf16;
  joint.packed_bytes = cpu->kernels().packed_bytes;
  joint.not_kept = {{"h0.up", "forward"}};
  const auto derived = graph::derive(transformer(1), joint);
  ASSERT_EQ(derived->plain_uses.size(), 1u);
  const int32_t op = derived->plain_uses[0].op;
  costs::Profile profile;
  costs::Recorder recorder;
  recorder.add(query_of(*derived, derived->ops()[static_cast<size_t>(op)]), 1, 0, 0.25);
  recorder.merge_into(profile);
  costs::Table table;
  table.profile = profile;
  const costs::Model measured(cpu->info(), std::make_shared<const costs::Table>(table));
  EXPECT_TRUE(op_seconds(*derived, op, measured).measured);
  EXPECT_DOUBLE_EQ(op_seconds(*derived, op, measured).seconds, 0.25 + measured.launch_seconds());
}

TEST_F(PackedWeights, InFloat32NothingIsPacked) {
  options.amp = graph::AmpMode::kOff;
  const auto p = plan(0);
  EXPECT_EQ(packed_bytes(*p), 0);
  EXPECT_TRUE(derived_weight_choices(*p, model(), 1).choices.empty());
  EXPECT_EQ(run(plan(smallest())), run(p));
}

}  // namespace
}  // namespace cairn::engine
