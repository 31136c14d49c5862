// Problems that are wrong or absurd: a clear error that names the place, or a plan; never a crash, and within
// bounded memory and time.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "runtime/plan/cache.h"
#include "tests/planner/cases.h"
#include "tests/runtime/plan/make_problem.h"

namespace cairn::plan {
namespace {

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinite = std::numeric_limits<double>::infinity();

// a0 -> f1 -> a1 -> f2 -> a2 -> loss -> g2 -> b2 -> g1 -> b1 -> g0, one region per layer, one link.
Problem sound() {
  Problem p = chain(2);
  p.links.push_back({"host", 1e-5, 1e9, 1e9, .7, 1 << 20});
  return p;
}

struct Bad {
  const char* name;
  std::function<void(Problem&)> spoil;
  const char* message;
};

const Bad kBad[] = {
    {"NegativeBytes", [](Problem& p) { p.values[1].bytes = -1; }, "values[1].bytes must not be negative: -1"},
    {"BytesOverflow", [](Problem& p) { p.values[1].bytes = p.values[2].bytes = kHuge; },
     "values[1] 'a1': the sum of all values' bytes overflows"},
    {"NegativeWorkspace", [](Problem& p) { p.ops[1].workspace_bytes = -5; },
     "ops[1].workspace_bytes must not be negative: -5"},
    {"WorkspaceOverflow", [](Problem& p) { p.ops[1].workspace_bytes = kHuge; }, "ops[1] 'f2': the workspace"},
    {"NegativeSeconds", [](Problem& p) { p.ops[2].seconds = -1; }, "ops[2].seconds"},
    {"NanSeconds", [](Problem& p) { p.ops[2].seconds = kNan; }, "ops[2].seconds"},
    {"InfiniteSeconds", [](Problem& p) { p.ops[2].seconds = kInfinite; }, "ops[2].seconds"},
    {"SecondsOverflow", [](Problem& p) { p.ops[2].seconds = p.ops[3].seconds = 1e308; },
     "the sum of the ops' seconds is not finite"},
    {"Cycle", [](Problem& p) { p.ops[0].inputs.push_back(2); }, "'f1' reads 'a2' before ops[1] makes it"},
    {"OwnOutput", [](Problem& p) { p.ops[0].inputs.push_back(1); }, "'f1' reads 'a1' before ops[0] makes it"},
    {"UnknownInput", [](Problem& p) { p.ops[1].inputs[0] = 99; }, "ops[1].inputs[0]: no value 99"},
    {"NegativeInput", [](Problem& p) { p.ops[1].inputs[0] = -1; }, "ops[1].inputs[0]: no value -1"},
    {"UnknownOutput", [](Problem& p) { p.ops[1].outputs[0] = 99; }, "ops[1].outputs[0]: no value 99"},
    {"MadeTwice", [](Problem& p) { p.ops[1].outputs[0] = 1; }, "value 'a1' is made twice, by ops[0] too"},
    {"MadeByNone",
     [](Problem& p) {
       p.values.push_back({"x", 64, false});
     },
     "'x' is made by no op and not persistent"},
    {"ValueNameTwice", [](Problem& p) { p.values[2].name = "a1"; }, "values[2]: the name 'a1' is taken"},
    {"OpNameTwice", [](Problem& p) { p.ops[2].name = "f1"; }, "ops[2]: the name 'f1' is taken"},
    {"EmptyName", [](Problem& p) { p.ops[2].name = ""; }, "ops[2]: the name is empty"},
    {"TurnaroundBeyond", [](Problem& p) { p.backward_begin = 99; }, "turnaround 99 lies outside"},
    {"TurnaroundNegative", [](Problem& p) { p.backward_begin = -1; }, "turnaround -1 lies outside"},
    {"BudgetNegative", [](Problem& p) { p.budget_bytes = -1; }, "budget_bytes must not be negative: -1"},
    {"UnknownRegion", [](Problem& p) { p.ops[1].region = 7; }, "ops[1].region: no region 7"},
    {"RegionInItself", [](Problem& p) { p.regions[0].parent = 0; }, "regions[0] 'r0': the parent"},
    {"RegionTwice", [](Problem& p) { p.regions[1].name = "r0"; }, "regions[1]: the name 'r0' is taken"},
    {"UnknownPolicy", [](Problem& p) { p.regions[0].policy = static_cast<Policy>(9); }, "unknown policy"},
    {"UnknownTier", [](Problem& p) { p.regions[0].offload_tier = 3; }, "regions[0] 'r0': offload_tier 3"},
    {"OffloadWithoutLink",
     [](Problem& p) {
       p.links.clear();
       p.regions[0].policy = Policy::kOffload;
     },
     "there is no link to offload to"},
    {"DeviceIsNoTier", [](Problem& p) { p.links[0].tier = "device"; }, "'device' is not a tier"},
    {"NoRate", [](Problem& p) { p.links[0].out_bytes_per_second = 0; }, "links[0].out_bytes_per_second"},
    {"NanRate", [](Problem& p) { p.links[0].in_bytes_per_second = kNan; }, "links[0].in_bytes_per_second"},
    {"NegativeLatency", [](Problem& p) { p.links[0].latency_seconds = -1; }, "links[0].latency_seconds"},
    {"FactorAboveOne", [](Problem& p) { p.links[0].both_ways_factor = 1.5; }, "links[0].both_ways_factor"},
    {"NegativeCapacity", [](Problem& p) { p.links[0].capacity_bytes = -1; }, "links[0].capacity_bytes"},
    {"EndlessCopies", [](Problem& p) { p.links[0].in_bytes_per_second = 1e-308; }, "would never end"},
};

struct BadProblem : testing::TestWithParam<Bad> {};

TEST_P(BadProblem, IsRefusedWithItsPlace) {
  Problem p = sound();
  GetParam().spoil(p);
  try {
    solve(p);
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kInvalidArgument) << e.what();
    EXPECT_NE(std::string(e.what()).find(GetParam().message), std::string::npos) << e.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Solve, BadProblem, testing::ValuesIn(kBad),
                         [](const auto& given) { return std::string(given.param.name); });

// Over budget: the code, the numbers, the op and the values in the message.
// What one cache knows of a problem is searched for once, however many budgets are refused.
void expect_over_budget(SolverCache& cache, const Problem& p) {
  try {
    cache.solve(p);
    FAIL() << "a plan for " << p.budget_bytes;
  } catch (const Error& e) {
    ASSERT_EQ(e.code(), Code::kOverBudget) << e.what();
    ASSERT_NE(e.fault(), nullptr);
    EXPECT_GT(static_cast<int64_t>(e.fault()->smallest_budget_bytes), p.budget_bytes);
    EXPECT_NE(std::string(e.what()).find(std::to_string(e.fault()->smallest_budget_bytes)),
              std::string::npos);
    Problem enough = p;
    enough.budget_bytes = static_cast<int64_t>(e.fault()->smallest_budget_bytes);
    const Plan plan = cache.solve(enough);
    EXPECT_EQ(violation(enough, plan), "");
  }
}
void expect_over_budget(const Problem& p) {
  SolverCache cache;
  expect_over_budget(cache, p);
}

TEST(BadBudget, OfOneByteOfTooFewAndOfAll) {
  for (const auto& [ops, links] : std::vector<std::pair<int, bool>>{{2, false}, {20, true}, {90, false}}) {
    Problem p = chain(ops);
    if (links) p.links.push_back({"host", 1e-5, 1e9, 1e9, .7, 1 << 20});
    const std::vector<int64_t> budgets = {1, p.persistent_bytes(), p.persistent_bytes() - 1,
                                          p.persistent_bytes() + 1};
    SolverCache cache;
    for (const int64_t budget : budgets) {
      p.budget_bytes = budget;
      expect_over_budget(cache, p);
    }
    p.budget_bytes = kHuge;
    EXPECT_EQ(violation(p, solve(p)), "");
  }
}

TEST(BadBudget, PersistentBytesAlone) {
  Problem p = sound();
  p.values[0].bytes = kHuge / 2;
  p.budget_bytes = kHuge / 4;
  expect_over_budget(p);
}

// Sizes and times at the ends of their ranges are no errors.
TEST(Extreme, SizesSecondsAndRates) {
  const double seconds[] = {0, 5e-324, 1e-300, 1e300};
  const int64_t bytes[] = {0, 1, int64_t{1} << 40, int64_t{1} << 58};
  for (double s : seconds)
    for (int64_t b : bytes)
      for (bool link : {false, true}) {
        Problem p = chain(6, b);
        for (Op& op : p.ops) op.seconds = s;
        if (link) p.links.push_back({"host", 0, 1e-3, 1e15, 1e-6, kHuge});
        const Plan all = solve(p);
        EXPECT_EQ(violation(p, all), "") << s << " s, " << b << " bytes";
        for (int64_t budget : {all.arena_bytes - 1, all.arena_bytes / 2, int64_t{1}}) {
          if ((p.budget_bytes = budget) <= 0) continue;
          try {
            EXPECT_EQ(violation(p, solve(p)), "") << s << " s, " << b << " bytes, budget " << budget;
          } catch (const Error& e) {
            EXPECT_EQ(e.code(), Code::kOverBudget) << e.what();
          }
        }
      }
}

// More than what sizes can be added up in: an error, before anything is searched.
TEST(Extreme, HugeWorkspaces) {
  for (const int64_t bytes : {kHuge / 2, kHuge / 2 + 1, kHuge / 4 * 3, kHuge / 16 * 15})
    for (const int64_t budget : {int64_t{0}, int64_t{1}, kHuge}) {
      Problem p = chain(2);
      p.ops[1].workspace_bytes = bytes;
      p.budget_bytes = budget;
      EXPECT_THROW(solve(p), Error) << bytes;
    }
}

// Counts and depths that are far from any model's: each in bounded time.
void expect_soon(const Problem& p) {
  const double start = processor_seconds();
  try {
    EXPECT_EQ(violation(p, solve(p)), "");
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kOverBudget) << e.what();
  }
  EXPECT_LT(processor_seconds() - start, 60) << p.ops.size() << " ops";  // a hang would be longer
}

TEST(Extreme, OneOpReadsThousandsOfValues) {
  Maker m;
  std::vector<std::string> all;
  m.value("in", 64, true);
  for (int i = 0; i < 3000; ++i) m.value(all.emplace_back("v" + std::to_string(i)), 64);
  m.value("out", 64).value("g", 64);
  for (const std::string& name : all) m.op("make_" + name, 1, {"in"}, {name});
  m.op("sum", 1, all, {"out"});
  std::vector<std::string> again = all;
  again.push_back("out");
  m.backward_begin().op("back", 1, again, {"g"});
  m.p.budget_bytes = 64 * 2000;
  expect_soon(m.p);
}

TEST(Extreme, OneValueIsReadByThousandsOfOps) {
  Maker m;
  m.value("in", 64, true).value("x", 6400);
  m.op("first", 1, {"in"}, {"x"});
  for (int i = 0; i < 2000; ++i) {
    const std::string n = std::to_string(i);
    m.value("y" + n, 64).op("f" + n, 1, {"x"}, {"y" + n});
  }
  m.backward_begin();
  for (int i = 2000; i-- > 0;) {
    const std::string n = std::to_string(i);
    m.value("g" + n, 64).op("b" + n, 1, {"x", "y" + n}, {"g" + n});
  }
  m.p.budget_bytes = 64 + 6400 + 64 * 500;
  expect_soon(m.p);
}

TEST(Extreme, NothingMayRunTwice) {
  Problem p = chain(500);
  for (Op& op : p.ops) op.recomputable = false;
  p.budget_bytes = 128 + 100 * 6400;
  expect_over_budget(p);
  p.links.push_back({"host", 0, 1e4, 1e4, .5, int64_t{1} << 40});
  expect_soon(p);
}

TEST(Extreme, SecondsOfTwentyOrders) {
  Problem p = chain(60);
  for (size_t i = 0; i < p.ops.size(); ++i) p.ops[i].seconds = std::pow(10, static_cast<double>(i % 20) - 12);
  p.budget_bytes = 128 + 20 * 6400;
  expect_soon(p);
}

TEST(Extreme, EverythingIsForwardOrBackward) {
  for (int backward_begin : {0, 1, 241, 120}) {
    Problem p = chain(120);
    p.backward_begin = backward_begin;
    p.budget_bytes = 128 + 60 * 6400;
    expect_soon(p);
  }
}

}  // namespace
}  // namespace cairn::plan
