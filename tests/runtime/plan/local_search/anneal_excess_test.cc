#include <gtest/gtest.h>

#include <string>

#include "runtime/plan/search/search.h"
#include "tests/runtime/plan/make_problem.h"

namespace cairn::plan {
namespace {

// Several crowded places, one like the other: layers whose ops all read the op between them and are read by the next one.
Problem crowded(int places) {
  Maker maker;
  maker.value("x", 64, true);
  std::string before = "x";
  for (int k = 0; k < places; ++k) {
    std::vector<std::string> made;
    for (int i = 0; i < 6; ++i) {
      made.push_back("v" + std::to_string(k) + "_" + std::to_string(i));
      maker.value(made.back(), 64 * (1 + i % 3));
      maker.op("f" + made.back(), 1 + i % 2, {before}, {made.back()});
    }
    // The first three are read twice, far apart: one of them may be made again in between.
    for (int i = 0; i < 3; ++i) {
      const std::string sum = "s" + std::to_string(k) + "_" + std::to_string(i);
      maker.value(sum, 64);
      maker.op("g" + sum, 1, {made[i], made[5 - i]}, {sum});
      made.push_back(sum);
    }
    before = "e" + std::to_string(k);
    maker.value(before, 64);
    maker.op("h" + before, 1, {made[0], made[6], made[7], made[8]}, {before});
  }
  maker.backward_begin();
  return maker.p;
}

TEST(AnnealExcess, RelievesManyPlacesThatAreAsFull) {
  const Problem p = crowded(12);
  Search search(p, false);
  search.restart();
  const Candidate all = search.archive.plans().begin()->second;
  const int64_t least = least_bytes(p, search.index), budget = all.cost.peak_bytes - 128;
  ASSERT_LT(least, budget);
  search.local_search.anneal_excess(all, budget, 4'000'000);
  const Candidate* found = search.archive.within(budget);
  ASSERT_NE(found, nullptr);
  const double seconds = found->cost.seconds;
  const Cost again = search.evaluate(found->retention_points, found->pace, search.sequence);
  EXPECT_EQ(again.seconds, seconds);
  EXPECT_LE(again.peak_bytes, budget);
  search.restart();
  search.local_search.anneal_excess(all, budget, 4'000'000);
  ASSERT_NE(search.archive.within(budget), nullptr);
  EXPECT_EQ(search.archive.within(budget)->cost.seconds, seconds);
}

// From a plan that fits and makes everything again, with prices that adapt: faster, and the same each time.
TEST(AnnealExcess, GoesOnFromAPlanThatIsSlow) {
  const Problem p = crowded(12);
  Search search(p, false);
  search.restart();
  const Candidate all = search.archive.plans().begin()->second;
  const int64_t budget = all.cost.peak_bytes - 128;
  Candidate slow = all;
  for (size_t g = 0; g < slow.retention_points.size(); ++g)
    if (search.rules.free[g]) slow.retention_points[g] = kNever;
  slow.cost = search.evaluate(slow.retention_points, slow.pace, search.sequence);
  ASSERT_TRUE(slow.cost.valid);
  double before = 0;
  for (int time = 0; time < 2; ++time) {
    search.restart();
    search.local_search.anneal_excess(slow, budget, 2'000'000, LocalSearch::kAdaptive);
    const Candidate* found = search.archive.within(budget);
    ASSERT_NE(found, nullptr);
    EXPECT_LT(found->cost.seconds, slow.cost.seconds);
    if (time > 0) EXPECT_EQ(found->cost.seconds, before);
    before = found->cost.seconds;
  }
}

// A budget that falls with what fits comes lower than one that is as low at once, and not below what an op needs.
TEST(AnnealExcess, FallsFarBelowEverythingKept) {
  const Problem p = crowded(12);
  Search search(p, false);
  search.restart();
  const Candidate all = search.archive.plans().begin()->second;
  const int64_t least = least_bytes(p, search.index);
  search.local_search.anneal_excess(all, least, 4'000'000, LocalSearch::kFalling);
  const int64_t lowest = search.archive.plans().begin()->first;
  EXPECT_GE(lowest, least);
  EXPECT_LT(lowest, all.cost.peak_bytes - 128);
  // And down to a budget between the two.
  search.restart();
  const int64_t budget = lowest + (all.cost.peak_bytes - lowest) / 2;
  search.local_search.anneal_excess(all, budget, 4'000'000, LocalSearch::kFalling);
  EXPECT_NE(search.archive.within(budget), nullptr);
}

// Without anything that may be made again there is nothing to do.
TEST(AnnealExcess, LeavesWhatMayNotRunAgain) {
  Problem p = crowded(2);
  for (Op& op : p.ops) op.recomputable = false;
  Search search(p, false);
  search.restart();
  const Candidate all = search.archive.plans().begin()->second;
  search.local_search.anneal_excess(all, all.cost.peak_bytes / 2, 100'000);
  EXPECT_EQ(search.archive.plans().begin()->first, all.cost.peak_bytes);
}

}  // namespace
}  // namespace cairn::plan
