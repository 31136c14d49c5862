#include "runtime/plan/layout/layout.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "layout_check.h"
#include "tests/runtime/plan/make_problem.h"
#include "tests/support/seeds.h"

namespace cairn::plan {
namespace {

TEST(Layout, NestedLifetimesTakeNoMoreThanWhatIsAlive) {
  std::vector<Block> blocks;
  for (int i = 0; i < 300; ++i) blocks.push_back({i, 600 - i, 64 * (1 + i % 7)});
  const Layout layout = lay_out(blocks, 64);
  expect_sound(blocks, layout, 64);
  EXPECT_EQ(layout.height, max_alive(blocks));
}

TEST(Layout, RandomNestingTakesNoMoreThanWhatIsAlive) {
  for (const uint32_t seed : support::seeds(40)) {
    std::mt19937 random(seed);
    std::vector<Block> blocks;
    const std::function<void(int, int)> nest = [&](int begin, int end) {
      if (end - begin < 2) return;
      blocks.push_back({begin, end, static_cast<int64_t>(1 + random() % 30)});
      const int cut = begin + 1 + static_cast<int>(random() % static_cast<uint32_t>(end - begin - 1));
      nest(begin + static_cast<int>(random() % 2), cut);
      nest(cut, end - static_cast<int>(random() % 2));
    };
    nest(0, 60);
    const Layout layout = lay_out(blocks, 1);
    expect_sound(blocks, layout, 1);
    EXPECT_EQ(layout.height, max_alive(blocks)) << seed;
  }
}

TEST(Layout, RandomBlocksNeverOverlap) {
  for (const uint32_t seed : support::seeds(300)) {
    std::mt19937 random(seed);
    const auto blocks = random_blocks(random, 80, 1 + static_cast<int>(random() % 200), seed % 2 ? 1 : 64);
    for (int64_t alignment : {1, 64}) expect_sound(blocks, lay_out(blocks, alignment), alignment);
  }
}

TEST(Layout, SizesThatAreNoMultiplesAreRoundedOnlyBetweenBlocks) {
  const std::vector<Block> blocks = {{0, 3, 100}, {1, 3, 1}};
  const Layout layout = lay_out(blocks, 64);
  expect_sound(blocks, layout, 64);
  EXPECT_LE(layout.height, 64 + 100);
}

TEST(Layout, FewBlocksLieAsLowAsAnyOrderPutsThem) {
  for (const uint32_t seed : support::seeds(400)) {
    std::mt19937 random(seed);
    const auto blocks = random_blocks(random, 6, 2 + static_cast<int>(random() % 8), 1);
    std::vector<Block> real;
    for (const Block& b : blocks)
      if (b.bytes > 0) real.push_back(b);
    const int64_t lowest = real.empty() ? 0 : lowest_of_all_orders(real);
    EXPECT_EQ(lay_out(blocks, 1).height, lowest) << seed;
  }
}

// Largest first puts all of size 3 at the bottom and both of size 2, which meet, above: 3 + 2 + 2.
TEST(Layout, LargestFirstFailsWhereThisDoesNot) {
  const std::vector<Block> blocks = {{0, 2, 3}, {1, 4, 2}, {3, 6, 2}, {5, 7, 3}, {2, 3, 3}, {4, 5, 3}};
  EXPECT_EQ(height_largest_first(blocks), 7);
  const Layout layout = lay_out(blocks, 1);
  expect_sound(blocks, layout, 1);
  EXPECT_EQ(layout.height, 5);
  EXPECT_EQ(max_alive(blocks), 5);
}

TEST(Layout, TrainingStepsComeWithinHalfAPercent) {
  for (const uint32_t seed : support::seeds(12)) {
    const auto blocks = training_step(20 + 15 * static_cast<int>(seed), seed);
    const Layout layout = lay_out(blocks, 64);
    expect_sound(blocks, layout, 64);
    EXPECT_LE(static_cast<double>(layout.height), 1.005 * static_cast<double>(max_alive(blocks))) << seed;
  }
}

TEST(Layout, ACapacityNeverMakesItHigher) {
  int within = 0, above = 0;
  constexpr uint32_t kAll = 250;
  const std::vector<uint32_t> seeds = support::seeds(kAll);
  for (const uint32_t seed : seeds) {
    std::mt19937 random(seed);
    const auto blocks = random_blocks(random, 60, 40, 1);
    const int64_t most = max_alive(blocks);
    const Layout free = lay_out(blocks, 1);
    for (const int64_t capacity : {most, most + most / 50, most + most / 5, most / 2, int64_t{1}}) {
      const Layout wished = lay_out(blocks, 1, capacity);
      expect_sound(blocks, wished, 1);
      EXPECT_LE(wished.height, std::max(capacity, free.height)) << seed;
      if (capacity == most && free.height > most) ++(wished.height <= most ? within : above);
    }
    EXPECT_EQ(lay_out(blocks, 1, 0).offsets, free.offsets);
    EXPECT_EQ(lay_out(blocks, 1, INT64_MAX).offsets, free.offsets);
  }
  if (seeds.size() == kAll) {  // a share has too few of these cases
    EXPECT_GT(within, above / 4) << "the harder try reaches the bound now and then";
  }
}

TEST(Layout, ItIsDeterministic) {
  const auto blocks = training_step(120, 3);
  const int64_t most = max_alive(blocks);
  EXPECT_EQ(lay_out(blocks, 64).offsets, lay_out(blocks, 64).offsets);
  EXPECT_EQ(lay_out(blocks, 64, most).offsets, lay_out(blocks, 64, most).offsets);
}

TEST(Layout, NothingAndNoBytesAndNoSteps) {
  EXPECT_EQ(lay_out({}, 64).height, 0);
  EXPECT_EQ(lay_out(std::vector<Block>{{0, 5, 0}, {0, 1, 0}}, 64).height, 0);
  const Layout layout = lay_out(std::vector<Block>{{3, 3, 640}, {0, 5, 64}, {4, 9, 64}}, 64);
  EXPECT_EQ(layout.offsets[0], 0);
  EXPECT_EQ(layout.offsets[1] + layout.offsets[2], 64);
}

TEST(Layout, StepsFarApart) {
  const std::vector<Block> blocks = {{0, 2000000000, 64}, {1000000000, 2147483647, 64}, {5, 7, 128}};
  const Layout layout = lay_out(blocks, 64);
  expect_sound(blocks, layout, 64);
  EXPECT_EQ(layout.height, 192);
}

TEST(Layout, SumsThatOverflowAreRefused) {
  const std::vector<Block> blocks = {{0, 2, INT64_MAX - 64}, {1, 3, INT64_MAX - 64}};
  EXPECT_THROW(lay_out(blocks, 64), Error);
  // The end of all addresses is no address: one byte less is laid out.
  EXPECT_EQ(lay_out(std::vector<Block>{{0, 1, INT64_MAX - 1}}, 1).height, INT64_MAX - 1);
  EXPECT_THROW(lay_out(std::vector<Block>{{0, 1, INT64_MAX}}, 1), Error);
  EXPECT_THROW(lay_out(std::vector<Block>{{0, 1, INT64_MAX - 64}, {5, 6, 64}}, 1), Error);
  EXPECT_THROW(lay_out(std::vector<Block>{{-1, 2, 64}}, 64), Error);
  EXPECT_THROW(lay_out(std::vector<Block>{{0, 2, 64}}, 64, 64, kNoEffort - 1), Error);
}

TEST(Layout, HugeBlocksOneAfterTheOther) {
  for (const int64_t bytes : {INT64_MAX / 2 - 64, INT64_MAX / 2, INT64_MAX / 2 + 1, INT64_MAX / 4 * 3}) {
    const std::vector<Block> blocks = {{0, 1, bytes}, {2, 3, 64}, {1, 4, 64}, {3, 4, bytes / 8}};
    expect_sound(blocks, lay_out(blocks, 1), 1);
  }
}

TEST(Layout, AHundredThousandBlocksAreClose) {
  std::mt19937 random(1);
  std::vector<Block> blocks;
  constexpr int kLayers = 25000;
  for (int i = 0; i < kLayers; ++i) {
    blocks.push_back({2 * i, 4 * kLayers - 2 * i, static_cast<int64_t>(64 * (1 + random() % 50))});
    for (int k = 0; k < 3; ++k) {
      const auto begin = static_cast<int32_t>(random() % (4 * kLayers - 20));
      blocks.push_back({begin, begin + 1 + static_cast<int32_t>(random() % 20),
                        static_cast<int64_t>(64 * (1 + random() % 50))});
    }
  }
  const Layout layout = lay_out(blocks, 64);
  EXPECT_LE(static_cast<double>(layout.height), 1.001 * static_cast<double>(max_alive(blocks)));
}

TEST(Layout, AlignmentFollowsTheProblem) {
  Problem p = chain(2);
  EXPECT_EQ(natural_alignment(p), 64);
  p.ops[0].workspace_bytes = 100;
  EXPECT_EQ(natural_alignment(p), 1);
}

}  // namespace
}  // namespace cairn::plan
