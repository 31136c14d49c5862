#include "runtime/plan/residency/overflow.h"

#include <gtest/gtest.h>

#include "runtime/plan/residency/placement.h"
#include "runtime/plan/residency/stream.h"
#include "tests/runtime/plan/make_problem.h"

namespace cairn::plan {
namespace {

// Layers that each read a weight of their own, which comes from its home; fetching takes half as long as an op.
Problem fetching(int n) {
  Problem p = chain(n, 6400);
  p.links.push_back({"host", 0, 12800, 12800, 1, int64_t{1} << 40});
  for (int i = 0; i < n; ++i) {
    p.ops[static_cast<size_t>(i)].inputs.push_back(static_cast<int32_t>(p.values.size()));
    p.values.push_back({"w" + std::to_string(i), 6400, false, 0});
  }
  check(p);
  return p;
}

Plan plan_without(const Problem& resolved) {
  Problem without = without_homes(resolved);
  without.budget_bytes = 0;
  return solve(without);
}

TEST(Overflow, IsWhereABlockEndsAboveTheBudget) {
  Problem p;
  p.links = {{"host", 0, 100, 100, 1, 1000}};
  p.values = {{"w", 10, false, 0}, {"a", 20}, {"b", 20}};
  p.ops = {{"f", 1, 5, {0}, {1}}, {"g", 1, 0, {1}, {2}}};
  Plan with;
  const auto add = [&](StepKind kind, int32_t index, int64_t offset, std::vector<int64_t> offsets = {}) {
    Step& step = with.steps.emplace_back();
    step.kind = kind;
    step.index = index;
    step.offset = offset;
    step.offsets = std::move(offsets);
  };
  add(StepKind::kIn, 0, 40);        // ends at 50
  add(StepKind::kRun, 0, 0, {20});  // a ends at 40, the workspace at 5
  add(StepKind::kFree, 0, -1);
  add(StepKind::kRun, 1, -1, {40});  // b ends at 60, and stays
  const std::vector<int32_t> from = {0, 0, 1, 2};
  const auto reserved = [&](int64_t budget) {
    std::vector<int64_t> bytes = {0, 0, 0, 1};
    reserve_overflow(p, with, from, budget, bytes);
    return bytes;
  };
  EXPECT_EQ(reserved(60), (std::vector<int64_t>{0, 0, 0, 1}));
  EXPECT_EQ(reserved(52), (std::vector<int64_t>{0, 0, 8, 9}));
  EXPECT_EQ(reserved(45), (std::vector<int64_t>{5, 5, 15, 16}));
}

// Reserved bytes keep away what comes early, and nothing else: the ops find what they use.
TEST(Overflow, WhatIsReservedIsLeftFree) {
  const Problem p = fetching(6), resolved = resolve_homes(p, std::vector<bool>(p.values.size(), true));
  const Plan plan = plan_without(resolved);
  const int64_t all = int64_t{1} << 30;
  const auto early =
      [&](const std::vector<int64_t>& reserved) {  // per step of the plan: fetched for an op behind it
        std::vector<int64_t> bytes(plan.steps.size(), 0);
        const Streamed with = stream_homes(resolved, plan, {all, 0, reserved});
        EXPECT_EQ(with.from.size(), with.steps.size());
        std::vector<bool> waits(p.values.size());
        for (size_t i = 0; i < with.steps.size(); ++i) {
          const Step& step = with.steps[i];
          const auto s = static_cast<size_t>(with.from[i]);
          if (step.kind == StepKind::kIn) waits[static_cast<size_t>(step.index)] = true;
          if (step.kind != StepKind::kRun) continue;
          for (const int32_t v : p.ops[static_cast<size_t>(step.index)].inputs)
            waits[static_cast<size_t>(v)] = false;
          for (size_t v = 0; v < waits.size(); ++v)
            if (waits[v]) bytes[s] += p.values[v].bytes;
        }
        return bytes;
      };
  const std::vector<int64_t> free = early({});
  ASSERT_GT(*std::max_element(free.begin(), free.end()), 0);
  for (size_t s = 0; s < free.size(); ++s) {
    if (free[s] == 0) continue;
    std::vector<int64_t> reserved(free.size(), 0);
    reserved[s] = all;
    EXPECT_EQ(early(reserved)[s], 0) << "step " << s;
  }
}

}  // namespace
}  // namespace cairn::plan
