#include "runtime/plan/search/fewer_copies.h"

#include "tests/runtime/plan/retention_points.h"

namespace cairn::plan {
namespace {

constexpr int64_t kBlock = 6400;

Problem linked_chain(double rate) {
  Problem p = chain(12, kBlock);
  p.links.push_back({"host", 0, rate, rate, 1, 1 << 20});
  return p;
}

// Everything that may leave, sent.
Fit all_sent(Search& s) {
  Candidate c{s.rules.base, {}, {}};
  for (size_t v = 0; v < s.p.values.size(); ++v)
    if (const int32_t g = s.rules.across[v]; g >= 0 && s.rules.free[g]) c.retention_points[g] = over_link(0);
  c.cost = s.evaluate(c.retention_points, c.pace, s.sequence);
  return {s.lay_out(c, INT64_MAX), c};
}

int copies(const Plan& plan) {
  return static_cast<int>(std::count_if(plan.steps.begin(), plan.steps.end(),
                                        [](const Step& s) { return s.kind == StepKind::kOut; }));
}

TEST(FewerCopies, WhatFitsIsNotSent) {
  const Problem p = linked_chain(100 * kBlock);
  Search s(p, true);
  const Fit sent = all_sent(s);
  ASSERT_GT(copies(sent.plan), 9);
  const Fit kept = with_fewer_copies(s, sent, INT64_MAX);
  EXPECT_EQ(copies(kept.plan), 0);
  EXPECT_EQ(kept.plan.predicted_seconds, sent.plan.predicted_seconds);
  const int64_t room = p.persistent_bytes() + 10 * kBlock;  // of 13 blocks
  const Fit some = with_fewer_copies(s, sent, room);
  EXPECT_LE(some.plan.arena_bytes, room);
  EXPECT_EQ(copies(some.plan), 3);
  EXPECT_EQ(some.plan.predicted_seconds, sent.plan.predicted_seconds);
}

// A faster plan is the search's to find: it has to hold under larger budgets as well.
TEST(FewerCopies, SecondsStayAsTheyAre) {
  const Problem p = linked_chain(kBlock / 8.);
  Search s(p, true);
  const Fit sent = all_sent(s);
  const Fit kept = with_fewer_copies(s, sent, INT64_MAX);
  EXPECT_EQ(kept.plan.predicted_seconds, sent.plan.predicted_seconds);
}

TEST(FewerCopies, SolvedPlansSendNoMoreThanTheBudgetAsksFor) {
  Problem p = linked_chain(2 * kBlock);
  p.budget_bytes = p.persistent_bytes() + 10 * kBlock;
  const Plan plan = solve(p);
  EXPECT_EQ(violation(p, plan), "");
  EXPECT_EQ(plan.predicted_seconds, plan.keep_all_seconds);
  EXPECT_EQ(plan.totals.offload_bytes[0], 3 * kBlock);
}

}  // namespace
}  // namespace cairn::plan
