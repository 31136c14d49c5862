#include <gtest/gtest.h>

#include "tests/runtime/plan/make_problem.h"

namespace cairn::plan {
namespace {

TEST(JsonWrite, PlanFollowsTheForm) {
  Maker m;
  m.value("x", 64, true).value("a\"1", 128).value("g", 64, true);
  m.op("f", .5, {"x"}, {"a\"1"}, 64).backward_begin().op("b", 1, {"a\"1"}, {"g"});
  Plan plan = solve(m.p);
  plan.solve_seconds = .25;
  EXPECT_EQ(to_json(m.p, plan, true), R"({ "format": "cairn.plan/1", "budget_bytes": 0,
"arena_bytes": 320, "peak_bytes": {"device": 320},
"predicted_seconds": 1.5, "keep_all_seconds": 1.5, "bound_seconds": 1.5, "gap": 0, "solve_seconds": 0.25,
"values": [
  {"name": "x", "decision": "persistent", "reason": "persistent: on the device from start to end", "bytes": 64, "offset": 0, "first_step": 0, "last_step": 2},
  {"name": "a\"1", "decision": "keep", "reason": "fits", "bytes": 128, "offset": 128, "first_step": 0, "last_step": 2},
  {"name": "g", "decision": "persistent", "reason": "persistent: on the device from start to end", "bytes": 64, "offset": 64, "first_step": 0, "last_step": 2}],
"steps": [
  ["run", "f", {"a\"1": 128}, 256],
  ["run", "b", {}, 128],
  ["free", "a\"1"]] }
)");
  EXPECT_EQ(to_json(m.p, plan, false).find("steps\""), std::string::npos);
}

TEST(JsonWrite, CopiesNameTheirTier) {
  Problem p = chain(4, 6400, 4, Policy::kOffload);
  p.links.push_back({"host", 0, 6400, 6400, 1, 1 << 20});
  const std::string text = to_json(p, solve(p), true);
  for (const char* part :
       {"[\"out\", \"a1\", \"host\"]", "[\"wait_out\", \"a1\"]", "[\"in\", \"a1\", \"host\", ",
        "[\"wait_in\", \"a1\"]", "[\"drop\", \"a1\", \"host\"]", "\"decision\": \"offload:host\"",
        "\"peak_bytes\": {\"device\": "})
    EXPECT_NE(text.find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace cairn::plan
