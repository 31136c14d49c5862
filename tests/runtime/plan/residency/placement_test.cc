#include "runtime/plan/residency/placement.h"

#include <gtest/gtest.h>

#include "tests/runtime/plan/make_problem.h"
#include "tests/support/seeds.h"

namespace cairn::plan {
namespace {

// A chain whose ops each read a weight and change a state, all at home.
Problem streaming(int n, int64_t activation, int64_t weight) {
  Problem p = chain(n, activation);
  p.links.push_back({"host", 0, 2000, 1000, 1, int64_t{1} << 40});
  for (int i = 0; i < n; ++i) {
    const auto w = static_cast<int32_t>(p.values.size());
    p.values.push_back({"w" + std::to_string(i), weight, true, 0, 0.25});
    p.values.push_back({"s" + std::to_string(i), weight, true, 0});
    Op& backward = p.ops[p.ops.size() - 1 - static_cast<size_t>(i)];
    backward.recomputable = false;
    backward.inputs.insert(backward.inputs.end(), {w, w + 1});
    backward.outputs.push_back(w + 1);
  }
  check(p);
  return p;
}

TEST(Placement, CountsWhatCrossesTheLinkAtLeastOnce) {
  const Problem p = streaming(3, 64, 6400);
  const Placement all(p, std::vector<bool>(p.values.size(), true));
  EXPECT_DOUBLE_EQ(all.link_seconds(), 6 * 6400 / 1000.0) << "three weights and three states come in";
  EXPECT_DOUBLE_EQ(all.home_seconds(), 3 * 0.25);
  const Placement none(p, std::vector<bool>(p.values.size(), false));
  EXPECT_EQ(none.link_seconds(), 0);
  EXPECT_EQ(none.home_seconds(), 0);
  EXPECT_EQ(none.least_bytes() - all.least_bytes(), 6 * 6400 - 2 * 6400) << "what one op uses";
}

TEST(Placement, NoPlanIsBelowItsBounds) {
  for (const uint32_t seed : support::seeds(10)) {
    std::mt19937 random(seed);
    const Problem p =
        streaming(3 + static_cast<int>(random() % 8), 64 * (1 + random() % 40), 64 * (1 + random() % 40));
    std::vector<bool> away(p.values.size());
    for (size_t v = 0; v < away.size(); ++v) away[v] = random() % 3 > 0;
    Placement placement(p, away);
    const Plan least = placement.smallest_without();
    EXPECT_GE(least.arena_bytes, placement.least_bytes());
    for (const int64_t more : {0, 640, 6400}) {
      const int64_t budget = least.arena_bytes + more;
      const std::optional<Plan> plan = placement.plan_without(budget, Effort::kWhole);
      ASSERT_TRUE(plan) << "seed " << seed;
      const Plan stalled = placement.stalled(*plan);
      EXPECT_LE(stalled.arena_bytes, budget);
      EXPECT_GE(stalled.predicted_seconds, placement.least_seconds(budget) * (1 - 1e-9)) << "seed " << seed;
      const double never = std::numeric_limits<double>::infinity();
      const Placement::Copies copies = placement.streamed(*plan, budget, 1e9, never, 0);
      if (!copies.plan) continue;
      EXPECT_GE(copies.seconds, placement.least_seconds(budget) * (1 - 1e-9)) << "seed " << seed;
      EXPECT_EQ(copies.seconds, copies.plan->predicted_seconds);
      // What is no faster than this is not laid out.
      const Placement::Copies slow = placement.streamed(*plan, budget, 1e9, copies.seconds, 0);
      EXPECT_FALSE(slow.plan);
      EXPECT_LE(slow.seconds, copies.seconds);
    }
  }
}

}  // namespace
}  // namespace cairn::plan
