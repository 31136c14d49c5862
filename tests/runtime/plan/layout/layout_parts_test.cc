#include "runtime/plan/layout/layout_parts.h"

#include <random>

#include "layout_check.h"
#include "tests/support/seeds.h"

namespace cairn::plan {
namespace {

// Every piece on top of all others: sound, and as high as can be.
Packing tower(const Pieces& pieces) {
  Packing packing;
  for (const Piece& p : pieces.all) {
    packing.offsets.push_back(packing.height);
    packing.height += p.bytes;
  }
  return packing;
}

void expect_packed(const Pieces& pieces, const Packing& packing, int64_t target) {
  std::vector<Block> blocks;
  Layout layout{packing.offsets, packing.height};
  for (const Piece& p : pieces.all) blocks.push_back({p.begin, p.end, p.bytes});
  expect_sound(blocks, layout, pieces.alignment);
  EXPECT_LE(packing.height, target);
}

TEST(LayoutParts, PiecesAreInOrderOfTimeWithSectionsForSteps) {
  const std::vector<Block> blocks = {{700, 900, 10}, {5, 900, 64}, {8, 8, 64}, {5, 70, 0}, {5, 800, 65}};
  const Pieces pieces(blocks, 64);
  ASSERT_EQ(pieces.size(), 3);
  EXPECT_EQ(pieces.sections, 3);  // from 5, from 700, from 800 to 900
  EXPECT_EQ(pieces.block, (std::vector<int32_t>{1, 4, 0}));
  EXPECT_EQ(pieces.alive, (std::vector<int64_t>{192, 256, 128}));
  EXPECT_EQ(pieces.most, 256);
  EXPECT_EQ(pieces.all[1].bytes, 128);
}

TEST(LayoutParts, SearchFindsTheLowestAndProvesThatNothingIsLower) {
  for (const uint32_t seed : support::seeds(400)) {
    std::mt19937 random(seed);
    std::vector<Block> blocks;
    for (const Block& b : random_blocks(random, 6, 2 + static_cast<int>(random() % 8), 1))
      if (b.bytes > 0) blocks.push_back(b);
    if (blocks.empty()) continue;
    const Pieces pieces(blocks, 1);
    const int64_t lowest = lowest_of_all_orders(blocks);
    Packing packing = tower(pieces);
    int64_t work = 1'000'000;
    ASSERT_TRUE(search(pieces, lowest, work, packing)) << seed;
    expect_packed(pieces, packing, lowest);
    const std::vector<int64_t> before = packing.offsets;
    work = 1'000'000;
    EXPECT_FALSE(search(pieces, lowest - 1, work, packing)) << seed;
    EXPECT_EQ(packing.offsets, before);
    EXPECT_GT(work, 0) << "it gave up instead";
  }
}

TEST(LayoutParts, SearchAndEjectionAgreeOnMiddlingProblems) {
  int found = 0, tried = 0;
  for (const uint32_t seed : support::seeds(60)) {
    ++tried;
    std::mt19937 random(seed);
    const auto blocks = random_blocks(random, 24, 20, 64);
    const Pieces pieces(blocks, 64);
    if (pieces.size() == 0) continue;
    Packing searched = tower(pieces), ejected = searched;
    int64_t work = 5'000'000, visits = 200'000;
    const bool can = search(pieces, pieces.most, work, searched);
    if (can) expect_packed(pieces, searched, pieces.most);
    if (eject(pieces, pieces.most, visits, ejected)) {
      expect_packed(pieces, ejected, pieces.most);
      EXPECT_TRUE(can || work <= 0) << seed << ": a packing that the search says is not there";
      ++found;
    }
  }
  EXPECT_GT(2 * found, tried);
}

TEST(LayoutParts, SearchStopsWhenItsWorkIsDone) {
  int stopped = 0, tried = 0;
  for (const uint32_t seed : support::seeds(40)) {
    ++tried;
    std::mt19937 random(seed);
    std::vector<Block> blocks;
    for (int i = 0; i < 60; ++i) {
      const auto begin = static_cast<int32_t>(random() % 40);
      blocks.push_back(
          {begin, begin + 1 + static_cast<int32_t>(random() % 12), 1 + static_cast<int64_t>(random() % 97)});
    }
    const Pieces pieces(blocks, 1);
    Packing packing = tower(pieces);
    int64_t work = 100'000;
    const bool found = search(pieces, pieces.most, work, packing);
    EXPECT_GT(work, -100'000) << "a little beyond what was allowed, no more";
    stopped += !found && work <= 0;
    EXPECT_EQ(packing.height <= pieces.most, found);
  }
  EXPECT_GT(8 * stopped, tried);
}

// More pieces than are searched at once: only a window around the offence moves, the rest are obstacles.
TEST(LayoutParts, SearchMovesOnlyAWindowOfALargeProblem) {
  for (const uint32_t seed : support::seeds(8)) {
    const auto blocks = training_step(300, seed);
    const Pieces pieces(blocks, 64);
    ASSERT_GT(pieces.size(), 512);
    Packing packing = sweep(pieces, pieces.most);
    const int64_t target = packing.height;
    const std::vector<int64_t> before = packing.offsets;
    for (int32_t i = 900; i < 903; ++i) {  // lifted above everything
      packing.offsets[i] = packing.height;
      packing.height += pieces.all[i].bytes;
    }
    int64_t work = 20'000'000;
    ASSERT_TRUE(search(pieces, target, work, packing)) << seed;
    expect_packed(pieces, packing, target);
    int moved = 0;
    for (int32_t i = 0; i < pieces.size(); ++i) moved += packing.offsets[i] != before[i];
    EXPECT_LT(moved, pieces.size() / 2);
  }
}

TEST(LayoutParts, EjectionRepairsWhatStandsOut) {
  for (const uint32_t seed : support::seeds(20)) {
    const auto blocks = training_step(100, seed);
    const Pieces pieces(blocks, 64);
    Packing packing = sweep(pieces, pieces.most);
    const int64_t target = packing.height + packing.height / 50;
    for (int32_t i = 0; i < pieces.size(); i += 40) {
      packing.offsets[i] = packing.height;
      packing.height += pieces.all[i].bytes;
    }
    int64_t work = 3'000'000;
    ASSERT_TRUE(eject(pieces, target, work, packing)) << seed;
    expect_packed(pieces, packing, target);
  }
}

TEST(LayoutParts, EjectionGivesUpOnWhatCannotBe) {
  const std::vector<Block> blocks = {{0, 2, 64}, {1, 3, 64}, {0, 3, 64}};
  const Pieces pieces(blocks, 64);
  Packing packing = tower(pieces);
  int64_t work = 10'000;
  EXPECT_FALSE(eject(pieces, pieces.most - 64, work, packing));
  EXPECT_LE(work, 0);
  EXPECT_EQ(packing.height, 192);
}

// Activations of a chain, which go in backward, and gradients, which come there and stay: whatever their sizes, no hole is left.
TEST(LayoutParts, WhatGrowsAndWhatFallsAreStackedFromBothEnds) {
  for (const uint32_t seed : support::seeds(60)) {
    std::mt19937 random(seed);
    const int32_t layers = 2 + static_cast<int32_t>(random() % 60), end = 4 * layers;
    std::vector<Block> blocks;
    const auto bytes = [&] { return 1 + static_cast<int64_t>(random() % 1000); };
    for (int32_t i = 0; i < layers; ++i) {
      blocks.push_back({i, end - 2 * i - 1, bytes()});
      blocks.push_back({end - 2 * i - 2, end + 2, bytes()});
    }
    blocks.push_back({end, end + 1, 1});  // the update's
    const Pieces pieces(blocks, 1);
    EXPECT_EQ(living_to_the_end(pieces), layers);
    Packing packing = tower(pieces);
    int64_t work = 0;
    ASSERT_TRUE(stack_both_ways(pieces, pieces.most, work, packing)) << seed;
    expect_packed(pieces, packing, pieces.most);
    const std::vector<int64_t> before = packing.offsets;
    EXPECT_FALSE(stack_both_ways(pieces, pieces.most - 1, work, packing));
    EXPECT_EQ(packing.offsets, before);
  }
}

TEST(LayoutParts, WhatFindsNoPlaceBetweenBothStacksIsEjected) {
  for (const uint32_t seed : support::seeds(60)) {
    std::mt19937 random(seed);
    std::vector<Block> blocks;
    for (const Block& b : random_blocks(random, 60, 200, 1))
      if (b.bytes > 0 && b.begin < b.end) blocks.push_back(b);
    for (int32_t i = 0; i < 20; ++i)
      blocks.push_back({100 + 5 * i, 202, 1 + static_cast<int64_t>(random() % 50)});
    blocks.push_back({201, 202, 1});
    const Pieces pieces(blocks, 1);
    Packing packing = tower(pieces);
    int64_t work = 1'000'000;
    const int64_t target = pieces.most * 5 / 4;
    if (stack_both_ways(pieces, target, work, packing)) expect_packed(pieces, packing, target);
  }
}

}  // namespace
}  // namespace cairn::plan
