#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>

#include "runtime/plan/cache.h"
#include "tests/runtime/plan/make_problem.h"
#include "tests/support/seeds.h"

namespace cairn::plan {
namespace {

// n layers as a chain, each with a weight that forward and backward read and a gradient that backward adds to.
// Weights and gradients may stay on the device, or live in the tier "host".
Problem layers(int n, int64_t activation, int64_t weight, double rate) {
  Problem p = chain(n, activation);
  p.links.push_back({"host", 0, rate, rate, 1, int64_t{1} << 40});
  const auto add = [&](const std::string& name) {
    p.values.push_back({name, weight, true, 0});
    return static_cast<int32_t>(p.values.size()) - 1;
  };
  for (int i = 1; i <= n; ++i) {
    const int32_t w = add("w" + std::to_string(i)), g = add("gw" + std::to_string(i));
    p.ops[static_cast<size_t>(i) - 1].inputs.push_back(w);
    Op& backward = p.ops[static_cast<size_t>(2 * n + 1 - i)];
    backward.inputs.insert(backward.inputs.end(), {w, g});
    backward.outputs.push_back(g);
    backward.recomputable = false;
  }
  return p;
}

int64_t alive_at(const Problem& p, size_t op) {
  int64_t sum = p.ops[op].workspace_bytes;
  for (const auto* list : {&p.ops[op].inputs, &p.ops[op].outputs})
    for (const int32_t v : *list) sum += p.values[static_cast<size_t>(v)].bytes;
  return sum;
}

TEST(HomeSolver, WithoutABudgetEverythingStays) {
  const Plan plan = solve(layers(6, 6400, 64000, 1e6));
  EXPECT_EQ(violation(layers(6, 6400, 64000, 1e6), plan), "");
  for (const int64_t home : plan.home_offsets) EXPECT_EQ(home, -1);
  EXPECT_DOUBLE_EQ(plan.predicted_seconds, plan.keep_all_seconds);
}

TEST(HomeSolver, AModelLargerThanTheDeviceTrains) {
  Problem p = layers(8, 640, 64000, 1e6);  // a copy of a weight takes 0.064 s beside ops of a second
  p.budget_bytes = 6 * 64000;              // of 16 weights and gradients
  const Plan plan = solve(p);
  EXPECT_EQ(violation(p, plan), "");
  EXPECT_LE(plan.arena_bytes, p.budget_bytes);
  EXPECT_LE(plan.predicted_seconds, plan.keep_all_seconds * 1.01) << "copies hide under compute";
  EXPECT_LE(plan.bound_seconds, plan.predicted_seconds);
}

TEST(HomeSolver, TheSmallestBudgetIsWhatTheLargestOpNeeds) {
  Problem p = layers(5, 640, 64000, 1e6);
  p.budget_bytes = 1000;
  try {
    solve(p);
    FAIL() << "a thousand bytes are too few";
  } catch (const Error& e) {
    ASSERT_NE(e.fault(), nullptr);
    p.budget_bytes = static_cast<int64_t>(e.fault()->smallest_budget_bytes);
  }
  EXPECT_LE(p.budget_bytes, alive_at(p, 6) + 5 * 640 + 128)
      << "backward's weight and gradient, and activations";
  const Plan plan = solve(p);
  EXPECT_EQ(violation(p, plan), "");
  --p.budget_bytes;
  EXPECT_THROW(solve(p), Error);
}

// A policy wants an op to run again that may not, as what it reads was changed: what is named as the smallest budget is one.
TEST(HomeSolver, WhatMayNotRunAgainIsKeptUnderItsSmallestBudget) {
  Problem p;
  p.links.push_back({"host", 0, 1000, 1000, 1, int64_t{1} << 40});
  p.regions = {{"r", -1, Policy::kRecompute}};
  p.values = {{"w", 100, false, 0}, {"a", 10}, {"b", 60}};
  p.ops = {{"f", 1, 0, {0}, {1}, true, 0},
           {"u", 1, 0, {}, {0}, false},
           {"g", 1, 0, {}, {2}},
           {"h", 1, 0, {1, 2}, {}, false}};
  p.backward_begin = 2;
  EXPECT_EQ(smallest_budget(p), 110) << "'w' and 'a'";
  for (const int64_t budget : {110, 111, 150, 159, 160, 1000}) {
    p.budget_bytes = budget;
    EXPECT_EQ(violation(p, solve(p)), "") << budget;
  }
}

// A tier has room for one of two: what may stay is smaller than what is made and may be sent there.
TEST(HomeSolver, TheSmallestBudgetCountsWhatATierHasNoRoomFor) {
  Problem p;
  p.links.push_back({"host", 0, 100, 100, 1, 20});
  p.values = {{"w", 10, true, 0}, {"a", 20}, {"b", 100}, {"c", 1}};
  p.ops = {{"f", 1, 0, {0}, {1}, false}, {"g", 1, 0, {}, {2}, false}, {"h", 1, 0, {0, 1}, {3}, false}};
  p.backward_begin = 2;
  p.budget_bytes = 1;
  try {
    solve(p);
    FAIL() << "a byte is too few";
  } catch (const Error& e) {
    ASSERT_NE(e.fault(), nullptr);
    EXPECT_EQ(e.fault()->smallest_budget_bytes, 110u) << "'w' and 'b'";
    EXPECT_EQ(e.fault()->in_use_bytes, 10u);
    EXPECT_NE(std::string(e.what()).find("at op 'g', with 10 persistent bytes"), std::string::npos)
        << e.what();
  }
  p.budget_bytes = 110;
  EXPECT_EQ(violation(p, solve(p)), "");
  p.budget_bytes = 109;
  EXPECT_THROW(solve(p), Error);
}

TEST(HomeSolver, ASlowLinkIsWaitedForAndTheBoundKnows) {
  Problem p = layers(6, 640, 64000, 64000);  // a second a copy
  p.budget_bytes = 5 * 64000;
  const Plan plan = solve(p);
  EXPECT_EQ(violation(p, plan), "");
  EXPECT_GT(plan.bound_seconds, plan.keep_all_seconds * 0.99);
  EXPECT_LT(plan.predicted_seconds, plan.keep_all_seconds * 2);
}

TEST(HomeSolver, WhatATierHasNoRoomForStays) {
  Problem p = layers(4, 640, 64000, 1e6);
  p.links[0].capacity_bytes = 3 * 64000;  // of eight
  p.budget_bytes = p.persistent_bytes() - 60000;
  const Plan plan = solve(p);
  EXPECT_EQ(violation(p, plan), "");
  EXPECT_LE(plan.tier_arena_bytes[0], p.links[0].capacity_bytes);
  p.budget_bytes = 1000;
  EXPECT_THROW(solve(p), Error);
}

TEST(HomeSolver, TheDearestStayWhereATierHasNoRoomForAll) {
  Problem p = layers(4, 640, 64000, 1e6);
  p.links[0].capacity_bytes = 6 * 64000;  // of eight
  std::set<std::string> dear = {"w2", "gw3"};
  for (Value& v : p.values)
    if (dear.contains(v.name)) v.home_seconds = 1;
  p.budget_bytes = 6 * 64000;
  const Plan plan = solve(p);
  EXPECT_EQ(violation(p, plan), "");
  for (size_t v = 0; v < p.values.size(); ++v)
    if (dear.contains(p.values[v].name)) {
      EXPECT_EQ(plan.home_offsets[v], -1) << p.values[v].name;
    }
}

TEST(HomeSolver, WhatMayNotStayLivesAtHomeWithRoomToSpare) {
  Problem p = layers(3, 640, 64000, 1e6);
  for (Value& v : p.values)
    if (v.home >= 0) v.persistent = false;
  const Plan plan = solve(p);
  EXPECT_EQ(violation(p, plan), "");
  for (size_t v = 0; v < p.values.size(); ++v)
    EXPECT_EQ(plan.home_offsets[v] >= 0, p.values[v].home >= 0) << p.values[v].name;
}

TEST(HomeSolver, WhatIsDearBesideThePlanStays) {
  Problem p = layers(6, 640, 64000, 1e9);  // copies take no time
  int32_t dear = -1;
  for (size_t v = 0; v < p.values.size(); ++v)
    if (p.values[v].name == "gw3") dear = static_cast<int32_t>(v);
  p.values[static_cast<size_t>(dear)].home_seconds = 3;
  p.budget_bytes = 5 * 64000;  // of twelve
  const Plan plan = solve(p);
  EXPECT_EQ(violation(p, plan), "");
  EXPECT_EQ(plan.home_offsets[static_cast<size_t>(dear)], -1);
  p.values[static_cast<size_t>(dear)].home_seconds = -1;
  EXPECT_THROW(solve(p), Error);
}

// Gradients that are of no use before backward writes them stay behind it, in memory that activations have before.
TEST(HomeSolver, WhatIsFreshStaysFromWhereItIsMade) {
  const auto fresh_layers = [](bool fresh) {
    Problem p = layers(6, 64000, 640, 6400);
    for (size_t v = 0; v < p.values.size(); ++v) {
      if (p.values[v].home < 0 || p.values[v].name[0] != 'g') continue;
      for (Op& op : p.ops) std::erase(op.inputs, static_cast<int32_t>(v));
      p.values[v].bytes = 48000;
      p.values[v].fresh = fresh;
    }
    p.budget_bytes = 8 * 64000 + 48000 + 6 * 640 + 128;  // as much as activations and weights need
    return p;
  };
  const Problem p = fresh_layers(true);
  const Plan plan = solve(p), without = solve(fresh_layers(false));
  EXPECT_EQ(violation(p, plan), "");
  EXPECT_DOUBLE_EQ(plan.predicted_seconds, plan.keep_all_seconds) << "all of them stay";
  EXPECT_GT(without.predicted_seconds, plan.predicted_seconds);
  size_t last_run = plan.steps.size();
  while (plan.steps[--last_run].kind != StepKind::kRun) {
  }
  for (size_t v = 0; v < p.values.size(); ++v) {
    if (!p.values[v].fresh) continue;
    EXPECT_EQ(plan.home_offsets[v], -1);
    EXPECT_EQ(plan.values[v].decision, Decision::kKeep);
    EXPECT_GT(plan.values[v].first_step, 0);
    EXPECT_GE(plan.values[v].last_step, static_cast<int32_t>(last_run));
  }
}

// A random problem with values that have a home put on top.
Problem random_homes(uint32_t seed) {
  Problem p = random_problem(seed);
  if (p.links.empty()) p.links.push_back({"host", 0.001, 4096, 2048, 0.8, int64_t{1} << 40});
  for (Link& link : p.links) link.capacity_bytes += 1 << 20;
  std::mt19937 random(seed);
  const auto upto = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n + 1)); };
  for (int k = 1 + upto(4); k-- > 0;) {
    const auto w = static_cast<int32_t>(p.values.size());
    p.values.push_back({"home" + std::to_string(k), 64 * (1 + upto(40)), upto(2) > 0,
                        upto(static_cast<int>(p.links.size()) - 1)});
    for (int uses = 1 + upto(3); uses-- > 0;) {
      Op& op = p.ops[random() % p.ops.size()];
      if (upto(2) > 0) op.inputs.push_back(w);
      if (upto(2) == 0 && !op.recomputable && std::count(op.outputs.begin(), op.outputs.end(), w) == 0)
        op.outputs.push_back(w);
    }
  }
  for (Value& value : p.values)
    if (value.home >= 0 && upto(1) > 0) value.home_seconds = 0.125 * upto(8);
  // One that an op writes over, and others may read.
  for (size_t o = 0; o < p.ops.size() && seed % 2 > 0; ++o) {
    if (p.ops[o].recomputable) continue;
    const auto v = static_cast<int32_t>(p.values.size());
    p.values.push_back({"fresh", 64 * (1 + upto(40)), true, 0, 0, true});
    p.ops[o].outputs.push_back(v);
    if (o + 1 < p.ops.size() && upto(1) > 0)
      p.ops[o + 1 + random() % (p.ops.size() - o - 1)].inputs.push_back(v);
    break;
  }
  return p;
}

TEST(HomeSolver, RandomProblemsHold) {
  for (const uint32_t seed : support::seeds(12)) {
    Problem p = random_homes(seed);
    check(p);
    const int64_t least = smallest_budget(p), all = keep_all_arena(p);
    ASSERT_LE(least_budget(p), least) << "seed " << seed;
    for (const double share : support::cases({0.0, 0.3, 0.7, 1.0}, 2)) {
      p.budget_bytes =
          least + static_cast<int64_t>(share * static_cast<double>(std::max<int64_t>(0, all - least)));
      if (p.budget_bytes == 0) continue;
      const Plan plan = solve(p);
      ASSERT_EQ(violation(p, plan), "") << "seed " << seed << " budget " << p.budget_bytes;
      ASSERT_EQ(problem_from_json(to_json(p)).values, p.values);
    }
  }
}

// Seconds with what living at home costs.
double seconds_of(const Problem& p, const Plan& plan) {
  double seconds = plan.predicted_seconds;
  for (size_t v = 0; v < p.values.size(); ++v)
    if (plan.home_offsets[v] >= 0) seconds += p.values[v].home_seconds;
  return seconds;
}

// Builds for sanitizers search a part: their plans are valid, but more memory may be slower.
bool searches_a_part() { return support::kSanitized && !support::long_campaign(); }

TEST(HomeSolver, MoreMemoryIsNotSlower) {
  if (searches_a_part()) GTEST_SKIP() << "a part of the search promises valid plans alone";
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    const Problem p = random_homes(seed);
    const int64_t least = smallest_budget(p), all = keep_all_arena(p);
    SolverCache cache;
    double before = 1e300;
    for (int64_t budget = least; budget < all; budget += std::max<int64_t>(1, (all - least) / 16)) {
      const std::optional<Plan> plan = cache.solve_within(p, budget);
      ASSERT_TRUE(plan) << "seed " << seed << " budget " << budget;
      const double seconds = seconds_of(p, *plan);
      EXPECT_LE(seconds, before * 1.01) << "seed " << seed << " budget " << budget;
      before = std::min(before, seconds);
    }
  }
}

// A limit ends what cannot be below it, and what is found without one is found below a limit above it.
TEST(HomeSolver, ALimitIsKept) {
  Problem p = layers(6, 640, 64000, 64000);
  p.budget_bytes = 5 * 64000;
  SolverCache cache;
  const Plan plan = cache.solve(p);
  const double seconds = seconds_of(p, plan), least = cache.least_seconds(p, p.budget_bytes);
  EXPECT_LE(least, seconds);
  EXPECT_FALSE(cache.solve_below(p, p.budget_bytes, least));
  EXPECT_FALSE(cache.solve_below(p, p.budget_bytes, seconds * (1 - 1e-6)));
  const std::optional<Plan> below = cache.solve_below(p, p.budget_bytes, seconds * 1.5);
  ASSERT_TRUE(below);
  EXPECT_LE(seconds_of(p, *below), seconds * 1.01);
  EXPECT_EQ(violation(p, *below), "");
}

// Each weight is read by an op of forward and changed by any one of backward: from then on the ops that read it must not run
// again, so that plans of scarce memory would read what was changed.
Problem changed_anywhere(std::mt19937& random) {
  const int n = 4 + static_cast<int>(random() % 4);
  Problem p = chain(n, 64 * (10 + random() % 90));
  p.links.push_back({"host", 0, 2000, 2000, 1, int64_t{1} << 40});
  for (int i = 0; i < n; ++i) {
    const auto w = static_cast<int32_t>(p.values.size());
    p.values.push_back(
        {"w" + std::to_string(i), static_cast<int64_t>(64 * (1 + random() % 20)), random() % 2 > 0, 0});
    p.ops[static_cast<size_t>(i)].inputs.push_back(w);
    Op& changes = p.ops[static_cast<size_t>(p.backward_begin) + random() % static_cast<size_t>(n)];
    changes.inputs.push_back(w);
    changes.outputs.push_back(w);
    changes.recomputable = false;
  }
  check(p);
  return p;
}

bool same_steps(const Plan& a, const Plan& b) {
  const auto same = [](const Step& x, const Step& y) {
    return x.kind == y.kind && x.index == y.index && x.offset == y.offset && x.offsets == y.offsets;
  };
  return std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(), same);
}

TEST(HomeSolver, PlansDoNotDependOnBudgetsAskedBefore) {
  for (uint32_t seed = 0; seed < (searches_a_part() ? 1 : 4); ++seed) {
    std::mt19937 random(seed);
    const Problem p = changed_anywhere(random);
    SolverCache one;
    const int64_t least = one.smallest(p).arena_bytes, most = solve(p).arena_bytes;
    for (int k = 1; k <= 3; ++k) {
      const int64_t budget = least + (most - least) * k / 4;
      const std::optional<Plan> after = one.solve_within(p, budget),
                                alone = SolverCache().solve_within(p, budget);
      ASSERT_EQ(after.has_value(), alone.has_value()) << "seed " << seed << ", " << budget << " bytes";
      if (!after) continue;
      EXPECT_EQ(after->predicted_seconds, alone->predicted_seconds)
          << "seed " << seed << ", " << budget << " bytes";
      EXPECT_TRUE(same_steps(*after, *alone)) << "seed " << seed << ", " << budget << " bytes";
    }
  }
}

}  // namespace
}  // namespace cairn::plan
