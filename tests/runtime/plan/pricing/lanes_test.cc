#include "runtime/plan/pricing/lanes.h"

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

// A link on which copies and compute have half of their speed beside each other.
Link busy_link() { return {"host", 0, 10, 10, 1, 0, .5, .5}; }

// 100 bytes at 5/s take compute's first 20 seconds, in which it does the work of 10; the other 10 it is alone.
TEST(Lanes, ComputeBesideACopyIsSlower) {
  std::vector<Lanes> lanes = {Lanes(busy_link())};
  const int32_t copy = lanes[0].issue(Lanes::kOut, 100, 0);
  EXPECT_DOUBLE_EQ(compute_end(lanes, 0, 20), 30);
  EXPECT_DOUBLE_EQ(lanes[0].end(Lanes::kOut, copy), 20);
}

// Compute of 4 seconds takes 8, in which 40 bytes go; the other 60 go at full speed.
TEST(Lanes, ACopyBesideComputeIsSlower) {
  std::vector<Lanes> lanes = {Lanes(busy_link())};
  const int32_t copy = lanes[0].issue(Lanes::kIn, 100, 0);
  EXPECT_DOUBLE_EQ(compute_end(lanes, 0, 4), 8);
  EXPECT_DOUBLE_EQ(lanes[0].finish(Lanes::kIn, copy), 14);
}

// Compute from 3 to 7: before, 30 of 60 bytes are there; 5/s for 6 seconds bring the others, in which compute does 3.
TEST(Lanes, ComputeThatBeginsInTheMidstOfACopy) {
  std::vector<Lanes> lanes = {Lanes(busy_link())};
  const int32_t copy = lanes[0].issue(Lanes::kIn, 60, 0);
  EXPECT_DOUBLE_EQ(compute_end(lanes, 3, 4), 10);
  EXPECT_DOUBLE_EQ(lanes[0].end(Lanes::kIn, copy), 9);
}

TEST(Lanes, LinksTakeFromComputeTogether) {
  std::vector<Lanes> lanes = {Lanes(busy_link()), Lanes({"disk", 0, 10, 10, 1, 0, .5, 1})};
  lanes[0].issue(Lanes::kOut, 1000, 0);
  lanes[1].issue(Lanes::kOut, 1000, 0);
  EXPECT_DOUBLE_EQ(compute_end(lanes, 0, 1), 4);
}

TEST(Lanes, WithoutCompetitionNothingIsSlower) {
  std::vector<Lanes> lanes = {Lanes({"host", 3, 10, 10, .5, 0})};
  const int32_t copy = lanes[0].issue(Lanes::kOut, 100, 0);
  EXPECT_EQ(compute_end(lanes, 0.1, 0.2), 0.1 + 0.2);
  EXPECT_DOUBLE_EQ(lanes[0].finish(Lanes::kOut, copy), 13);
}

// Sizes and times that are no round numbers: every one of many copies ends, and compute takes at least its seconds.
TEST(Lanes, ManySmallCopiesUnderCompute) {
  std::vector<Lanes> lanes = {Lanes({"host", 1e-7, 3.1e9, 2.9e9, .7, 0, .61, .37})};
  double now = 0, sum = 0;
  std::vector<int32_t> copies;
  for (int i = 0; i < 2000; ++i) {
    copies.push_back(lanes[0].issue(i % 3 == 0 ? Lanes::kIn : Lanes::kOut, 1 + i * 977 % 100'003, now));
    const double seconds = 1e-6 * (1 + i * 7 % 13);
    const double end = compute_end(lanes, now, seconds);
    EXPECT_GE(end, now + seconds * (1 - 1e-9));
    EXPECT_LE(end, now + seconds / .61 * (1 + 1e-9));
    now = end;
    sum += seconds;
  }
  lanes[0].advance(Lanes::kNever);
  EXPECT_GT(now, sum);
  EXPECT_LT(lanes[0].last_end(), Lanes::kNever);
}

}  // namespace
}  // namespace cairn::plan
