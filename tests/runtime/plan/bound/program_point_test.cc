#include "runtime/plan/bound/program_point.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/runtime/plan/make_problem.h"
#include "tests/runtime/plan/subsets.h"
#include "tests/support/seeds.h"

namespace cairn::plan {
namespace {

// Beside the loss's own 2 blocks a1..a4 want a place and have room for 2.5.
TEST(ProgramPoint, SharesAndWholeOps) {
  const Problem p = chain(5);
  const Index index(p);
  ProgramPoint point(p, index, 5, index.forward_seconds, 128 + 4 * 6400 + 3200);
  const ProgramPoint::Answer answer = point.solve();
  EXPECT_NEAR(answer.seconds, 1.5, 1e-9);
  EXPECT_NEAR(point.byte_price(), 1.0 / 6400, 1e-9);
  EXPECT_NEAR(point.remake_price(answer), 1.0 / 6400, 1e-9);
  EXPECT_NEAR(point.solve_whole(1'000'000), 2, 1e-9);
}

// A link that takes one block in forward's 5 s; a slow way back makes time behind the program point worth
// something.
TEST(ProgramPoint, CopiesHideBehindOpsMadeAgain) {
  Problem p = chain(5);
  p.links.push_back({"host", 0, 6400 / 5.0, 1e9, 1, 1 << 20});
  const Index index(p);
  const int64_t budget = 128 + 3 * 6400;  // 1 block for 4
  EXPECT_NEAR(ProgramPoint(p, index, 5, index.forward_seconds, budget).solve().seconds, 2, 1e-9);
  // Behind the program point 11 + e seconds bring back (11 + e) / 10 blocks: 4 - 1 - 1.1 - e / 10 = e made
  // again.
  p.links[0] = {"host", 0, 1e9, 640, 1, 1 << 20};
  ProgramPoint slow(p, index, 5, index.forward_seconds, budget);
  const ProgramPoint::Answer answer = slow.solve();
  EXPECT_NEAR(answer.seconds, 1.9 / 1.1, 1e-9);
  EXPECT_NEAR(answer.available, (1 + (11 + 1.9 / 1.1) / 10) * 6400, 1e-3);
  EXPECT_NEAR(slow.byte_price(), 1 / 6400.0 / 1.1, 1e-9);
  EXPECT_NEAR(slow.remake_price(answer), 1 / 6400.0, 1e-9);
}

// Whole ops: the best of all sets that fit. In shares: never above that.
TEST(ProgramPoint, IsTheBestOfAllSetsThatFit) {
  for (const uint32_t seed : support::seeds(200)) {
    const Problem p = random_problem(seed, {4, false, false});
    const Index index(p);
    std::mt19937 random(seed);
    double before = 0;
    for (int32_t at = 1; at < static_cast<int32_t>(p.ops.size()); ++at) {
      before += p.ops[at - 1].seconds;
      const auto budget =
          static_cast<int64_t>(index.persistent_bytes + random() % 100 * p.values[2].bytes / 10);
      const Closure closure(p, index, at);
      const auto room = static_cast<double>(budget - index.persistent_bytes - p.ops[at].workspace_bytes -
                                            closure.busy_bytes());
      double least = std::numeric_limits<double>::infinity();
      for_each_subset(p, index, at, [&](uint32_t, double seconds, double bytes) {
        if (bytes <= room) least = std::min(least, seconds);
      });
      if (least == std::numeric_limits<double>::infinity()) continue;
      // A link so fast that its tier is just more room: the same, found by branching instead of by option
      // sets.
      const auto tier = static_cast<int64_t>(random() % 50);
      Problem linked = p;
      linked.links = {{"host", 0, 1e30, 1e30, 1, tier}};
      const double branched = ProgramPoint(linked, index, at, before, budget - tier).solve_whole(100'000'000);
      ProgramPoint point(p, index, at, before, budget);
      const double shares = point.solve().seconds, whole = point.solve_whole(100'000'000);
      const double slack = 1e-9 * (1 + least);
      ASSERT_LE(shares, whole + slack) << seed;
      ASSERT_NEAR(whole, least, slack) << seed;
      ASSERT_NEAR(branched, least, slack) << seed;
    }
  }
}

}  // namespace
}  // namespace cairn::plan
