#include "runtime/plan/bound/knapsack.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "tests/support/seeds.h"

namespace cairn::plan {
namespace {

TEST(OptionSet, KeepsWhatNothingElseBeats) {
  OptionSet option_set = {{4, 1}, {0, 9}, {4, 3}, {2, 9}, {3, 5}, {7, 1}};
  keep_best(option_set);
  ASSERT_EQ(option_set.size(), 3U);
  EXPECT_EQ(option_set[0].bytes, 0);
  EXPECT_EQ(option_set[1].bytes, 3);
  EXPECT_EQ(option_set[1].seconds, 5);
  EXPECT_EQ(option_set[2].bytes, 4);
  EXPECT_EQ(option_set[2].seconds, 1);
}

// Seven alike, 3 bytes or 1 second each, and room for 8 bytes: two stay, though 2.67 shares would.
TEST(OptionSet, CountsAlikePartsOnce) {
  const std::vector<OptionSet> option_sets(7, OptionSet{{0, 1}, {3, 0}});
  EXPECT_NEAR(choose_least(option_sets, 8, 1.0 / 3, 7 - 8.0 / 3, 1'000'000), 5, 1e-12);
}

TEST(OptionSet, WithoutWorkSaysWhatIsKnown) {
  const std::vector<OptionSet> option_sets(7, OptionSet{{0, 1}, {3, 0}});
  EXPECT_EQ(choose_least(option_sets, 8, 1.0 / 3, 4.25, 0), 4.25);
}

// With work enough the least of all choices that fit; with little, between what is known and that.
TEST(OptionSet, FindsTheLeast) {
  size_t compared = 0;
  const std::vector<uint32_t> seeds = support::seeds(300);
  for (const uint32_t seed : seeds) {
    std::mt19937 random(seed);
    std::vector<OptionSet> option_sets(1 + random() % 7);
    for (OptionSet& option_set : option_sets) {
      for (auto k = 1 + random() % 4; k-- > 0;)
        option_set.push_back({static_cast<double>(random() % 50), 0.25 * static_cast<double>(random() % 40)});
      keep_best(option_set);
    }
    const auto bytes = static_cast<double>(random() % 200);
    double known = 0, price = 0;
    for (double p = 0; p < 2; p += 0.01) {
      double line = -p * bytes;
      for (const OptionSet& option_set : option_sets) {
        double cheapest = std::numeric_limits<double>::infinity();
        for (const Item& d : option_set) cheapest = std::min(cheapest, d.seconds + p * d.bytes);
        line += cheapest;
      }
      if (line > known) known = line, price = p;
    }
    double least = std::numeric_limits<double>::infinity();
    std::vector<size_t> pick(option_sets.size(), 0);
    for (size_t at = 0; at < option_sets.size();) {
      double used = 0, seconds = 0;
      for (size_t m = 0; m < option_sets.size(); ++m) {
        used += option_sets[m][pick[m]].bytes;
        seconds += option_sets[m][pick[m]].seconds;
      }
      if (used <= bytes) least = std::min(least, seconds);
      for (at = 0; at < option_sets.size() && ++pick[at] == option_sets[at].size(); ++at) pick[at] = 0;
    }
    if (known <= 0 || least == std::numeric_limits<double>::infinity()) continue;
    const double max_known = known * (1 + 1e-12);
    const double found = choose_least(option_sets, bytes, price, known, 100'000'000);
    const double merged = choose_least(option_sets, bytes, price, known, 6 * 32 * 28);
    ASSERT_NEAR(found, least, 1e-9 * least) << seed;
    ASSERT_GE(merged, known) << seed;
    ASSERT_LE(merged, std::max(least, max_known) * (1 + 1e-12)) << seed;
    ++compared;
  }
  EXPECT_GT(3 * compared, seeds.size());
}

// Too many sums to hold all of them: a bound still, and better than the line.
TEST(OptionSet, MergedSumsAreABound) {
  std::mt19937 random(7);
  std::vector<OptionSet> option_sets;
  double total = 0;
  for (int m = 0; m < 18; ++m) {
    const auto bytes = static_cast<double>(1000 + random() % 5000);
    option_sets.push_back({{0, 1 + 1e-4 * static_cast<double>(random() % 10000)}, {bytes, 0}});
    total += bytes;
  }
  const double room = 0.37 * total;
  double least = std::numeric_limits<double>::infinity(), known = 0;
  for (uint32_t set = 0; set < 1U << option_sets.size(); ++set) {
    double used = 0, seconds = 0;
    for (size_t m = 0; m < option_sets.size(); ++m) {
      used += option_sets[m][set >> m & 1].bytes;
      seconds += option_sets[m][set >> m & 1].seconds;
    }
    if (used <= room) least = std::min(least, seconds);
  }
  double price = 0;
  for (double p = 0; p < 2e-3; p += 1e-6) {
    double line = -p * room;
    for (const OptionSet& option_set : option_sets)
      line += std::min(option_set[0].seconds, p * option_set[1].bytes);
    if (line > known) known = line, price = p;
  }
  EXPECT_LT(known, least);
  EXPECT_NEAR(choose_least(option_sets, room, price, known, 1 << 30), least, 1e-9);
  double last = known;
  for (const int64_t states : {32, 256, 100'000}) {
    const double merged = choose_least(option_sets, room, price, known, 6 * 36 * states);
    EXPECT_LE(merged, least * (1 + 1e-12));
    EXPECT_GE(merged, known);
    last = merged;
  }
  EXPECT_NEAR(last, least, 1e-9);
}

}  // namespace
}  // namespace cairn::plan
