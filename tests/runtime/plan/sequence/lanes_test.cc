#include "runtime/plan/sequence/lanes.h"

#include <gtest/gtest.h>

namespace cairn::plan {
namespace {

TEST(Lanes, CopiesOfOneWayFollowEachOther) {
  Lanes lanes({"host", 1, 10, 20, 1, 0});
  const int32_t a = lanes.issue(Lanes::kOut, 100, 0), b = lanes.issue(Lanes::kOut, 50, 2);
  EXPECT_DOUBLE_EQ(lanes.finish(Lanes::kOut, b), 11 + 1 + 5);
  EXPECT_DOUBLE_EQ(lanes.end(Lanes::kOut, a), 11);
  EXPECT_DOUBLE_EQ(lanes.begin(Lanes::kOut, b), 11);
  EXPECT_DOUBLE_EQ(lanes.last_end(), 17);
}

// Out: 100 bytes at 10/s from 0. In: 40 bytes at 20/s from 2, both at half speed while both transfer: in ends
// at 6, after which out has 100 - 20 - 20 = 60 bytes left.
TEST(Lanes, BothWaysAtOnceSlowEachOther) {
  Lanes lanes({"host", 0, 10, 20, .5, 0});
  const int32_t out = lanes.issue(Lanes::kOut, 100, 0), in = lanes.issue(Lanes::kIn, 40, 2);
  EXPECT_DOUBLE_EQ(lanes.finish(Lanes::kIn, in), 6);
  EXPECT_DOUBLE_EQ(lanes.finish(Lanes::kOut, out), 12);
}

TEST(Lanes, ACopyInItsLatencySlowsNoOther) {
  Lanes lanes({"host", 3, 10, 10, .5, 0});
  const int32_t out = lanes.issue(Lanes::kOut, 20, 0), in = lanes.issue(Lanes::kIn, 20, 2);
  EXPECT_DOUBLE_EQ(lanes.finish(Lanes::kOut, out), 5);  // transfers from 3 to 5; in is latent until 5
  EXPECT_DOUBLE_EQ(lanes.finish(Lanes::kIn, in), 7);
}

TEST(Lanes, EndsBecomeKnownAsTimeAdvances) {
  Lanes lanes({"host", 0, 10, 10, 1, 0});
  const int32_t copy = lanes.issue(Lanes::kOut, 100, 0);
  lanes.advance(9);
  EXPECT_EQ(lanes.end(Lanes::kOut, copy), Lanes::kNever);
  lanes.advance(10.5);
  EXPECT_DOUBLE_EQ(lanes.end(Lanes::kOut, copy), 10);
  EXPECT_DOUBLE_EQ(lanes.finish(Lanes::kIn, lanes.issue(Lanes::kIn, 0, 11)), 11);
}

}  // namespace
}  // namespace cairn::plan
