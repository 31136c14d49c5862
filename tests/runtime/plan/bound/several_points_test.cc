#include "runtime/plan/bound/several_points.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runtime/plan/bound/bound.h"
#include "tests/runtime/plan/make_problem.h"
#include "tests/runtime/plan/optimum.h"
#include "tests/support/seeds.h"

namespace cairn::plan {
namespace {

// a is read behind each of so many ops that need all the room.
Problem squeezed(int times) {
  Maker m;
  m.value("in", 1, true).value("a", 100).op("make", 5, {"in"}, {"a"});
  for (int k = 0; k < times; ++k) {
    const std::string n = std::to_string(k);
    m.value("w" + n, 0).value("out" + n, 1, true);
    m.op("squeeze" + n, 1, {"in"}, {"w" + n}, 100).op("read" + n, 1, {"a"}, {"out" + n});
  }
  m.backward_begin();
  return m.p;
}

TEST(SeveralPoints, CountsWhatIsMadeAgainBehindEach) {
  const Problem p = squeezed(3);
  const Index index(p);
  const int64_t budget = index.persistent_bytes + 100;
  EXPECT_NEAR(lower_bound_seconds(p, index, budget) - index.total_seconds, 5, 1e-6);
  EXPECT_NEAR(optimum_seconds(p, index, budget) - index.total_seconds, 15, 1e-9);
  SeveralPoints two(p, index, {1, 3}, budget, 5);
  EXPECT_NEAR(two.raise(300), 10, 1e-2);
  SeveralPoints three(two, 5, budget);
  EXPECT_NEAR(three.seconds(), two.seconds(), 1e-9);
  EXPECT_NEAR(three.raise(300), 15, 1e-2);
  EXPECT_NEAR(several_points_bound_seconds(p, index, budget) - index.total_seconds, 15, 1e-2);
}

TEST(SeveralPoints, OneIsTheBoundOfThatPoint) {
  const Problem p = chain(5);
  const Index index(p);
  SeveralPoints one(p, index, {5}, 128 + 4 * 6400, 2);
  EXPECT_NEAR(one.raise(300), 2, 1e-3);
}

TEST(SeveralPoints, SaysNothingWithLinksOrWithoutPressure) {
  Problem p = squeezed(2);
  const Index index(p);
  EXPECT_DOUBLE_EQ(several_points_bound_seconds(p, index, 0), index.total_seconds);
  EXPECT_DOUBLE_EQ(several_points_bound_seconds(p, index, 1 << 20), index.total_seconds);
  p.links.push_back({"host", 0, 1e9, 1e9, 1, 1 << 20});
  EXPECT_DOUBLE_EQ(several_points_bound_seconds(p, Index(p), index.persistent_bytes + 100),
                   index.total_seconds);
}

// No plan at all is faster, whichever points are looked at.
TEST(SeveralPoints, IsBelowTheOptimum) {
  double single = 0, several = 0, optima = 0;
  for (const uint32_t seed : support::seeds(300)) {
    const Problem p = random_problem(seed, {5, false, false});
    const Index index(p);
    std::mt19937 random(seed);
    const int64_t least = min_bytes(p, index), most = max_bytes(p, index);
    for (int64_t k = 0; k < 4; ++k) {
      const int64_t budget = least + (most - least) * k / 5;
      const double optimum = optimum_seconds(p, index, budget);
      if (!std::isfinite(optimum)) continue;
      std::vector<int32_t> points;
      for (int32_t op = 1; op < static_cast<int32_t>(p.ops.size()); ++op)
        if (random() % 3 == 0) points.push_back(op);
      if (!points.empty()) {
        SeveralPoints some(p, index, points, budget, index.total_seconds);
        EXPECT_LE(index.total_seconds + some.raise(200), optimum * (1 + 1e-9)) << seed << " " << budget;
        // One by one, in any order: prices of before are of other rows then.
        std::shuffle(points.begin(), points.end(), random);
        SeveralPoints more(p, index, {points[0]}, budget, index.total_seconds);
        for (size_t next = 1; next < points.size(); ++next) {
          more.raise(60);
          more = SeveralPoints(more, points[next], budget);
        }
        EXPECT_LE(index.total_seconds + more.raise(60), optimum * (1 + 1e-9)) << seed << " " << budget;
      }
      const double bound = several_points_bound_seconds(p, index, budget);
      EXPECT_LE(bound, optimum * (1 + 1e-9)) << seed << " " << budget;
      const double one = lower_bound_seconds(p, index, budget);
      single += one - index.total_seconds;
      several += std::max(one, bound) - index.total_seconds;
      optima += optimum - index.total_seconds;
    }
  }
  EXPECT_GT(several, single);
  EXPECT_LE(several, optima);
}

}  // namespace
}  // namespace cairn::plan
