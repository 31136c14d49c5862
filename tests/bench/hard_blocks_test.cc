#include "bench/layout/hard_blocks.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn::bench {
namespace {

TEST(HardBlocks, ThereAreAboutAsManyAsWantedAndTheSameEachTime) {
  for (const HardKind& kind : hard_kinds())
    for (const int count : {150, 450}) {
      const auto blocks = kind.make(count, 1), again = kind.make(count, 1);
      EXPECT_NEAR(static_cast<double>(blocks.size()), count, 4) << kind.name;
      ASSERT_EQ(blocks.size(), again.size());
      for (size_t b = 0; b < blocks.size(); ++b) {
        EXPECT_LT(blocks[b].begin, blocks[b].end) << kind.name;
        EXPECT_GT(blocks[b].bytes, 0);
        EXPECT_EQ(blocks[b].bytes % 64, 0);
        EXPECT_EQ(blocks[b].bytes, again[b].bytes);
        EXPECT_EQ(blocks[b].begin, again[b].begin);
      }
    }
}

TEST(HardBlocks, PartsOfARectangleAreAsManyBytesAtEachStep) {
  for (const HardKind& kind : hard_kinds()) {
    if (!kind.perfect) continue;
    int64_t area = 0;
    const auto blocks = kind.make(300, 2);
    for (const plan::Block& b : blocks) area += (b.end - b.begin) * b.bytes;
    EXPECT_EQ(area, 1024 * plan::max_alive(blocks)) << kind.name;
  }
}

}  // namespace
}  // namespace cairn::bench
