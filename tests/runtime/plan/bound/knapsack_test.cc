#include "runtime/plan/bound/knapsack.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "tests/support/seeds.h"

namespace cairn::plan {
namespace {

TEST(Menu, KeepsWhatNothingElseBeats) {
  Menu menu = {{4, 1}, {0, 9}, {4, 3}, {2, 9}, {3, 5}, {7, 1}};
  keep_best(menu);
  ASSERT_EQ(menu.size(), 3U);
  EXPECT_EQ(menu[0].bytes, 0);
  EXPECT_EQ(menu[1].bytes, 3);
  EXPECT_EQ(menu[1].seconds, 5);
  EXPECT_EQ(menu[2].bytes, 4);
  EXPECT_EQ(menu[2].seconds, 1);
}

// Seven alike, 3 bytes or 1 second each, and room for 8 bytes: two stay, though 2.67 shares would.
TEST(Menu, CountsAlikePartsOnce) {
  const std::vector<Menu> menus(7, Menu{{0, 1}, {3, 0}});
  EXPECT_NEAR(choose_least(menus, 8, 1.0 / 3, 7 - 8.0 / 3, 1'000'000), 5, 1e-12);
}

TEST(Menu, WithoutWorkSaysWhatIsKnown) {
  const std::vector<Menu> menus(7, Menu{{0, 1}, {3, 0}});
  EXPECT_EQ(choose_least(menus, 8, 1.0 / 3, 4.25, 0), 4.25);
}

// With work enough the least of all choices that fit; with little, between what is known and that.
TEST(Menu, FindsTheLeast) {
  size_t compared = 0;
  const std::vector<uint32_t> seeds = support::seeds(300);
  for (const uint32_t seed : seeds) {
    std::mt19937 random(seed);
    std::vector<Menu> menus(1 + random() % 7);
    for (Menu& menu : menus) {
      for (auto k = 1 + random() % 4; k-- > 0;)
        menu.push_back({static_cast<double>(random() % 50), 0.25 * static_cast<double>(random() % 40)});
      keep_best(menu);
    }
    const auto bytes = static_cast<double>(random() % 200);
    double known = 0, price = 0;
    for (double p = 0; p < 2; p += 0.01) {
      double line = -p * bytes;
      for (const Menu& menu : menus) {
        double cheapest = std::numeric_limits<double>::infinity();
        for (const Dish& d : menu) cheapest = std::min(cheapest, d.seconds + p * d.bytes);
        line += cheapest;
      }
      if (line > known) known = line, price = p;
    }
    double least = std::numeric_limits<double>::infinity();
    std::vector<size_t> pick(menus.size(), 0);
    for (size_t at = 0; at < menus.size();) {
      double used = 0, seconds = 0;
      for (size_t m = 0; m < menus.size(); ++m) {
        used += menus[m][pick[m]].bytes;
        seconds += menus[m][pick[m]].seconds;
      }
      if (used <= bytes) least = std::min(least, seconds);
      for (at = 0; at < menus.size() && ++pick[at] == menus[at].size(); ++at) pick[at] = 0;
    }
    if (known <= 0 || least == std::numeric_limits<double>::infinity()) continue;
    const double most_known = known * (1 + 1e-12);
    const double found = choose_least(menus, bytes, price, known, 100'000'000);
    const double merged = choose_least(menus, bytes, price, known, 6 * 32 * 28);
    ASSERT_NEAR(found, least, 1e-9 * least) << seed;
    ASSERT_GE(merged, known) << seed;
    ASSERT_LE(merged, std::max(least, most_known) * (1 + 1e-12)) << seed;
    ++compared;
  }
  EXPECT_GT(3 * compared, seeds.size());
}

// Too many sums to hold all of them: a bound still, and better than the line.
TEST(Menu, MergedSumsAreABound) {
  std::mt19937 random(7);
  std::vector<Menu> menus;
  double total = 0;
  for (int m = 0; m < 18; ++m) {
    const auto bytes = static_cast<double>(1000 + random() % 5000);
    menus.push_back({{0, 1 + 1e-4 * static_cast<double>(random() % 10000)}, {bytes, 0}});
    total += bytes;
  }
  const double room = 0.37 * total;
  double least = std::numeric_limits<double>::infinity(), known = 0;
  for (uint32_t set = 0; set < 1U << menus.size(); ++set) {
    double used = 0, seconds = 0;
    for (size_t m = 0; m < menus.size(); ++m) {
      used += menus[m][set >> m & 1].bytes;
      seconds += menus[m][set >> m & 1].seconds;
    }
    if (used <= room) least = std::min(least, seconds);
  }
  double price = 0;
  for (double p = 0; p < 2e-3; p += 1e-6) {
    double line = -p * room;
    for (const Menu& menu : menus) line += std::min(menu[0].seconds, p * menu[1].bytes);
    if (line > known) known = line, price = p;
  }
  EXPECT_LT(known, least);
  EXPECT_NEAR(choose_least(menus, room, price, known, 1 << 30), least, 1e-9);
  double last = known;
  for (const int64_t states : {32, 256, 100'000}) {
    const double merged = choose_least(menus, room, price, known, 6 * 36 * states);
    EXPECT_LE(merged, least * (1 + 1e-12));
    EXPECT_GE(merged, known);
    last = merged;
  }
  EXPECT_NEAR(last, least, 1e-9);
}

}  // namespace
}  // namespace cairn::plan
