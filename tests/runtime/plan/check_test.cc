#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "make_problem.h"
#include "runtime/plan/problem.h"

namespace cairn::plan {
namespace {

struct Case {
  const char* name;
  std::function<void(Problem&)> spoil;
  const char* message;
};

TEST(Check, RefusesWhatIsWrongAndNamesThePlace) {
  const Case cases[] = {
      {"value twice", [](Problem& p) { p.values[2].name = "a1"; },
       "values[2]: the name 'a1' is taken by values[1]"},
      {"op twice", [](Problem& p) { p.ops[1].name = "f1"; }, "ops[1]: the name 'f1' is taken"},
      {"empty name", [](Problem& p) { p.values[1].name = ""; }, "values[1]: the name is empty"},
      {"bytes", [](Problem& p) { p.values[1].bytes = -1; }, "values[1].bytes must not be negative: -1"},
      {"sum", [](Problem& p) { p.values[1].bytes = p.values[2].bytes = INT64_MAX / 2 + 1; },
       "overflows 64 bits"},
      {"workspace sum", [](Problem& p) { p.ops[0].workspace_bytes = INT64_MAX; }, "overflow 64 bits"},
      {"seconds", [](Problem& p) { p.ops[3].seconds = std::nan(""); }, "ops[3].seconds must be finite"},
      {"negative seconds", [](Problem& p) { p.ops[3].seconds = -1; }, "ops[3].seconds must be finite"},
      {"infinite sum", [](Problem& p) { p.ops[0].seconds = p.ops[1].seconds = 1.7e308; }, "not finite"},
      {"input", [](Problem& p) { p.ops[2].inputs[0] = 99; }, "ops[2].inputs[0]: no value 99"},
      {"output", [](Problem& p) { p.ops[2].outputs[0] = -1; }, "ops[2].outputs[0]: no value -1"},
      {"made twice", [](Problem& p) { p.ops[1].outputs[0] = 1; },
       "ops[1].outputs[0]: value 'a1' is made twice, by ops[0]"},
      {"before made", [](Problem& p) { p.ops[0].inputs[0] = 2; },
       "ops[0].inputs[0]: 'f1' reads 'a2' before ops[1]"},
      {"own output", [](Problem& p) { p.ops[0].inputs[0] = 1; },
       "ops[0].inputs[0]: 'f1' reads 'a1' before ops[0]"},
      {"made by none", [](Problem& p) { p.values[0].persistent = false; },
       "'a0' is made by no op and not persistent"},
      {"region", [](Problem& p) { p.ops[0].region = 77; }, "ops[0].region: no region 77"},
      {"parent", [](Problem& p) { p.regions[0].parent = 0; },
       "regions[0] 'r0': the parent must come before it"},
      {"offload", [](Problem& p) { p.regions[0].policy = Policy::kOffload; }, "there is no link"},
      {"turnaround", [](Problem& p) { p.backward_begin = 100; }, "turnaround 100 lies outside"},
      {"budget", [](Problem& p) { p.budget_bytes = -5; }, "budget_bytes must not be negative"},
      {"rate",
       [](Problem& p) {
         p.links.push_back({"host", 0, 0, 1, 1, 1});
       },
       "links[0].out_bytes_per_second"},
      {"factor",
       [](Problem& p) {
         p.links.push_back({"host", 0, 1, 1, 1.5, 1});
       },
       "both_ways_factor is above 1"},
      {"device",
       [](Problem& p) {
         p.links.push_back({"device", 0, 1, 1, 1, 1});
       },
       "'device' is not a tier"},
      {"endless copy",
       [](Problem& p) {
         p.links.push_back({"host", 0, 1e-320, 1, 1, 1});
       },
       "would never end"},
      {"home without link", [](Problem& p) { p.values[0].home = 0; }, "its 'home' 0 is none of 0 links"},
      {"full tier",
       [](Problem& p) {
         p.links.push_back({"host", 0, 1, 1, 1, 63});
         p.values[0].persistent = false;
         p.values[0].home = 0;
       },
       "the tier 'host' is full"},
      {"changed and made again",
       [](Problem& p) {
         p.links.push_back({"host", 0, 1, 1, 1, 64});
         p.values[0].home = 0;
         p.ops[1].outputs.push_back(0);
       },
       "'f2' changes 'a0', which lives in a tier, and so may not be recomputable"},
      {"changed twice by one op",
       [](Problem& p) {
         p.links.push_back({"host", 0, 1, 1, 1, 64});
         p.values[0].home = 0;
         p.ops[1].recomputable = false;
         p.ops[1].outputs = {2, 0, 0};
       },
       "ops[1].outputs[2]: 'f2' names 'a0' twice"},
      {"fresh without home", [](Problem& p) { p.values[0].fresh = true; },
       "'a0' is fresh, and lives in no tier"},
      {"fresh and read first",
       [](Problem& p) {
         p.links.push_back({"host", 0, 1, 1, 1, 64});
         p.values[0].home = 0;
         p.values[0].fresh = true;
       },
       "ops[0].inputs[0]: 'f1' reads 'a0', which is fresh, before an op writes it"},
      {"fresh and changed twice",
       [](Problem& p) {
         p.links.push_back({"host", 0, 1, 1, 1, 64});
         p.values.push_back({"d", 64, true, 0, 0, true});
         for (size_t o : {1, 2}) {
           p.ops[o].recomputable = false;
           p.ops[o].outputs.push_back(static_cast<int32_t>(p.values.size()) - 1);
         }
       },
       "'d' is fresh, and changed twice, by ops[1] too"},
  };
  for (const Case& c : cases) {
    Problem p = chain(3);
    check(p);
    c.spoil(p);
    try {
      check(p);
      ADD_FAILURE() << c.name << ": accepted";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kInvalidArgument) << c.name;
      EXPECT_NE(std::string(e.what()).find(c.message), std::string::npos) << c.name << ": " << e.what();
    }
  }
}

TEST(Check, PersistentBytesAreSummed) { EXPECT_EQ(chain(3).persistent_bytes(), 128); }

}  // namespace
}  // namespace cairn::plan
