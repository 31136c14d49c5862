// Random problems with and without links, regions and policies, at budgets from too little to more than
// enough: every plan passes the independent replay, more memory is never slower, the smallest budget is
// exact.
#include <gtest/gtest.h>

#include <random>

#include "runtime/plan/index.h"
#include "tests/planner/cases.h"
#include "tests/runtime/plan/make_problem.h"

namespace cairn::plan {
namespace {

// Most small, every 64th of up to 30 forward ops; a quarter each without links, without regions.
Problem swept_problem(uint32_t seed) {
  const int max_ops = seed % 64 == 63 ? 30 : 2 + static_cast<int>(seed / 4 % 9);
  return random_problem(seed, {.max_ops = max_ops, .links = seed % 4 != 1, .regions = seed % 4 != 2});
}

// "" or what the explicit policies forbid.
std::string broken_policy(const Problem& p, const Index& index, const Plan& plan) {
  for (size_t v = 0; v < p.values.size(); ++v) {
    const int32_t maker = index.maker[v];
    if (maker < 0 || maker >= p.backward_begin || p.values[v].persistent || index.scope[maker] < 0) continue;
    const Policy policy = p.regions[index.scope[maker]].policy;
    const Decision made = plan.values[v].decision;
    if ((policy == Policy::kKeep && made != Decision::kKeep) ||
        (policy == Policy::kRecompute && made == Decision::kOffload))
      return cat("'", p.values[v].name, "' breaks the policy of its region");
  }
  return "";
}

class Sweep {
 public:
  explicit Sweep(uint32_t seed) : seed_(seed), p_(swept_problem(seed)), index_(p_) {}

  void run() {
    try {
      unlimited_ = plan_at(0).arena_bytes;
      if (unlimited_ == p_.persistent_bytes()) return;  // nothing moves
      least_ = smallest();
      EXPECT_LE(least_, unlimited_) << where();
      std::mt19937 random(seed_);
      std::vector<int64_t> budgets = {least_, unlimited_, unlimited_ + 1};
      for (int k = 0; k < 2 && least_ < unlimited_; ++k)
        budgets.push_back(least_ +
                          static_cast<int64_t>(random() % static_cast<uint64_t>(unlimited_ - least_)));
      std::sort(budgets.begin(), budgets.end());
      double before = std::numeric_limits<double>::infinity();
      for (int64_t budget : budgets) {
        const double seconds = plan_at(budget).predicted_seconds;
        EXPECT_LE(seconds, before * (1 + 1e-12)) << where() << ": more memory is slower";
        before = seconds;
      }
      if (least_ > 1) too_little(least_ - 1);
      if (least_ > 2 && seed_ % 8 == 0)
        too_little(1 + static_cast<int64_t>(random() % static_cast<uint64_t>(least_ - 1)));
    } catch (const std::exception& e) {
      ADD_FAILURE() << where() << ": " << e.what();
    }
  }
  int64_t plans() const { return plans_; }

 private:
  std::string where() const { return cat("seed ", seed_, ", budget ", p_.budget_bytes); }

  Plan plan_at(int64_t budget) {
    p_.budget_bytes = budget;
    Plan plan = solve(p_);
    ++plans_;
    EXPECT_EQ(violation(p_, plan), "") << where();
    EXPECT_EQ(broken_policy(p_, index_, plan), "") << where();
    if (budget > 0) EXPECT_LE(plan.arena_bytes, budget) << where();
    return plan;
  }

  // What is named for a budget of one byte.
  int64_t smallest() {
    p_.budget_bytes = 1;
    try {
      return solve(p_).arena_bytes;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kOverBudget) << where() << ": " << e.what();
      return e.fault() ? static_cast<int64_t>(e.fault()->smallest_budget_bytes) : 0;
    }
  }

  void too_little(int64_t budget) {
    p_.budget_bytes = budget;
    try {
      solve(p_);
      ADD_FAILURE() << where() << ": accepted below the smallest budget " << least_;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kOverBudget) << where() << ": " << e.what();
      ASSERT_NE(e.fault(), nullptr) << where();
      EXPECT_EQ(static_cast<int64_t>(e.fault()->smallest_budget_bytes), least_) << where();
      EXPECT_EQ(static_cast<int64_t>(e.fault()->budget_bytes), budget) << where();
    }
  }

  uint32_t seed_;
  Problem p_;
  Index index_;
  int64_t least_ = 0, unlimited_ = 0, plans_ = 0;
};

TEST(Sweep, EveryPlanIsValidAndMoreMemoryIsNeverSlower) {
  const auto [first, count] = cases(120);
  int64_t plans = 0;
  for (uint32_t seed = first; seed - first < count; ++seed) {
    Sweep sweep(seed);
    sweep.run();
    plans += sweep.plans();
    say_progress(seed - first + 1, count);
  }
  std::printf("%u problems, %ld plans\n", count, static_cast<long>(plans));
  EXPECT_GT(plans, count);
}

}  // namespace
}  // namespace cairn::plan
