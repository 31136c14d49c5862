#include "runtime/plan/bound.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "make_problem.h"
#include "runtime/plan/layout.h"
#include "runtime/plan/schedule.h"

namespace cairn::plan {
namespace {

TEST(Bound, IsTheSumOfSecondsWithoutPressure) {
  const Problem p = chain(5);
  EXPECT_DOUBLE_EQ(lower_bound_seconds(p, Index(p), 0), 16);
  EXPECT_DOUBLE_EQ(lower_bound_seconds(p, Index(p), 1 << 30), 16);
}

// At the loss a1..a4 are read later besides a5 and g5: 6 blocks. Room for 4 leaves 2 to make again, 1 s each.
TEST(Bound, CountsWhatMustBeMadeAgain) {
  const Problem p = chain(5);
  EXPECT_NEAR(lower_bound_seconds(p, Index(p), 128 + 4 * 6400), 18, 1e-6);
  EXPECT_NEAR(lower_bound_seconds(p, Index(p), 128 + 4 * 6400 + 3200), 17.5, 1e-6);
}

// The same with a link that could take one block in forward's 5 s without a stall.
TEST(Bound, CountsWhatALinkCanTake) {
  Problem p = chain(5);
  p.links.push_back({"host", 0, 6400 / 5.0, 1e9, 1, 1 << 20});
  EXPECT_NEAR(lower_bound_seconds(p, Index(p), 128 + 4 * 6400), 17, 1e-6);
  p.links[0].capacity_bytes = 3200;
  EXPECT_NEAR(lower_bound_seconds(p, Index(p), 128 + 4 * 6400), 17.5, 1e-6);
}

// Every choice for every value, both paces: none beats the bound at the budget it happens to need.
TEST(Bound, NoPlanIsFaster) {
  EXPECT_TRUE(rc::check([](uint32_t seed) {
    const Problem p = random_problem(seed, {4, true, false});
    const Index index(p);
    std::vector<int32_t> free;
    for (size_t v = 0; v < p.values.size(); ++v)
      if (index.saved(static_cast<int32_t>(v), p.turnaround)) free.push_back(static_cast<int32_t>(v));
    if (free.size() > 4) free.resize(4);
    const auto kinds = static_cast<int>(p.links.size()) + 2;
    int total = 1;
    for (size_t k = 0; k < free.size(); ++k) total *= kinds;
    for (int code = 0; code < total; ++code) {
      Choices choices(p.values.size(), kKeepIt);
      for (int rest = code, k = 0; k < static_cast<int>(free.size()); ++k, rest /= kinds)
        choices[free[k]] = static_cast<Choice>(rest % kinds - 2);
      for (const Pace pace : {Pace{}, Pace{0}}) {
        const Schedule s = make_schedule(p, index, choices, pace);
        RC_ASSERT(lower_bound_seconds(p, index, std::max<int64_t>(1, s.peak_bytes)) <=
                  s.seconds * (1 + 1e-9));
      }
    }
  }));
}

}  // namespace
}  // namespace cairn::plan
