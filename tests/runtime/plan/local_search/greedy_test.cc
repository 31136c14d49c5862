#include "runtime/plan/local_search/greedy.h"

#include <gtest/gtest.h>

#include "runtime/plan/search/search.h"
#include "tests/runtime/plan/make_problem.h"

namespace cairn::plan {
namespace {

// The fastest plan of greedy eviction within the budget; nullptr if there is none.
const Candidate* greedy_within(Search& search, int64_t budget) {
  search.restart();
  Greedy(search.p, search.index, search.intervals, search.rules, search.evaluate, search.archive)
      .run(budget, 1'000'000);
  return search.archive.within(budget);
}

// Of equal bytes, what takes least to recompute is evicted.
TEST(Greedy, EvictsWhatIsCheapForItsBytes) {
  Problem p = chain(12);
  for (size_t o = 0; o < 12; ++o) p.ops[o].seconds = o % 3 == 0 ? 1 : 10;
  Search search(p, false);
  const int64_t budget = keep_all_arena(p) - 3 * 6400;
  const Candidate* found = greedy_within(search, budget);
  ASSERT_NE(found, nullptr);
  EXPECT_LE(found->cost.peak_bytes, budget);
  EXPECT_DOUBLE_EQ(found->cost.seconds, search.index.total_seconds + 3);
}

// One large value frees as much as four small ones, for a quarter of the seconds.
TEST(Greedy, PrefersOneLargeValueToManySmallOnes) {
  Problem p = chain(10);
  p.values[1].bytes *= 4;
  Search search(p, false);
  const Candidate* found = greedy_within(search, keep_all_arena(p) - 4 * 6400);
  ASSERT_NE(found, nullptr);
  EXPECT_DOUBLE_EQ(found->cost.seconds, search.index.total_seconds + 1);
}

TEST(Greedy, FindsNothingWhereNothingMayRunAgain) {
  Problem p = chain(8);
  for (Op& op : p.ops) op.recomputable = false;
  Search search(p, false);
  EXPECT_EQ(greedy_within(search, keep_all_arena(p) - 1), nullptr);
}

// With and without a backward half, whatever the budget: what it adds are plans that price as it says.
TEST(Greedy, PlansOfRandomProblemsArePlans) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    const Problem p = random_problem(seed, {.links = false});
    Search search(p, false);
    const int64_t least = least_bytes(p, search.index), most = keep_all_arena(p);
    const Candidate* found = greedy_within(search, least + (most - least) / 2);
    if (!found) continue;
    const Candidate c = *found;
    const Cost again = search.evaluate(c.retention_points, c.pace, search.sequence);
    EXPECT_EQ(again.seconds, c.cost.seconds) << seed;
    EXPECT_EQ(again.peak_bytes, c.cost.peak_bytes) << seed;
  }
}

}  // namespace
}  // namespace cairn::plan
