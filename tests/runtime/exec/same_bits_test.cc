// Plans never change numbers: whatever is kept, recomputed or offloaded, gradients and outputs are the same
// to the bit, and memory is what the plan said, to the byte. On checked devices, so that every ordering is
// verified as well.
#include "tests/runtime/compile/support.h"

namespace cairn::engine {
namespace {

struct Model {
  std::string name;
  std::function<std::shared_ptr<Graph>()> graph;
  graph::AmpMode amp;
};

// The planner is what takes the time of these tests, and more so under sanitizers.
const Model kModels[] = {
    {"mlp", [] { return mlp(3); }, graph::AmpMode::kOff},
#ifndef CAIRN_SANITIZED
    {"transformer", [] { return transformer(2); }, graph::AmpMode::kOff},
#endif
    {"transformer_bf16", [] { return transformer(2); }, graph::AmpMode::kBf16},
};

// Budgets between the smallest that does (0) and what keeping everything takes (1).
#ifdef CAIRN_SANITIZED
constexpr double kBetween[] = {0.3};
#else
constexpr double kBetween[] = {0.6, 0.0};
#endif

class SameBits : public ::testing::TestWithParam<std::tuple<std::string, size_t>> {
 protected:
  const Model& model() const { return kModels[std::get<1>(GetParam())]; }
  PlanOptions options() const {
    PlanOptions o;
    o.amp = model().amp;
    return o;
  }
  int threads = 1;
  Result run(const PlanOptions& options, std::shared_ptr<const CompiledPlan>* out_plan = nullptr) {
    device::DeviceOptions device_options;
    device_options.threads = threads;
    const auto device = device::checked(device::open(std::get<0>(GetParam()), device_options));
    const auto plan = compile(model().graph(), *device, options);
    EXPECT_EQ(plan::violation(plan->problem, plan->plan), "");
    Session session(plan, device);
    fill(session);
    for (uint32_t micro = 0; micro < 3; ++micro) session.run({42, 7, micro});
    expect_exact_memory(session);
    if (out_plan != nullptr) *out_plan = plan;
    return result(session);
  }
};

TEST_P(SameBits, UnderEveryPolicy) {
  threads = model().name == "mlp" ? 2 : 1;
  PlanOptions o = options();
  o.policy = Policy::kKeep;
  std::shared_ptr<const CompiledPlan> keep, recompute, host, disk;
  const Result expected = run(o, &keep);
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(keep->plan.totals.recompute_bytes, 0);

  o.policy = Policy::kRecompute;
  EXPECT_EQ(run(o, &recompute), expected);
  EXPECT_GT(recompute->plan.totals.recompute_bytes, 0);
  EXPECT_LT(recompute->plan.arena_bytes, keep->plan.arena_bytes);

  o.policy = Policy::kOffload;
  EXPECT_EQ(run(o, &host), expected);
  EXPECT_GT(host->plan.tier_arena_bytes.at(0), 0);
  EXPECT_FALSE(host->program().copies.empty());

  o.tiers = {Tier::kDisk};
  EXPECT_EQ(run(o, &disk), expected);
  EXPECT_GT(disk->plan.tier_arena_bytes.at(0), 0);
  EXPECT_EQ(disk->link_tier.at(0), Tier::kDisk);
}

TEST_P(SameBits, UnderEveryBudget) {
  PlanOptions o = options();
  o.optimizer.name = "";  // homes_test.cc has what the planner does with its state
  std::shared_ptr<const CompiledPlan> plan;
  const Result expected = run(o, &plan);
  const int64_t keep_all = plan->plan.arena_bytes;
  int64_t smallest = 0;
  o.budget_bytes = 1;
  try {
    run(o);
    FAIL() << "a budget of one byte was met";
  } catch (const Error& error) {
    ASSERT_EQ(error.code(), Code::kOverBudget) << error.what();
    ASSERT_NE(error.fault(), nullptr);
    smallest = static_cast<int64_t>(error.fault()->smallest_budget_bytes);
  }
  ASSERT_GT(smallest, 0);
  ASSERT_LE(smallest, keep_all);
  for (const auto& tiers : {std::vector<Tier>{}, {Tier::kHost}, {Tier::kDisk, Tier::kHost}})
    for (const double between : kBetween) {
      o.tiers = tiers;
      o.budget_bytes = smallest + static_cast<int64_t>(between * static_cast<double>(keep_all - smallest));
      try {
        EXPECT_EQ(run(o, &plan), expected) << o.budget_bytes << " bytes, " << tiers.size() << " tiers";
        EXPECT_LE(plan->plan.arena_bytes, o.budget_bytes);
      } catch (const Error& error) {  // without tiers the smallest budget is a larger one
        ASSERT_EQ(error.code(), Code::kOverBudget) << error.what();
        ASSERT_TRUE(tiers.empty() || tiers[0] == Tier::kDisk) << error.what();
      }
    }
}

TEST_P(SameBits, WithAShareOfTheKeepAllPlan) {
  PlanOptions o = options();
  std::shared_ptr<const CompiledPlan> keep, part;
  const Result expected = run(o, &keep);
  // Half of the way between what persists, which no plan can save, and everything.
  o.budget_share =
      0.5 + 0.5 * static_cast<double>(keep->persistent_bytes()) / static_cast<double>(keep->plan.arena_bytes);
  try {
    EXPECT_EQ(run(o, &part), expected);
  } catch (const Error& error) {  // workspaces and the largest op may need more than that
    ASSERT_EQ(error.code(), Code::kOverBudget);
    o.budget_share = static_cast<double>(error.fault()->smallest_budget_bytes + 64) /
                     static_cast<double>(keep->plan.arena_bytes);
    EXPECT_EQ(run(o, &part), expected);
  }
  EXPECT_LT(part->plan.arena_bytes, keep->plan.arena_bytes);
  EXPECT_LE(part->plan.arena_bytes, part->problem.budget_bytes);
  EXPECT_EQ(part->problem.budget_bytes,
            static_cast<int64_t>(o.budget_share * static_cast<double>(keep->plan.arena_bytes)));
}

INSTANTIATE_TEST_SUITE_P(Devices, SameBits,
                         ::testing::Combine(::testing::Values("reference", "cpu"),
                                            ::testing::Range(size_t{0}, std::size(kModels))),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" + kModels[std::get<1>(test.param)].name;
                         });

}  // namespace
}  // namespace cairn::engine
