#include "runtime/plan/residency/spread.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace cairn::plan {
namespace {

TEST(Spread, HasEachNumberOnceAndBeginningsEverywhere) {
  EXPECT_TRUE(spread(0).empty());
  for (size_t count = 1; count <= 40; ++count) {
    const std::vector<size_t> order = spread(count);
    for (size_t part = 1; part <= count; ++part) {
      std::vector<size_t> first(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(part));
      std::sort(first.begin(), first.end());
      EXPECT_EQ(std::adjacent_find(first.begin(), first.end()), first.end());
      size_t width = 1;  // no gap is wider than this many
      while (width * part < 2 * count) width *= 2;
      size_t last = 0;
      for (const size_t k : first) {
        EXPECT_LT(k - last, 2 * width) << part << " of " << count;
        last = k;
      }
      EXPECT_LE(count - last, 2 * width) << part << " of " << count;
    }
  }
}

}  // namespace
}  // namespace cairn::plan
