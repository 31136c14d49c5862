#include "runtime/plan/layout.h"

#include <gtest/gtest.h>

#include <random>

#include "make_problem.h"

namespace cairn::plan {
namespace {

void expect_sound(const std::vector<Block>& blocks, const Layout& layout, int64_t alignment) {
  ASSERT_EQ(layout.offsets.size(), blocks.size());
  for (size_t a = 0; a < blocks.size(); ++a) {
    EXPECT_EQ(layout.offsets[a] % alignment, 0);
    EXPECT_LE(layout.offsets[a] + blocks[a].bytes, layout.height);
    for (size_t b = 0; b < a; ++b) {
      const bool in_time = blocks[a].begin < blocks[b].end && blocks[b].begin < blocks[a].end;
      const bool in_place = layout.offsets[a] < layout.offsets[b] + blocks[b].bytes &&
                            layout.offsets[b] < layout.offsets[a] + blocks[a].bytes;
      EXPECT_FALSE(in_time && in_place && blocks[a].bytes > 0 && blocks[b].bytes > 0) << a << " and " << b;
    }
  }
}

TEST(Layout, NestedLifetimesStackWithoutHoles) {
  std::vector<Block> blocks;
  for (int i = 0; i < 300; ++i) blocks.push_back({i, 600 - i, 64 * (1 + i % 7)});
  const Layout layout = lay_out(blocks, 64);
  expect_sound(blocks, layout, 64);
  int64_t sum = 0;
  for (const Block& b : blocks) sum += b.bytes;
  EXPECT_EQ(layout.height, sum);
}

TEST(Layout, RandomBlocksNeverOverlap) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    std::vector<Block> blocks;
    const int n = 1 + static_cast<int>(random() % 80), steps = 1 + static_cast<int>(random() % 200);
    for (int i = 0; i < n; ++i) {
      const auto begin = static_cast<int32_t>(random() % steps);
      blocks.push_back(
          {begin, begin + 1 + static_cast<int32_t>(random() % steps), static_cast<int64_t>(random() % 900)});
    }
    for (int64_t alignment : {1, 64}) expect_sound(blocks, lay_out(blocks, alignment), alignment);
  }
}

TEST(Layout, NothingAndNoBytes) {
  EXPECT_EQ(lay_out({}, 64).height, 0);
  EXPECT_EQ(lay_out(std::vector<Block>{{0, 5, 0}, {0, 1, 0}}, 64).height, 0);
}

TEST(Layout, AHundredThousandBlocksAreQuickAndClose) {
  std::mt19937 random(1);
  std::vector<Block> blocks;
  constexpr int kLayers = 25000;
  int64_t kept = 0;
  for (int i = 0; i < kLayers; ++i) {
    blocks.push_back({2 * i, 4 * kLayers - 2 * i, static_cast<int64_t>(64 * (1 + random() % 50))});
    kept += blocks.back().bytes;
    for (int k = 0; k < 3; ++k) {
      const auto begin = static_cast<int32_t>(random() % (4 * kLayers - 20));
      blocks.push_back({begin, begin + 1 + static_cast<int32_t>(random() % 20),
                        static_cast<int64_t>(64 * (1 + random() % 50))});
    }
  }
  const Layout layout = lay_out(blocks, 64);
  EXPECT_LT(static_cast<double>(layout.height), 1.01 * static_cast<double>(kept) + 64 * 50 * 40);
}

TEST(Layout, AlignmentFollowsTheProblem) {
  Problem p = chain(2);
  EXPECT_EQ(natural_alignment(p), 64);
  p.ops[0].workspace_bytes = 100;
  EXPECT_EQ(natural_alignment(p), 1);
}

}  // namespace
}  // namespace cairn::plan
