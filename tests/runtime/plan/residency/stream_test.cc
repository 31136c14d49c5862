#include "runtime/plan/residency/stream.h"

#include <gtest/gtest.h>

#include <set>

#include "runtime/plan/cache.h"
#include "tests/runtime/plan/make_problem.h"
#include "tests/support/seeds.h"

namespace cairn::plan {
namespace {

// A chain of n layers, each with a weight that lives at home, in a tier that has room for nothing else. An op of its own
// changes all weights: before the first layer (a deferred update), or behind the loss.
Problem updated(int n, bool before) {
  Problem p = chain(n, 6400);
  p.links.push_back({"host", 0, 1e7, 1e7, 1, int64_t{640} * n});
  Op update;
  update.name = "update";
  update.seconds = 1;
  update.recomputable = false;
  for (int i = 1; i <= n; ++i) {
    const auto w = static_cast<int32_t>(p.values.size());
    p.values.push_back({"w" + std::to_string(i), 640, false, 0});
    p.ops[static_cast<size_t>(i) - 1].inputs.push_back(w);
    update.inputs.push_back(w);
    update.outputs.push_back(w);
  }
  p.ops.insert(before ? p.ops.begin() : p.ops.begin() + n + 1, update);
  p.backward_begin += before;
  check(p);
  return p;
}

std::vector<int32_t> stale(const Problem& p, const std::vector<int32_t>& runs) {
  Plan plan;
  for (const int32_t op : runs) {
    Step& step = plan.steps.emplace_back();
    step.kind = StepKind::kRun;
    step.index = op;
  }
  return stale_runs(p, plan);
}

TEST(Stream, OnlyAChangeByALaterOpMakesARunStale) {
  enum : int32_t { kUpdate, kF1, kF2, kLoss, kB2, kB1 };
  EXPECT_EQ(stale(updated(2, true), {kUpdate, kF1, kF2, kLoss, kF1, kB2, kF1, kB1}), std::vector<int32_t>());
  enum : int32_t { f1, f2, loss, update, b2, b1 };
  EXPECT_EQ(stale(updated(2, false), {f1, f2, f1, loss, update, b2, b1}), std::vector<int32_t>());
  EXPECT_EQ(stale(updated(2, false), {f1, f2, loss, update, b2, f1, b1}), std::vector<int32_t>{f1});
}

// Two uses of each weight: kept between them or not. What keeps no gap more is taken from what was streamed before.
TEST(Stream, WhatKeepsNothingMoreIsTheSame) {
  const Problem p = resolve_homes(updated(6, true), std::vector<bool>(updated(6, true).values.size(), true));
  Problem without = without_homes(p);
  without.budget_bytes = 0;
  const Plan plan = solve(without);
  const int64_t all = int64_t{1} << 30;
  const Streamed none = stream_homes(p, plan, {all, 0}), kept = stream_homes(p, plan, {all, 1e9});
  EXPECT_GT(kept.kept, none.kept);
  EXPECT_LT(kept.steps.size(), none.steps.size());
  for (const double keep : {0.0, .5, 2.0, 1e9}) {
    const Streamed fresh = stream_homes(p, plan, {all, keep}),
                   after = stream_homes(p, plan, {all, keep}, &none);
    EXPECT_EQ(after.seconds, fresh.seconds) << keep;
    EXPECT_EQ(after.kept, fresh.kept) << keep;
    ASSERT_EQ(after.steps.size(), fresh.steps.size()) << keep;
    for (size_t s = 0; s < fresh.steps.size(); ++s) {
      EXPECT_EQ(after.steps[s].kind, fresh.steps[s].kind) << keep;
      EXPECT_EQ(after.steps[s].index, fresh.steps[s].index) << keep;
    }
  }
}

// A value that is sent to one tier, and later to another, comes back from where it is.
TEST(Stream, WhatGoesToTwoTiersComesBackFromEach) {
  Problem p;
  p.links = {{"host", 0, 100, 100, 1, 1000}, {"disk", 0, 10, 10, 1, 1000}};
  p.values = {{"w", 10, false, 0}, {"a", 20}, {"b", 20}, {"c", 20}, {"d", 20}, {"e", 20}};
  enum : int32_t { w, a, b, c, d, e };
  p.ops = {{"f", 1, 0, {w}, {a}, false},
           {"g", 1, 0, {}, {b}},
           {"h", 1, 0, {a, w}, {c}},
           {"k", 1, 0, {}, {d}},
           {"m", 1, 0, {a, w}, {e}}};
  Plan plan;
  const auto add = [&](StepKind kind, int32_t index, int32_t tier = -1) {
    Step& step = plan.steps.emplace_back();
    step.kind = kind;
    step.index = index;
    step.tier = tier;
  };
  for (int32_t op = 0; op < 5; ++op) {
    if (op > 0 && op % 2 == 0) {  // back from the host, and then from the disk
      add(StepKind::kIn, a, op / 2 - 1);
      add(StepKind::kWaitIn, a);
    }
    add(StepKind::kRun, op);
    if (op % 2 > 0 || op == 4) continue;
    add(StepKind::kOut, a, op / 2);
    add(StepKind::kWaitOut, a);
    add(StepKind::kFree, a);
  }
  for (const double keep : {0.0, 1e9})
    for (const int64_t capacity : {0, 60, 1000}) {
      plan.home_offsets = {0, -1, -1, -1, -1, -1};
      std::vector<std::set<int32_t>> held(p.values.size());
      held[w] = {0};
      std::set<int32_t> here;
      for (const Step& step : stream_homes(p, plan, {capacity, keep}).steps) {
        const auto v = static_cast<size_t>(step.index);
        if (step.kind == StepKind::kRun) {
          for (const int32_t u : p.ops[v].inputs) EXPECT_TRUE(here.contains(u)) << p.ops[v].name;
          here.insert(p.ops[v].outputs.begin(), p.ops[v].outputs.end());
        } else if (step.kind == StepKind::kOut) {
          EXPECT_TRUE(held[v].insert(step.tier).second) << p.values[v].name;
        } else if (step.kind == StepKind::kIn) {
          EXPECT_TRUE(held[v].contains(step.tier)) << p.values[v].name << ", of " << capacity << " bytes";
          here.insert(step.index);
        } else if (step.kind == StepKind::kFree) {
          EXPECT_EQ(here.erase(step.index), 1u) << p.values[v].name;
        }
      }
    }
}

TEST(Stream, WhatReadsADeferredUpdateRunsAgain) {
  Problem p = updated(12, true);
  const int64_t least = smallest_budget(p);
  EXPECT_LT(least, 8 * 6400) << "of 12 that forward makes";
  EXPECT_GT(smallest_budget(updated(12, false)), 12 * 6400)
      << "behind the update nothing of forward runs again";
  for (const int64_t more : support::cases<int64_t>({0, 3 * 6400}, 2)) {
    p.budget_bytes = least + more;
    const Plan plan = solve(p);
    EXPECT_EQ(violation(p, plan), "");
    EXPECT_GT(plan.predicted_seconds, plan.keep_all_seconds) << "nothing runs again";
  }
}

}  // namespace
}  // namespace cairn::plan
