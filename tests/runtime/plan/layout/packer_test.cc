#include "runtime/plan/layout/packer.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <vector>

namespace cairn::plan {
namespace {

constexpr int64_t kStretch = 10;
constexpr int64_t kPlenty = 100'000;

struct Taken {
  int64_t begin, end, bytes;
  int32_t block;
};

void expect_apart(const Packer& packer, const std::vector<Taken>& all) {
  for (const Taken& a : all) {
    ASSERT_GE(packer.offset(a.block), 0);
    for (int64_t time = a.begin; time <= a.end; ++time)
      ASSERT_LE(packer.offset(a.block) + a.bytes, packer.ceiling(static_cast<int32_t>(time / kStretch)));
    for (const Taken& b : all) {
      if (a.block == b.block || a.end < b.begin || b.end < a.begin) continue;
      ASSERT_TRUE(packer.offset(a.block) + a.bytes <= packer.offset(b.block) ||
                  packer.offset(b.block) + b.bytes <= packer.offset(a.block));
    }
  }
}

TEST(Packer, PutsWhatIsInTheWayElsewhere) {
  Packer packer(100, kStretch, 8);
  // In the middle, so that nothing of 6 fits beside it where it is.
  const int32_t small = packer.add(0, 50, 2, 3);
  packer.commit();
  const int32_t large = packer.add(20, 30, 6, -1);
  ASSERT_TRUE(packer.settle(0, 9, kPlenty));
  expect_apart(packer, {{0, 50, 2, small}, {20, 30, 6, large}});
  packer.roll_back();
  EXPECT_EQ(packer.offset(small), 3);
}

TEST(Packer, SaysWhatDoesNotFitAndLeavesAllWhereItWas) {
  Packer packer(100, kStretch, 8);
  const int32_t there = packer.add(0, 99, 5, 0);
  packer.commit();
  packer.add(10, 20, 4, -1);
  EXPECT_FALSE(packer.settle(1, 2, kPlenty));
  EXPECT_EQ(packer.offset(there), 0);
  packer.lower(1, 2, -1);  // higher by 1, where that helps
  EXPECT_TRUE(packer.settle(1, 2, kPlenty));
  EXPECT_EQ(packer.excess(), 2);
  packer.roll_back();
  EXPECT_EQ(packer.excess(), 0);
}

// What stays above a lower floor counts, and not more than that.
TEST(Packer, TheFloorBecomesLower) {
  Packer packer(100, kStretch, 16);
  packer.add(0, 39, 4, 0);
  packer.add(20, 29, 8, 4);
  packer.tighten(0, 9);
  packer.commit();
  ASSERT_EQ(packer.excess(), 0);
  packer.lower_floor(8);
  EXPECT_EQ(packer.ceiling(2), 12);
  EXPECT_EQ(packer.ceiling(0), 8);
  EXPECT_EQ(packer.ceiling(9), 8);
  EXPECT_EQ(packer.excess(), 4);
  packer.roll_back();
  EXPECT_EQ(packer.excess(), 4);
}

TEST(Packer, CeilingsFollowTheBlocks) {
  Packer packer(100, kStretch, 8);
  packer.add(0, 99, 8, 0);
  packer.add(25, 44, 3, 8);
  packer.tighten(0, 9);
  packer.commit();
  EXPECT_EQ(packer.excess(), 9);
  EXPECT_EQ(packer.ceiling(1), 8);
  EXPECT_EQ(packer.ceiling(2), 11);
  EXPECT_EQ(packer.ceiling(4), 11);
  packer.lower(2, 4, 1);
  EXPECT_FALSE(packer.settle(2, 4, kPlenty));  // 11 are needed
}

TEST(Packer, WhateverHappensBlocksStayApart) {
  std::mt19937 random(7);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  Packer packer(300, kStretch, 64);
  std::vector<Taken> all;
  int kept = 0;
  for (int round = 0; round < 600; ++round) {
    const std::vector<Taken> before = all;
    if (!all.empty() && below(3) == 0) {
      const auto k = static_cast<size_t>(below(static_cast<int64_t>(all.size())));
      packer.remove(all[k].block);
      all.erase(all.begin() + static_cast<int64_t>(k));
    }
    const int64_t begin = below(300), end = std::min<int64_t>(299, begin + below(80)), bytes = 1 + below(16);
    all.push_back({begin, end, bytes, packer.add(begin, end, bytes, -1)});
    const auto first = static_cast<int32_t>(begin / kStretch), last = static_cast<int32_t>(end / kStretch);
    if (below(2) == 0) packer.lower(first, last, below(9) - 6);
    if (packer.settle(first, last, 2000) && below(8) > 0) {
      packer.tighten(first, last);
      packer.commit();
      ++kept;
    } else {
      packer.roll_back();
      all = before;
    }
    ASSERT_NO_FATAL_FAILURE(expect_apart(packer, all));
  }
  EXPECT_GT(kept, 100);
}

}  // namespace
}  // namespace cairn::plan
