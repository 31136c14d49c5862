// The exact search from below.
#include <gtest/gtest.h>

#include <random>

#include "layout_check.h"
#include "runtime/plan/layout/layout_parts.h"
#include "tests/support/seeds.h"

namespace cairn::plan {
namespace {

std::vector<Block> with_bytes(const std::vector<Block>& blocks) {
  std::vector<Block> some;
  for (const Block& b : blocks)
    if (b.bytes > 0) some.push_back(b);
  return some;
}

// Both give the packing back in the order of the blocks.
bool filled(const std::vector<Block>& blocks, int64_t alignment, int64_t target, int64_t& work,
            Layout& layout) {
  const Pieces pieces(blocks, alignment);
  Packing packing{std::vector<int64_t>(blocks.size(), 0), INT64_MAX};
  if (!fill(pieces, target, work, packing)) return false;
  layout = {std::vector<int64_t>(blocks.size(), 0), 0};
  for (int32_t i = 0; i < pieces.size(); ++i) layout.offsets[pieces.block[i]] = packing.offsets[i];
  for (size_t b = 0; b < blocks.size(); ++b)
    layout.height = std::max(layout.height, layout.offsets[b] + blocks[b].bytes);
  return true;
}

// A rectangle cut in two again and again: it can be put together without a hole.
std::vector<Block> cut_rectangle(int count, uint32_t seed) {
  struct Part {
    int32_t begin, end;
    int64_t low, high;
  };
  std::mt19937 random(seed);
  std::vector<Part> parts = {{0, 256, 0, 4096}};
  while (static_cast<int>(parts.size()) < count) {
    Part& part = parts[random() % parts.size()];
    Part rest = part;
    if (random() % 2 && part.end - part.begin > 1)
      part.end = rest.begin = part.begin + 1 + static_cast<int32_t>(random() % (part.end - part.begin - 1));
    else if (part.high - part.low > 1)
      part.high = rest.low = part.low + 1 + static_cast<int64_t>(random() % (part.high - part.low - 1));
    else
      continue;
    parts.push_back(rest);
  }
  std::shuffle(parts.begin(), parts.end(), random);
  std::vector<Block> blocks;
  for (const Part& part : parts) blocks.push_back({part.begin, part.end, 64 * (part.high - part.low)});
  return blocks;
}

TEST(LayoutFill, FindsTheLowestOfAllOrders) {
  for (const uint32_t seed : support::seeds(400)) {
    std::mt19937 random(seed);
    const auto blocks = with_bytes(random_blocks(random, 7, 2 + static_cast<int>(random() % 8), 1));
    if (blocks.empty()) continue;
    const int64_t lowest = lowest_of_all_orders(blocks);
    Layout layout;
    int64_t work = 1'000'000;
    ASSERT_TRUE(filled(blocks, 1, lowest, work, layout)) << seed;
    expect_sound(blocks, layout, 1);
    EXPECT_EQ(layout.height, lowest);
    work = 1'000'000;
    EXPECT_FALSE(filled(blocks, 1, lowest - 1, work, layout)) << seed;
    EXPECT_GT(work, 0) << "it gave up instead";
  }
}

// Failures come from a part of the time here, so decisions beside it are passed over on the way back.
TEST(LayoutFill, WhatFailsInOnePlaceIsNotLaidToAnother) {
  for (const uint32_t seed : support::seeds(100)) {
    std::mt19937 random(seed);
    const auto blocks = with_bytes(random_blocks(random, 8, 24, 1));
    if (blocks.empty()) continue;
    const int64_t lowest = lowest_of_all_orders(blocks);
    Layout layout;
    int64_t work = 4'000'000;
    ASSERT_TRUE(filled(blocks, 1, lowest, work, layout)) << seed;
    expect_sound(blocks, layout, 1);
    work = 4'000'000;
    EXPECT_FALSE(filled(blocks, 1, lowest - 1, work, layout)) << seed;
    EXPECT_GT(work, 0) << "it gave up instead";
  }
}

TEST(LayoutFill, PutsACutRectangleTogetherAgain) {
  for (const uint32_t seed : support::seeds(12)) {
    const auto blocks = cut_rectangle(60, seed);
    Layout layout;
    int64_t work = 400'000'000;
    ASSERT_TRUE(filled(blocks, 64, 64 * 4096, work, layout)) << seed;
    expect_sound(blocks, layout, 64);
    EXPECT_EQ(layout.height, 64 * 4096) << seed;
  }
}

TEST(LayoutFill, WhatItFindsIsSoundAlignedWithinTheTargetAndTheSameEachTime) {
  int found = 0;
  for (const uint32_t seed : support::seeds(100)) {
    std::mt19937 random(seed);
    const auto blocks = with_bytes(random_blocks(random, 80, 60, seed % 2 ? 48 : 64));
    if (blocks.empty()) continue;
    const int64_t most = Pieces(blocks, 64).most, target = most + most / 50;
    Layout layout, again;
    int64_t work = 2'000'000, same = 2'000'000;
    const bool one = filled(blocks, 64, target, work, layout);
    ASSERT_EQ(one, filled(blocks, 64, target, same, again));
    EXPECT_EQ(work, same);
    if (!one) continue;
    ++found;
    expect_sound(blocks, layout, 64);
    EXPECT_LE(layout.height, target);
    EXPECT_EQ(layout.offsets, again.offsets);
  }
  EXPECT_GT(found, 0);
}

TEST(LayoutFill, LeavesThePackingWhereItFindsNone) {
  const std::vector<Block> blocks = {{0, 2, 3}, {1, 3, 3}};
  const Pieces pieces(blocks, 1);
  Packing packing{{0, 5}, 8};
  int64_t work = 1000;
  EXPECT_FALSE(fill(pieces, 5, work, packing));
  EXPECT_EQ(packing.offsets, (std::vector<int64_t>{0, 5}));
  work = 0;
  EXPECT_FALSE(fill(pieces, 6, work, packing));
  EXPECT_EQ(packing.height, 8);
}

// The repair and the search with windows alone end at 1.2 times the bound.
TEST(LayoutFill, ACapacityIsReachedThatRepairDoesNotReach) {
  const auto blocks = cut_rectangle(150, 3);
  const int64_t most = max_alive(blocks);
  EXPECT_GT(lay_out(blocks, 64).height, most + most / 50);
  const Layout layout = lay_out(blocks, 64, most + most / 50, 20);
  expect_sound(blocks, layout, 64);
  EXPECT_LE(layout.height, most + most / 50);
}

}  // namespace
}  // namespace cairn::plan
