#include "runtime/plan/structure/frontier.h"

#include "tests/runtime/plan/retention_points.h"

namespace cairn::plan {
namespace {

double best_by_table(const Planned& c, int64_t room, RetentionPoints* retention_points = nullptr) {
  const Stages stages(c.p, c.index);
  const OptionSets sets(c.p, c.index, c.intervals, c.rules, stages, -1, 48);
  double price = 0;
  const Chosen chosen = choose_options(c.p, stages, sets, room, -1, {}, 10'000'000, price);
  if (!chosen.found) return -1;
  if (retention_points) {
    *retention_points = c.rules.base;
    for (size_t s = 0; s < stages.all.size(); ++s) sets.apply(s, *chosen.options[s], *retention_points);
  }
  return chosen.seconds;
}

TEST(Frontier, ARoomyDeviceRunsNothingAgain) { EXPECT_EQ(best_by_table(Planned(chain(12)), 14 * 6400), 0); }

TEST(Frontier, NothingFitsInNothing) {
  EXPECT_EQ(best_by_table(Planned(chain(12)), 0), -1);
  EXPECT_EQ(best_by_table(Planned(chain(12)), 2 * 6400), -1);
}

// Of a chain, any subset of a1..a11 may be made again, once: the table finds what trying all of them finds.
TEST(Frontier, EqualsEverySubsetOfAChain) {
  Planned c(chain(10));
  Evaluator evaluate(c.p, c.index, c.intervals);
  Sequence sequence;
  for (int blocks = 6; blocks <= 11; ++blocks) {
    const int64_t room = blocks * 6400;
    double best = -1;
    for (uint32_t subset = 0; subset < 1u << 9; ++subset) {
      RetentionPoints t = c.rules.base;
      for (int v = 1; v <= 9; ++v)
        if (subset >> (v - 1) & 1) t[c.rules.across[v]] = c.p.backward_begin;
      const Cost cost = evaluate(t, {}, sequence);
      if (cost.peak_bytes - 128 <= room && (best < 0 || cost.seconds < best)) best = cost.seconds;
    }
    RetentionPoints found;
    const double seconds = best_by_table(c, room, &found);
    ASSERT_GE(seconds, 0) << blocks;
    const Cost cost = evaluate(found, {}, sequence);
    EXPECT_LE(cost.peak_bytes - 128, room) << blocks;
    EXPECT_DOUBLE_EQ(cost.seconds, best) << blocks;
    EXPECT_DOUBLE_EQ(c.index.total_seconds + seconds, best) << blocks;
  }
}

}  // namespace
}  // namespace cairn::plan
