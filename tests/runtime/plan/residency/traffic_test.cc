#include "runtime/plan/residency/traffic.h"

#include <gtest/gtest.h>

#include "runtime/plan/cache.h"
#include "runtime/plan/residency/residence.h"
#include "tests/runtime/plan/make_problem.h"
#include "tests/support/seeds.h"

namespace cairn::plan {
namespace {

// A chain of n ops, each with a weight that its forward and its backward read, and a gradient that backward adds to.
Problem training(int n, int64_t activation, int64_t weight, double both_ways = 1) {
  Problem p = chain(n, activation);
  p.links.push_back({"host", 0, 2000, 1000, both_ways, int64_t{1} << 40});
  for (int i = 0; i < n; ++i) {
    const auto w = static_cast<int32_t>(p.values.size());
    p.values.push_back({"w" + std::to_string(i), weight, true, 0});
    p.values.push_back({"dw" + std::to_string(i), weight, true, 0});
    p.ops[static_cast<size_t>(i)].inputs.push_back(w);
    p.ops[static_cast<size_t>(i)].recomputable = false;
    Op& backward = p.ops[p.ops.size() - 1 - static_cast<size_t>(i)];
    backward.recomputable = false;
    backward.inputs.insert(backward.inputs.end(), {w, w + 1});
    backward.outputs.push_back(w + 1);
  }
  check(p);
  return p;
}

Problem all_away(const Problem& p) { return resolve_homes(p, std::vector<bool>(p.values.size(), true)); }

std::vector<bool> all(const Problem& p) { return std::vector<bool>(p.values.size(), true); }

TEST(Traffic, WhatMayNotStayComesAndGoesWhateverTheBudget) {
  const Problem p = all_away(training(3, 64, 6400));
  std::vector<bool> one(p.values.size(), false);
  one[p.values.size() - 1] = true;  // a gradient
  EXPECT_DOUBLE_EQ(least_link_seconds(p, 1 << 30, one), 5 * 6400 / 1000.0);
}

TEST(Traffic, WhatBackwardReadsAgainComesTwiceButForWhatFits) {
  const Problem p = all_away(training(3, 64, 6400));
  EXPECT_DOUBLE_EQ(least_link_seconds(p, 0, {}), 6 * 6400 / 1000.0) << "weights and gradients, each once";
  EXPECT_DOUBLE_EQ(least_link_seconds(p, 6400, {}), (6 + 2) * 6400 / 1000.0)
      << "one weight is held over the turn";
  EXPECT_DOUBLE_EQ(least_link_seconds(p, 6400, all(p)), (5 + 2) * 6400 / 1000.0)
      << "one value need not come at all";
  EXPECT_EQ(least_link_seconds(p, 0, all(p)), 0);
}

TEST(Traffic, DirectionsThatShareALinkTakeLonger) {
  const double in = 6 * 6400 / 1000.0, out = 3 * 6400 / 2000.0;
  EXPECT_DOUBLE_EQ(least_link_seconds(all_away(training(3, 64, 6400, 1)), 0, {}), in);
  EXPECT_DOUBLE_EQ(least_link_seconds(all_away(training(3, 64, 6400, 0.8)), 0, {}), in + out * 0.25);
  EXPECT_DOUBLE_EQ(least_link_seconds(all_away(training(3, 64, 6400, 0.4)), 0, {}), in + out)
      << "one after the other";
}

TEST(Traffic, NoPlanIsFaster) {
  for (const uint32_t seed : support::seeds(20)) {
    std::mt19937 random(seed);
    const Problem p = training(2 + static_cast<int>(random() % 7), 64 * (1 + random() % 40),
                               64 * (1 + random() % 40), 0.3 + 0.1 * static_cast<double>(random() % 8));
    SolverCache cache;
    Plan plan = cache.smallest(p);
    const int64_t least = plan.arena_bytes;
    for (const int64_t more : {0, 640, 6400, 64000}) {
      const std::optional<Plan> found = cache.solve_within(p, least + more);
      ASSERT_TRUE(found) << "seed " << seed;
      EXPECT_GE(found->predicted_seconds, least_link_seconds(all_away(p), least + more, all(p)) * (1 - 1e-9))
          << "seed " << seed;
      EXPECT_GE(found->predicted_seconds, found->bound_seconds * (1 - 1e-9)) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace cairn::plan
