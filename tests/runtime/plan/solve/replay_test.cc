#include <gtest/gtest.h>

#include <functional>

#include "tests/runtime/plan/make_problem.h"

namespace cairn::plan {
namespace {

Problem pressed() {
  Problem p = chain(8, 6400, 2);
  p.links.push_back({"host", 0, 6400 * 2, 6400 * 2, .7, 3 * 6400});
  for (int r : {0, 1}) p.regions[r].policy = r ? Policy::kOffload : Policy::kRecompute;
  return p;
}

size_t find(const Plan& plan, StepKind kind, size_t from = 0) {
  for (size_t s = from; s < plan.steps.size(); ++s)
    if (plan.steps[s].kind == kind) return s;
  ADD_FAILURE() << "no such step";
  return 0;
}

void erase(Plan& plan, size_t s) { plan.steps.erase(plan.steps.begin() + static_cast<int64_t>(s)); }

// The first step from which on an op that ran runs again.
size_t second_run(const Plan& plan) {
  std::vector<int> ran(100, 0);
  for (size_t s = 0; s < plan.steps.size(); ++s)
    if (plan.steps[s].kind == StepKind::kRun && ran[plan.steps[s].index]++) return s;
  ADD_FAILURE() << "nothing runs again";
  return 0;
}

TEST(Replay, FindsEveryKindOfMistake) {
  struct Case {
    const char* name;
    std::function<void(Problem&, Plan&)> spoil;
    const char* message;
  };
  const Case cases[] = {
      {"wait_out left out", [](Problem&, Plan& q) { erase(q, find(q, StepKind::kWaitOut)); }, "in flight"},
      {"wait_in left out", [](Problem&, Plan& q) { erase(q, find(q, StepKind::kWaitIn)); }, "in flight"},
      {"wait_in and drop left out",
       [](Problem&, Plan& q) {
         const size_t s = find(q, StepKind::kWaitIn);
         erase(q, s + 1);
         erase(q, s);
       },
       "still being copied in"},
      {"out left out", [](Problem&, Plan& q) { erase(q, find(q, StepKind::kOut)); }, "going out"},
      {"in left out", [](Problem&, Plan& q) { erase(q, find(q, StepKind::kIn)); }, "coming in"},
      {"free left out", [](Problem&, Plan& q) { erase(q, find(q, StepKind::kFree)); },
       "at another offset|overlaps|already|peak"},
      {"freed early",
       [](Problem&, Plan& q) {
         const size_t s = find(q, StepKind::kFree);
         std::swap(q.steps[s], q.steps[s - 1]);
       },
       "not on the device"},
      {"freed twice",
       [](Problem&, Plan& q) {
         const size_t s = find(q, StepKind::kFree);
         q.steps.insert(q.steps.begin() + static_cast<int64_t>(s), q.steps[s]);
       },
       "not on the device"},
      {"overlap", [](Problem&, Plan& q) { q.steps[1].offsets[0] = q.steps[0].offsets[0] + 64; }, "overlaps"},
      {"below the persistent", [](Problem&, Plan& q) { q.steps[0].offsets[0] = 0; }, "below"},
      {"over 64 bits", [](Problem&, Plan& q) { q.steps[0].offsets[0] = INT64_MAX - 5; }, "64 bits"},
      {"an op left out", [](Problem&, Plan& q) { erase(q, second_run(q)); }, "not on the device"},
      {"first runs out of order", [](Problem&, Plan& q) { std::swap(q.steps[0], q.steps[1]); },
       "before an op ahead"},
      {"the end left out", [](Problem&, Plan& q) { q.steps.resize(q.steps.size() - 4); }, "ends before"},
      {"not recomputable",
       [](Problem& p, Plan& q) { p.ops[q.steps[second_run(q)].index].recomputable = false; },
       "may not run again"},
      {"a persistent value placed",
       [](Problem&, Plan& q) { q.steps[find(q, StepKind::kRun, q.steps.size() - 3)].offsets[0] = 128; },
       "is not placed"},
      {"persistent freed", [](Problem&, Plan& q) { q.steps[find(q, StepKind::kFree)].index = 0; },
       "persistent"},
      {"no such value", [](Problem&, Plan& q) { q.steps[find(q, StepKind::kFree)].index = 1000; },
       "no value 1000"},
      {"no such link", [](Problem&, Plan& q) { q.steps[find(q, StepKind::kOut)].tier = 3; }, "no link 3"},
      {"tier overlap",
       [](Problem&, Plan& q) {
         const size_t a = find(q, StepKind::kOut), b = find(q, StepKind::kOut, a + 1);
         q.steps[b].tier_offset = q.steps[a].tier_offset + 1;
       },
       "overlaps"},
      {"copy elsewhere", [](Problem&, Plan& q) { q.steps[find(q, StepKind::kIn)].tier_offset += 64; },
       "elsewhere"},
      {"capacity", [](Problem& p, Plan&) { p.links[0].capacity_bytes = 6400; }, "over its capacity"},
      {"dropped twice",
       [](Problem&, Plan& q) {
         const size_t s = find(q, StepKind::kDrop);
         q.steps.insert(q.steps.begin() + static_cast<int64_t>(s), q.steps[s]);
       },
       "holds no copy"},
      {"budget", [](Problem& p, Plan& q) { p.budget_bytes = q.budget_bytes = q.arena_bytes - 1; },
       "over the budget"},
      {"arena claim", [](Problem&, Plan& q) { q.arena_bytes -= 1; }, "arena_bytes is said"},
      {"peak claim", [](Problem&, Plan& q) { q.device_peak_bytes += 64; }, "device_peak_bytes is said"},
      {"tier claim", [](Problem&, Plan& q) { q.tier_peak_bytes[0] += 1; }, "tier_peak_bytes is said"},
      {"tier arena claim", [](Problem&, Plan& q) { q.tier_arena_bytes[0] += 1; }, "tier_arena_bytes is said"},
      {"seconds claim", [](Problem&, Plan& q) { q.predicted_seconds *= 1.001; }, "predicted_seconds is said"},
      {"keep-all claim", [](Problem&, Plan& q) { q.keep_all_seconds = 1; }, "keep_all_seconds is said"},
      {"bound claim", [](Problem&, Plan& q) { q.bound_seconds = q.predicted_seconds * 1.01; },
       "is above the plan's own"},
      {"gap claim", [](Problem&, Plan& q) { q.gap += .1; }, "gap is said"},
      {"decision", [](Problem&, Plan& q) { q.values[1].decision = Decision::kKeep; }, "decision of 'a1'"},
      {"value offsets", [](Problem&, Plan& q) { q.value_offsets[0] = 64; }, "overlaps"},
      {"budget claim", [](Problem&, Plan& q) { q.budget_bytes = 5; }, "budget_bytes is said"},
  };
  for (const Case& c : cases) {
    Problem p = pressed();
    Plan plan = solve(p);
    ASSERT_EQ(violation(p, plan), "");
    c.spoil(p, plan);
    const std::string found = violation(p, plan);
    bool named = false;
    for (std::string list = c.message; !list.empty();) {
      const size_t bar = list.find('|');
      named |= found.find(list.substr(0, bar)) != std::string::npos;
      list = bar == std::string::npos ? "" : list.substr(bar + 1);
    }
    EXPECT_TRUE(!found.empty() && named) << c.name << ": '" << found << "'";
  }
}

}  // namespace
}  // namespace cairn::plan
