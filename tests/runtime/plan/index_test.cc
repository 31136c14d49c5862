#include "runtime/plan/index.h"

#include <gtest/gtest.h>

#include "make_problem.h"

namespace cairn::plan {
namespace {

TEST(Index, KnowsMakersReadersAndTheLastForwardUse) {
  Problem p = chain(2);
  p.ops[1].inputs.push_back(p.ops[1].inputs[0]);  // f2 reads a1 twice
  const Index index(p);
  EXPECT_EQ(index.maker[1], 0);
  EXPECT_EQ(index.maker[0], -1);
  EXPECT_EQ(std::vector<int32_t>(index.readers[1].begin(), index.readers[1].end()),
            (std::vector<int32_t>{1, 3}));
  EXPECT_EQ(index.inputs[1].size(), 1u);
  EXPECT_EQ(index.inputs[0].size(), 0u);  // persistent
  EXPECT_EQ(index.last_forward[1], 1);
  EXPECT_EQ(index.first_backward[1], 3);
  EXPECT_TRUE(index.saved(1, p.backward_begin));
  EXPECT_FALSE(index.saved(3, p.backward_begin));  // made by backward
  p.regions = {{"r", -1, Policy::kKeep, -1}, {"r/s", 0, Policy::kPlannerDecides, -1}};
  EXPECT_EQ(Index(p).scope[1], 0);
  p.regions[0].policy = Policy::kPlannerDecides;
  EXPECT_EQ(Index(p).scope[1], -1);
  EXPECT_DOUBLE_EQ(index.forward_seconds, 2);
  EXPECT_DOUBLE_EQ(index.total_seconds, 7);
}

}  // namespace
}  // namespace cairn::plan
