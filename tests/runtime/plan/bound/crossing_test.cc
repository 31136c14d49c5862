#include "runtime/plan/bound/crossing.h"

#include <gtest/gtest.h>

#include "runtime/plan/cache.h"
#include "runtime/plan/residency/traffic.h"
#include "tests/runtime/plan/make_problem.h"
#include "tests/runtime/plan/timed_optimum.h"
#include "tests/support/seeds.h"

namespace cairn::plan {
namespace {

// One link, and forward's n ops, the loss and backward's n ops of a second each. Op i of forward and its backward read weight i;
// backward writes over gradient i.
Problem layers(int n, int64_t weight, int64_t gradient, double rate, double both) {
  Maker m;
  m.link("host", rate, int64_t{1} << 40, 0, both);
  m.value("a0", 0, true).value("g0", 0, true);
  for (int i = 1; i <= n; ++i) {
    const std::string number = std::to_string(i);
    m.value("a" + number, 0)
        .value("g" + number, 0)
        .value("w" + number, weight, true)
        .value("d" + number, gradient, true);
    for (const char* home : {"w", "d"}) m.p.values[static_cast<size_t>(m.find(home + number))].home = 0;
  }
  const auto at = [](const char* name, int i) { return name + std::to_string(i); };
  for (int i = 1; i <= n; ++i) m.op(at("f", i), 1, {at("a", i - 1), at("w", i)}, {at("a", i)});
  m.backward_begin().op("loss", 1, {at("a", n)}, {at("g", n)}, 0, false);
  for (int i = n; i >= 1; --i)
    m.op(at("b", i), 1, {at("a", i - 1), at("g", i), at("w", i)}, {at("g", i - 1), at("d", i)}, 0, false);
  check(m.p);
  return m.p;
}

Problem all_away(const Problem& p) {
  Problem away = without_homes(resolve_homes(p, std::vector<bool>(p.values.size(), true)));
  away.links = p.links;
  return away;
}
double bound_of(const Problem& p, int64_t budget) {
  const Problem away = all_away(p);
  return lower_bound_seconds(away, Index(away), budget, home_reads(p));
}

// Where backward begins a weight and its gradient are there, and 1000 bytes beside them. The other nine weights and a half come
// in 17 seconds, and again in 17; nine gradients go out beside that, or, at half rates, on top of the second 17.
TEST(Crossing, GradientsCannotLeaveInForward) {
  const Problem full = layers(10, 2000, 1000, 1000, 1), half = layers(10, 2000, 1000, 1000, 0.5);
  EXPECT_NEAR(bound_of(full, 4000), 17 + 17, 1e-6);
  EXPECT_NEAR(bound_of(half, 4000), 17 + 17 + 9, 1e-6);
}

// Room for two of twelve, each of which costs half a second at home.
TEST(Crossing, WhatLivesAtHomeCosts) {
  Problem p = layers(6, 1000, 1000, 1e9, 1);
  for (Value& v : p.values)
    if (v.home >= 0) v.home_seconds = 0.5;
  EXPECT_NEAR(bound_of(p, 2000), 13 + 10 * 0.5, 1e-5);
  EXPECT_NEAR(bound_of(p, 12000), 13, 1e-6);
}

TEST(Crossing, WhatFitsDoesNotCross) {
  const Problem p = layers(4, 2000, 1000, 1000, 1);
  EXPECT_NEAR(bound_of(p, 4 * 3000), 9, 1e-6);
}

// Four of the gradients that go out there, or three and a half beside what the last op needs, stay instead: where backward begins they
// take nothing.
TEST(Crossing, WhatIsFreshTakesNoPlaceBeforeItIsMade) {
  Problem p = layers(10, 2000, 1000, 1000, 0.5);
  for (Value& v : p.values) v.fresh = v.name[0] == 'd';
  check(p);
  EXPECT_NEAR(bound_of(p, 4000), 17 + 17 + 5, 1e-6);
  p.ops.back().workspace_bytes = 500;
  EXPECT_NEAR(bound_of(p, 4000), 17 + 17 + 5.5, 1e-6);
}

struct Small {
  Problem p;
  int64_t least = 0, most = 0;
};

// Ops and copies of whole seconds. fresh: what is only written over is of no use before that.
Small small(uint32_t seed, bool fresh = false) {
  std::mt19937 random(seed);
  const auto upto = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n + 1)); };
  Maker m;
  const int n = 2;
  m.link("host", 1, int64_t{1} << 40, 0, upto(1) ? 1 : 0.5);
  if (upto(1)) m.p.links[0].in_bytes_per_second = 0.5;
  m.value("a0", 0, true).value("g0", 0, true);
  const auto at = [](const char* name, int i) { return name + std::to_string(i); };
  std::vector<bool> weight, gradient;
  for (int i = 1; i <= n; ++i) {
    m.value(at("a", i), 1 + upto(3)).value(at("g", i), 1);
    weight.push_back(upto(3) > 0);
    gradient.push_back(upto(3) > 0);
    if (weight.back()) m.value(at("w", i), 1 + upto(2), upto(2) > 0);
    if (gradient.back()) m.value(at("d", i), 1 + upto(2), upto(2) > 0);
    if (weight.back()) m.p.values[static_cast<size_t>(m.find(at("w", i)))].home = 0;
    if (gradient.back()) m.p.values[static_cast<size_t>(m.find(at("d", i)))].home = 0;
  }
  const bool recompute = upto(3) > 0;
  for (int i = 1; i <= n; ++i) {
    std::vector<std::string> in = {at("a", i - 1)};
    if (weight[static_cast<size_t>(i) - 1]) in.push_back(at("w", i));
    m.op(at("f", i), 1 + upto(3), in, {at("a", i)}, 0, recompute);
  }
  m.backward_begin().op("loss", 1, {at("a", n)}, {at("g", n)}, 0, false);
  for (int i = n; i >= 1; --i) {
    std::vector<std::string> in = {at("a", i - 1), at("a", i), at("g", i)}, out = {at("g", i - 1)};
    if (weight[static_cast<size_t>(i) - 1]) in.push_back(at("w", i));
    if (gradient[static_cast<size_t>(i) - 1]) out.push_back(at("d", i));
    if (gradient[static_cast<size_t>(i) - 1] && upto(1)) in.push_back(at("d", i));
    m.op(at("b", i), 1 + upto(3), in, out, 0, false);
  }
  if (fresh) {
    m.op("end", 1, {"g0"}, {}, upto(2), false);
    for (Value& v : m.p.values) {
      const auto number = static_cast<int32_t>(&v - m.p.values.data());
      v.fresh =
          v.home >= 0 && v.name[0] == 'd' && std::none_of(m.p.ops.begin(), m.p.ops.end(), [&](const Op& op) {
            return std::find(op.inputs.begin(), op.inputs.end(), number) != op.inputs.end();
          });
    }
  }
  check(m.p);
  Small made{m.p};
  for (const Op& op : m.p.ops) {
    int64_t used = 0;
    for (size_t v = 0; v < m.p.values.size(); ++v)
      for (const auto* list : {&op.inputs, &op.outputs})
        if (std::find(list->begin(), list->end(), static_cast<int32_t>(v)) != list->end()) {
          used += m.p.values[v].bytes;
          break;
        }
    made.least = std::max(made.least, used);
  }
  for (const Value& v : m.p.values) made.most += v.bytes;
  return made;
}

// No plan at all is faster, whatever it keeps, makes again or sends over the link, and when.
TEST(Crossing, IsBelowTheOptimum) {
  int compared = 0;
  for (const uint32_t number : support::seeds(24)) {
    const uint32_t seed = number / 2;
    const Small s = small(seed, number % 2 > 0);
    const Problem away = resolve_homes(s.p, std::vector<bool>(s.p.values.size(), true));
    for (int64_t budget = s.least; budget < s.most; budget += 1 + (s.most - s.least) / 5) {
      const int64_t optimum = TimedOptimum::seconds(s.p, budget);
      if (optimum < 0) continue;
      const double bound =
          std::max(bound_of(s.p, budget),
                   least_link_seconds(away, budget, std::vector<bool>(away.values.size(), true)));
      ASSERT_LE(bound, static_cast<double>(optimum) * (1 + 1e-12))
          << "seed " << seed << ", budget " << budget;
      ++compared;
    }
  }
  EXPECT_GT(compared, static_cast<int>(support::seeds(24).size()));
}

// Of plans whose ops begin at random times at the earliest, under several budgets: visit(budget, bound, optimum). No optimum is below
// its bound.
template <class Visit>
void each_bound_behind(const Small& s, uint32_t seed, std::mt19937& random, const Visit& visit) {
  const Problem away = all_away(s.p);
  const HomeReads homes = home_reads(s.p);
  std::vector<double> earliest;
  for (const Op& op : s.p.ops)
    earliest.push_back((earliest.empty() ? 0 : earliest.back() + op.seconds) +
                       static_cast<double>(random() % 4));
  for (int64_t budget = s.least; budget < s.most; budget += 1 + (s.most - s.least) / 5) {
    const int64_t found = TimedOptimum::seconds(s.p, budget, earliest);
    if (found < 0) continue;
    const auto optimum = static_cast<double>(found);
    const double bound = lower_bound_seconds_behind(away, Index(away), budget, homes, earliest);
    ASSERT_LE(bound, optimum * (1 + 1e-12)) << "seed " << seed << ", budget " << budget;
    visit(budget, bound, optimum);
  }
}

// Weights come from updates that go on while the run begins: no plan that waits for them is faster, either.
TEST(Crossing, IsBelowTheOptimumBehindUpdates) {
  int higher = 0;
  for (const uint32_t seed : support::seeds(12)) {
    const Small s = small(seed);
    std::mt19937 random(seed);
    each_bound_behind(s, seed, random,
                      [&](int64_t budget, double bound, double) { higher += bound > bound_of(s.p, budget); });
  }
  EXPECT_GT(higher, 0);
}

// What lives at home costs seconds before the first op, and those may be waited for anyway.
TEST(Crossing, IsBelowTheOptimumBehindUpdatesAndWhatHomesCost) {
  const std::vector<uint32_t> seeds = support::seeds(8);
  int optimal = 0;
  for (const uint32_t seed : seeds) {
    Small s = small(seed);
    std::mt19937 random(seed);
    for (Value& v : s.p.values)
      if (v.home >= 0) v.home_seconds = static_cast<double>(random() % 3);
    each_bound_behind(s, seed, random, [&](int64_t, double bound, double optimum) {
      optimal += bound > optimum * (1 - 1e-6);
    });
  }
  if (seeds.size() == 8) EXPECT_GT(optimal, 0) << "of the few seeds that sanitizers take, none may be";
}

// Of twelve of 1000 bytes, ten live at home, for half a second each: five seconds pass before the first op. Forward's six end in the
// thirteenth at the earliest, so two pass for nothing, and backward's seven follow.
TEST(Crossing, WhatHomesCostMayPassBeforeUpdatesEnd) {
  Problem p = layers(6, 1000, 1000, 1e9, 1);
  for (Value& v : p.values)
    if (v.home >= 0) v.home_seconds = 0.5;
  const Problem away = all_away(p);
  std::vector<double> earliest(13, 0);
  const auto bound = [&](double begins) {
    std::fill(earliest.begin() + 6, earliest.end(), begins);
    return lower_bound_seconds_behind(away, Index(away), 2000, home_reads(p), earliest);
  };
  EXPECT_NEAR(bound(13), 13 + 7, 1e-5);
  EXPECT_NEAR(bound(11), 5 + 6 + 7, 1e-5);
  EXPECT_NEAR(bound(0), 5 + 6 + 7, 1e-5);
}

// Places of gradients save seconds before the first op, those of weights copies. Which of them is better depends on how long ops wait.
TEST(Crossing, KnowsWhatHomesCostBehindUpdates) {
  Problem p = layers(10, 2000, 500, 1000, 1);
  for (Value& v : p.values)
    if (v.home >= 0 && v.name[0] == 'd') v.home_seconds = 2;
  const Problem away = all_away(p);
  const HomeReads homes = home_reads(p);
  HomeReads for_nothing = homes;
  for (HomeReads::Value& v : for_nothing.values) v.home_seconds = 0;
  std::vector<double> earliest(21, 0);
  std::fill(earliest.begin() + 10, earliest.end(), 10 + 12);
  const auto behind = [&](const HomeReads& reads) {
    return lower_bound_seconds_behind(away, Index(away), 7500, reads, earliest);
  };
  EXPECT_NEAR(bound_of(p, 7500), 35, 1e-3);
  EXPECT_NEAR(behind(for_nothing), 35, 1e-3);
  EXPECT_NEAR(behind(homes), 38, 1e-3);
}

// Two ops of a second, the second not before the fifth; two more follow.
TEST(Crossing, WaitsForWhatIsNotUpdated) {
  Maker m;
  m.value("a", 1, true).value("b", 1).value("c", 1).value("d", 1).value("e", 1);
  m.op("f", 1, {"a"}, {"b"}).op("g", 1, {"b"}, {"c"}).op("h", 1, {"c"}, {"d"}).op("i", 1, {"d"}, {"e"});
  EXPECT_NEAR(lower_bound_seconds_behind(m.p, Index(m.p), 0, {}, {0, 5, 5, 5}), 8, 1e-6);
  EXPECT_NEAR(lower_bound_seconds_behind(m.p, Index(m.p), 0, {}, {0, 0, 0, 0}), 4, 1e-6);
}

}  // namespace
}  // namespace cairn::plan
