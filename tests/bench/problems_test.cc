#include "bench/plan/problems.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "runtime/base/error.h"
#include "runtime/plan/plan.h"

namespace cairn::bench {
namespace {

TEST(Problems, EveryKindIsSoundAndSolvable) {
  for (const auto& [kind, size] : std::vector<std::pair<std::string, int>>{{"chain", 1},
                                                                           {"chain", 40},
                                                                           {"transformer", 3},
                                                                           {"unet", 1},
                                                                           {"unet", 4},
                                                                           {"random", 2},
                                                                           {"random", 50}}) {
    const plan::Problem p = make_problem(kind, size);
    plan::check(p);
    EXPECT_LT(p.backward_begin, static_cast<int32_t>(p.ops.size()));
    EXPECT_EQ(plan::violation(p, plan::solve(p)), "") << kind << size;
  }
  EXPECT_THROW(make_problem("forest", 3), Error);
}

TEST(Problems, EveryWeightGetsAGradient) {
  for (const char* kind : {"chain", "transformer", "unet", "random"}) {
    const plan::Problem p = make_problem(kind, 6);
    std::set<std::string> names;
    for (const plan::Value& v : p.values) names.insert(v.name);
    int weights = 0;
    for (const std::string& name : names)
      if (name.ends_with(".weight")) {
        ++weights;
        EXPECT_TRUE(names.contains(name + ".grad")) << name;
      }
    EXPECT_GT(weights, 0) << kind;
  }
}

TEST(Problems, SizesGrowWithTheModel) {
  const plan::Problem p = transformer_problem({.layers = 10});
  EXPECT_EQ(p.backward_begin, 10 * 10 + 3);
  EXPECT_EQ(p.regions.size(), 10u);
  EXPECT_EQ(transformer_problem({.layers = 20}).backward_begin, 20 * 10 + 3);
  EXPECT_EQ(chain_problem(100).backward_begin, 101);
  EXPECT_EQ(random_problem(100, 4).backward_begin, 100);
}

TEST(Problems, TheSeedDecides) {
  EXPECT_EQ(plan::to_json(random_problem(30, 7)), plan::to_json(random_problem(30, 7)));
  EXPECT_NE(plan::to_json(random_problem(30, 7)), plan::to_json(random_problem(30, 8)));
  EXPECT_NE(plan::to_json(chain_problem(30, 1)), plan::to_json(chain_problem(30, 2)));
}

}  // namespace
}  // namespace cairn::bench
