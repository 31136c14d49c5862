// Blocks for the tests of layout, and what every layout must keep.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "runtime/plan/layout/layout.h"

namespace cairn::plan {

inline void expect_sound(const std::vector<Block>& blocks, const Layout& layout, int64_t alignment) {
  ASSERT_EQ(layout.offsets.size(), blocks.size());
  int64_t highest = 0, sum = 0;
  for (size_t a = 0; a < blocks.size(); ++a) {
    ASSERT_GE(layout.offsets[a], 0);
    ASSERT_EQ(layout.offsets[a] % alignment, 0);
    highest = std::max(highest, layout.offsets[a] + blocks[a].bytes);
    if (blocks[a].begin < blocks[a].end) sum += (blocks[a].bytes + alignment - 1) / alignment * alignment;
    for (size_t b = 0; b < a; ++b) {
      const bool in_time = blocks[a].begin < blocks[b].end && blocks[b].begin < blocks[a].end;
      const bool in_place = layout.offsets[a] < layout.offsets[b] + blocks[b].bytes &&
                            layout.offsets[b] < layout.offsets[a] + blocks[a].bytes;
      const bool empty = blocks[a].begin == blocks[a].end || blocks[b].begin == blocks[b].end;
      ASSERT_FALSE(in_time && in_place && !empty && blocks[a].bytes > 0 && blocks[b].bytes > 0)
          << a << " and " << b;
    }
  }
  EXPECT_EQ(layout.height, highest);
  EXPECT_GE(layout.height, max_alive(blocks));
  EXPECT_LE(layout.height, sum);
}

inline std::vector<Block> random_blocks(std::mt19937& random, int most, int steps, int64_t unit) {
  std::vector<Block> blocks;
  for (int n = static_cast<int>(random() % (most + 1)); n-- > 0;) {
    const auto begin = static_cast<int32_t>(random() % steps);
    const auto length = 1 + static_cast<int32_t>(random() % (random() % 4 ? 1 + steps / 8 : steps));
    blocks.push_back({begin, begin + length, unit * static_cast<int64_t>(random() % 20)});
  }
  return blocks;
}

// Lowest height of all: every order of putting blocks as low as those before allow.
inline int64_t lowest_of_all_orders(const std::vector<Block>& blocks) {
  std::vector<int> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  int64_t lowest = INT64_MAX;
  do {
    std::vector<int64_t> offsets(blocks.size());
    int64_t height = 0;
    for (size_t k = 0; k < order.size(); ++k) {
      const Block& b = blocks[order[k]];
      int64_t offset = 0;
      for (size_t j = 0; j < k; ++j) {
        const Block& o = blocks[order[j]];
        if (b.begin < o.end && o.begin < b.end) offset = std::max(offset, offsets[order[j]] + o.bytes);
      }
      offsets[order[k]] = offset;
      height = std::max(height, offset + b.bytes);
    }
    lowest = std::min(lowest, height);
  } while (std::next_permutation(order.begin(), order.end()));
  return lowest;
}

// What a step of training takes: layers kept (nested), their temporaries, gradients that overlap pairwise.
inline std::vector<Block> training_step(int layers, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Block> blocks;
  const int end = 8 * layers;
  const auto bytes = [&] { return static_cast<int64_t>(64 * (1 + random() % 50)); };
  for (int i = 0; i < layers; ++i) {
    const int forward = 4 * i, backward = end - 4 * i - 4;
    blocks.push_back({forward, backward + 2, bytes()});
    blocks.push_back({forward, forward + 1 + static_cast<int>(random() % 4), bytes()});
    blocks.push_back({backward, backward + 1, bytes()});
    blocks.push_back({std::max(backward - 4, end / 2), backward + 3, bytes()});
    if (i % 3 == 0) blocks.push_back({backward - 1, backward + 2, bytes()});
  }
  return blocks;
}

// The classic: largest first, each as low as it fits.
inline int64_t height_largest_first(std::vector<Block> blocks) {
  std::stable_sort(blocks.begin(), blocks.end(),
                   [](const Block& a, const Block& b) { return a.bytes > b.bytes; });
  std::vector<int64_t> offsets;
  int64_t height = 0;
  for (const Block& b : blocks) {
    int64_t offset = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t j = 0; j < offsets.size(); ++j)
        if (b.begin < blocks[j].end && blocks[j].begin < b.end && offset < offsets[j] + blocks[j].bytes &&
            offsets[j] < offset + b.bytes) {
          offset = offsets[j] + blocks[j].bytes;
          moved = true;
        }
    }
    offsets.push_back(offset);
    height = std::max(height, offset + b.bytes);
  }
  return height;
}

}  // namespace cairn::plan
