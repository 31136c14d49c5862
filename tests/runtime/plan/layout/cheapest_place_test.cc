#include "runtime/plan/layout/cheapest_place.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/support/seeds.h"

namespace cairn::plan {
namespace {

int64_t cost_at(const std::vector<CheapestPlace::Beside>& beside, int64_t offset, int64_t bytes) {
  int64_t cost = 0;
  for (const CheapestPlace::Beside& b : beside)
    if (b.begin < offset + bytes && offset < b.end) cost += b.cost;
  return cost;
}

// Few and many blocks beside it, spread over memory or all in a small part of it, some of them alike, at small and at large addresses.
TEST(CheapestPlace, NoOtherOffsetCostsLess) {
  for (const uint32_t seed : support::seeds(300)) {
    std::mt19937 random(seed);
    const auto below = [&](int64_t limit) {
      return static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
    };
    const int64_t unit = seed % 3 == 0 ? int64_t{1} << 40 : seed % 3 == 1 ? 64 : 1;
    const int64_t memory = 1 + below(400), used = seed % 2 == 0 ? memory : 1 + below(memory);
    CheapestPlace place;
    for (int64_t k = below(200); k > 0; --k) {
      const int64_t begin = below(used), end = begin + 1 + below(20);
      place.beside.push_back({begin * unit, end * unit, 1 + below(5), static_cast<int32_t>(k)});
    }
    const int64_t bytes = (1 + below(memory)) * unit, last = memory * unit - bytes;
    const int64_t offset = place.find(bytes, last);
    ASSERT_GE(offset, 0) << "seed " << seed;
    ASSERT_LE(offset, last) << "seed " << seed;
    int64_t least = cost_at(place.beside, 0, bytes);
    for (int64_t at = 0; at <= last; at += unit) least = std::min(least, cost_at(place.beside, at, bytes));
    EXPECT_EQ(cost_at(place.beside, offset, bytes), least) << "seed " << seed;
  }
}

}  // namespace
}  // namespace cairn::plan
