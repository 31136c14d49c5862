#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/runtime/plan/make_problem.h"

namespace cairn::plan {
namespace {

TEST(JsonRead, WhatWasWrittenReadsBack) {
  EXPECT_TRUE(rc::check([](uint32_t seed) {
    Problem p = random_problem(seed);
    p.budget_bytes = 12345;
    for (size_t r = 0; r < p.regions.size(); ++r)  // a name is the whole path
      p.regions[r].name = (p.regions[r].parent >= 0 ? p.regions[p.regions[r].parent].name + "/" : "") + "r" +
                          std::to_string(r);
    const std::string text = to_json(p);
    const Problem back = problem_from_json(text);
    RC_ASSERT(to_json(back) == text);
    RC_ASSERT(back.regions.size() == p.regions.size());
    for (size_t r = 0; r < p.regions.size(); ++r) RC_ASSERT(back.regions[r].parent == p.regions[r].parent);
    for (size_t i = 0; i < p.ops.size(); ++i) RC_ASSERT(back.ops[i].region == p.ops[i].region);
  }));
}

const std::string kGood = R"({ "format": "cairn.problem/1", "note": [1, {"any": null}],
  "values": [ {"name": "x", "bytes": 64, "persistent": true}, {"name": "y", "bytes": 4096, "persistent": false} ],
  "ops": [ {"name": "f", "seconds": 1, "workspace_bytes": 0, "inputs": ["x"], "outputs": ["y"], "recomputable": true,
            "region": "h0/attn"} ],
  "turnaround": 1,
  "links": [ {"tier": "host", "latency_seconds": 1e-5, "out_bytes_per_second": 5e10, "in_bytes_per_second": 5e10,
              "both_ways_factor": 0.7, "capacity_bytes": 100} ],
  "budget_bytes": 100000 })";

TEST(JsonRead, RegionsComeFromPaths) {
  const Problem p = problem_from_json(kGood);
  ASSERT_EQ(p.regions.size(), 2u);
  EXPECT_EQ(p.regions[0].name, "h0");
  EXPECT_EQ(p.regions[1].name, "h0/attn");
  EXPECT_EQ(p.regions[1].parent, 0);
  EXPECT_EQ(p.ops[0].region, 1);
  EXPECT_EQ(p.ops[0].seconds, 1);
}

// In both forms; what is not there is 1, and what is 1 is not written.
TEST(JsonRead, ALinkMayTakeFromKernels) {
  for (const char* form : {"cairn.problem/1", "cairn.problem/2"}) {
    std::string text = kGood;
    text.replace(text.find("cairn.problem/1"), 15, form);
    const Problem without = problem_from_json(text);
    EXPECT_FALSE(without.links[0].competes());
    EXPECT_EQ(to_json(without).find("busy"), std::string::npos);
    text.replace(text.find("\"capacity_bytes\""), 0, R"("busy_factor": 0.75, "busy_rate_factor": 0.5, )");
    const Problem with = problem_from_json(text);
    EXPECT_EQ(with.links[0].busy_factor, 0.75);
    EXPECT_EQ(with.links[0].busy_rate_factor, 0.5);
    EXPECT_EQ(problem_from_json(to_json(with)).links, with.links);
  }
}

const std::string kHomes = R"({ "format": "cairn.problem/2",
  "values": [ {"name": "w", "bytes": 64, "persistent": true, "home": "host", "clean": true, "home_seconds": 0.5},
              {"name": "g", "bytes": 64, "persistent": false, "home": "host"} ],
  "ops": [ {"name": "f", "seconds": 1, "workspace_bytes": 0, "inputs": ["w"], "outputs": ["g"], "recomputable": false} ],
  "turnaround": 1,
  "links": [ {"tier": "host", "latency_seconds": 0, "out_bytes_per_second": 5e10, "in_bytes_per_second": 5e10,
              "both_ways_factor": 1, "capacity_bytes": 1000} ],
  "budget_bytes": 0 })";

TEST(JsonRead, HomesAreLinks) {
  const Problem p = problem_from_json(kHomes);
  EXPECT_EQ(p.values[0].home, 0);
  EXPECT_EQ(p.values[0].home_seconds, 0.5);
  EXPECT_TRUE(p.values[0].persistent);
  EXPECT_TRUE(p.values[1].at_home());
  const std::string plan = to_json(p, solve(p), true);
  EXPECT_NE(plan.find("\"cairn.plan/2\""), std::string::npos);
  EXPECT_NE(plan.find("[\"out\", \"g\", \"host\"]"), std::string::npos) << plan;
  for (const auto& [from, to, message] :
       {std::tuple{"\"host\", \"clean\"", "\"attic\", \"clean\"",
                   "values[0].home: no link leads to the tier 'attic'"},
        std::tuple{"\"home\": \"host\"} ]", "\"home\": \"host\", \"clean\": true} ]",
                   "'g' is said to be clean, and 'f' changes it"}}) {
    std::string text = kHomes;
    text.replace(text.find(from), std::string_view(from).size(), to);
    try {
      problem_from_json(text);
      ADD_FAILURE() << message;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(message), std::string::npos) << e.what();
    }
  }
}

TEST(JsonRead, FreshValuesAreSaidToBe) {
  std::string text = kHomes;
  const std::string home = "\"home\": \"host\"} ]";
  text.replace(text.find(home), home.size(), "\"home\": \"host\", \"fresh\": true} ]");
  const Problem p = problem_from_json(text);
  EXPECT_FALSE(p.values[0].fresh);
  EXPECT_TRUE(p.values[1].fresh);
  EXPECT_EQ(problem_from_json(to_json(p)).values, p.values);
}

TEST(JsonRead, BadInputNamesThePlace) {
  struct Case {
    const char *from, *to, *message;
  };
  const Case cases[] = {
      {"cairn.problem/1", "cairn.plan/1",
       "expected 'cairn.problem/1' or 'cairn.problem/2', found 'cairn.plan/1'"},
      {"\"format\": \"cairn.problem/1\",", "", "format is missing"},
      {"\"bytes\": 64", "\"bytes\": 64.0", "values[0].bytes: not a 64-bit integer"},
      {"\"bytes\": 64", "\"bytes\": 6e4", "values[0].bytes: not a 64-bit integer"},
      {"\"bytes\": 64", "\"bytes\": -64", "values[0].bytes: must not be negative"},
      {"\"bytes\": 64", "\"bytes\": 9223372036854775808", "values[0].bytes: not a 64-bit integer"},
      {"\"bytes\": 64", "\"bytes\": \"64\"", "values[0].bytes: not a 64-bit integer"},
      {"\"bytes\": 64", "\"bytes\": 64, \"bytes\": 65", "values[0]: the key 'bytes' appears twice"},
      {"{\"any\": null}", "{\"any\": null, \"any\": 1}", "note[1]: the key 'any' appears twice"},
      {"\"persistent\": true", "\"persistent\": 1", "values[0].persistent: not true or false"},
      {"\"name\": \"y\"", "\"name\": \"x\"", "values[1].name: the name 'x' appears twice"},
      {"\"inputs\": [\"x\"]", "\"inputs\": [\"x\", \"z\"]", "ops[0].inputs[1]: unknown value 'z'"},
      {"\"inputs\": [\"x\"]", "\"inputs\": [\"x\", 5]", "ops[0].inputs[1]: not a string"},
      {"\"inputs\": [\"x\"]", "\"inputs\": \"x\"", "ops[0].inputs: not a list"},
      {"\"inputs\": [\"x\"],", "", "ops[0].inputs is missing"},
      {"\"inputs\": [\"x\"]", "\"inputs\": [\"y\"]", "reads 'y' before"},
      {"\"seconds\": 1", "\"seconds\": -1", "ops[0].seconds: must be finite and not negative"},
      {"\"seconds\": 1", "\"seconds\": 1e999", "not JSON"},
      {"\"seconds\": 1", "\"seconds\": NaN", "not JSON"},
      {"h0/attn", "h0//attn", "ops[0].region: a part of the path"},
      {"h0/attn", "/attn", "ops[0].region: a part of the path"},
      {"h0/attn", "h0/attn/", "ops[0].region: a part of the path"},
      {"\"turnaround\": 1", "\"turnaround\": 2", "turnaround: 2 is beyond the last op"},
      {"\"turnaround\": 1", "\"turnaround\": 99999999999", "is beyond the last op"},
      {"0.7", "0", "both_ways_factor must be finite and above 0"},
      {"0.7", "0.7, \"busy_factor\": 0", "busy_factor must be finite and above 0"},
      {"0.7", "0.7, \"busy_factor\": 1.25", "links[0].busy_factor is above 1: 1.25"},
      {"0.7", "0.7, \"busy_rate_factor\": 1.25", "links[0].busy_rate_factor is above 1: 1.25"},
      {"0.7", "0.7, \"busy_rate_factor\": true", "links[0].busy_rate_factor: not a"},
      {"\"host\"", "\"device\"", "'device' is not a tier"},
      {"\"turnaround\": 1", "\"turnaround\": 1, \"regions\": [{\"name\": \"h0\", \"policy\": \"MAYBE\"}]",
       "regions[0].policy: unknown policy 'MAYBE'; known are PLANNER_DECIDES, KEEP"},
      {"\"turnaround\": 1",
       "\"turnaround\": 1, \"regions\": [{\"name\": \"h0\", \"policy\": \"OFFLOAD\", \"tier\": \"moon\"}]",
       "regions[0].tier: unknown tier 'moon'"},
      {"\"turnaround\": 1",
       "\"turnaround\": 1, \"regions\": [{\"name\": \"h0\", \"policy\": \"KEEP\"}, "
       "{\"name\": \"h0\", \"policy\": \"RECOMPUTE\"}]",
       "regions[1].name: the region 'h0' appears twice"},
      {"100000 }", "100000 ", "not JSON"},
  };
  for (const Case& c : cases) {
    std::string text = kGood;
    const size_t at = text.find(c.from);
    ASSERT_NE(at, std::string::npos) << c.from;
    text.replace(at, std::string(c.from).size(), c.to);
    try {
      problem_from_json(text);
      ADD_FAILURE() << c.to << ": accepted";
    } catch (const Error& e) {
      EXPECT_TRUE(e.code() == Code::kInvalidArgument || e.code() == Code::kCorruptFile);
      EXPECT_NE(std::string(e.what()).find(c.message), std::string::npos) << c.to << ": " << e.what();
    }
  }
}

TEST(JsonRead, AnyBytesEndInSuccessOrAnError) {
  for (const std::string& text :
       {std::string(), std::string("null"), std::string("[]"), std::string("{"), std::string(1000000, '['),
        std::string("\xff\xfe"), std::string("{\"format\": 3}"), std::string(3, '\0')})
    EXPECT_THROW(problem_from_json(text), Error);
  EXPECT_TRUE(rc::check([](uint32_t seed) {
    std::mt19937 random(seed);
    std::string text = kGood;
    for (int k = 1 + static_cast<int>(random() % 4); k-- > 0;) {
      const size_t at = random() % text.size();
      if (random() % 2)
        text[at] = static_cast<char>(random() % 256);
      else
        text.erase(at, 1 + random() % 20);
    }
    try {
      check(problem_from_json(text));
    } catch (const Error&) {
    }
  }));
}

}  // namespace
}  // namespace cairn::plan
