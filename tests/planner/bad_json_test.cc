// The JSON form of problems under absurd counts, depths and lengths: an error that names the place or a
// problem, in time and memory in proportion to the text. (tests/runtime/plan/json/read_test.cc has the wrong
// and missing fields, tests/fuzz the mutations.)
#include <gtest/gtest.h>

#include <functional>

#include "runtime/base/error.h"
#include "runtime/plan/plan.h"
#include "tests/planner/cases.h"

namespace cairn::plan {
namespace {

struct Parts {
  std::string values =
      R"({"name":"x","bytes":64,"persistent":true},{"name":"y","bytes":64,"persistent":false})";
  std::string ops =
      R"({"name":"f","seconds":1,"workspace_bytes":0,"inputs":["x"],"outputs":["y"],"recomputable":true})";
  std::string links, regions, more;
  std::string backward_begin = "1", budget = "0";

  std::string text() const {
    return R"({"format":"cairn.problem/1","values":[)" + values + R"(],"ops":[)" + ops +
           R"(],"turnaround":)" + backward_begin + R"(,"regions":[)" + regions + R"(],"links":[)" + links +
           R"(],"budget_bytes":)" + budget + more + "}";
  }
};

std::string repeated(int count, const std::function<std::string(int)>& item, const char* between = ",") {
  std::string out;
  for (int i = 0; i < count; ++i) out += (i ? between : "") + item(i);
  return out;
}

std::string region_named(const std::string& path) { return R"({"name":")" + path + R"(","policy":"KEEP"})"; }

struct Absurd {
  const char* name;
  std::function<void(Parts&)> spoil;
  const char* message;
};

const Absurd kAbsurd[] = {
    {"DeepNestingAnywhere",
     [](Parts& p) { p.more = R"(,"note":)" + std::string(200000, '[') + std::string(200000, ']'); },
     "not JSON"},
    {"DeepRegions",
     [](Parts& p) {
       p.regions = region_named(repeated(
           200, [](int) { return "r"; }, "/"));
     },
     "regions[0].name: regions nest deeper than"},
    {"LongName", [](Parts& p) { p.values.replace(9, 1, std::string(100000, 'x')); },
     "values[0].name: longer than"},
    {"ManyLinks",
     [](Parts& p) {
       p.links = repeated(2000, [](int i) {
         return R"({"tier":"t)" + std::to_string(i) + R"(","latency_seconds":0,"out_bytes_per_second":1,)" +
                R"("in_bytes_per_second":1,"both_ways_factor":1,"capacity_bytes":1})";
       });
     },
     "links: more than 1024 items"},
    {"KeyTwiceFarInside", [](Parts& p) { p.more = R"(,"note":{"a":[{},{"b":[1,{"c":1,"c":2}]}]})"; },
     "note.a[1].b[1]: the key 'c' appears twice"},
    {"KeyTwiceAtTheTop", [](Parts& p) { p.more = R"(,"budget_bytes":5)"; },
     "the key 'budget_bytes' appears twice"},
    {"Cycle",
     [](Parts& p) {
       p.values += R"(,{"name":"z","bytes":1,"persistent":false})";
       p.ops =
           R"({"name":"f","seconds":1,"workspace_bytes":0,"inputs":["z"],"outputs":["y"],"recomputable":true},)"
           R"({"name":"g","seconds":1,"workspace_bytes":0,"inputs":["y"],"outputs":["z"],"recomputable":true})";
     },
     "'f' reads 'z' before ops[1] makes it"},
    {"NegativeBudget", [](Parts& p) { p.budget = "-1"; }, "budget_bytes: must not be negative: -1"},
    {"NegativeTurnaround", [](Parts& p) { p.backward_begin = "-1"; }, "turnaround: must not be negative: -1"},
    {"HugeTurnaround", [](Parts& p) { p.backward_begin = "4294967297"; },
     "turnaround: 4294967297 is beyond the last op"},
    {"BudgetBeyond64Bits", [](Parts& p) { p.budget = "18446744073709551616"; }, "not JSON"},
    {"BytesThatOverflowTogether",
     [](Parts& p) {
       p.values = R"({"name":"x","bytes":9223372036854775807,"persistent":true},)"
                  R"({"name":"y","bytes":9223372036854775807,"persistent":false})";
     },
     "values[1] 'y': the sum of all values' bytes overflows"},
    {"SecondsThatOverflow",
     [](Parts& p) {
       p.ops = repeated(3, [](int i) {
         return R"({"name":"f)" + std::to_string(i) +
                R"(","seconds":1e308,"workspace_bytes":0,"inputs":[],"outputs":)" + (i ? "[]" : R"(["y"])") +
                R"(,"recomputable":true})";
       });
     },
     "the sum of the ops' seconds is not finite"},
};

struct AbsurdJson : testing::TestWithParam<Absurd> {};

TEST_P(AbsurdJson, IsRefusedWithItsPlace) {
  Parts parts;
  GetParam().spoil(parts);
  try {
    problem_from_json(parts.text());
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_TRUE(e.code() == Code::kInvalidArgument || e.code() == Code::kCorruptFile);
    EXPECT_NE(std::string(e.what()).find(GetParam().message), std::string::npos) << e.what();
    EXPECT_LT(std::string(e.what()).size(), 20000u);
  }
}

INSTANTIATE_TEST_SUITE_P(Reader, AbsurdJson, testing::ValuesIn(kAbsurd),
                         [](const auto& given) { return std::string(given.param.name); });

// What is long but right is read, in time in proportion to it (nothing here is quadratic: 60 s for a few MB
// would be).
TEST(LongJson, ManyOpsInputsAndRegions) {
  const double start = processor_seconds();
  Parts many;
  many.ops += ",";
  many.ops += repeated(20000, [](int i) {
    return R"({"name":"n)" + std::to_string(i) +
           R"(","seconds":1,"workspace_bytes":0,"inputs":["y"],"outputs":[],)" +
           R"("recomputable":true,"region":"a)" + std::to_string(i % 5000) + R"(/b/c/d"})";
  });
  EXPECT_EQ(problem_from_json(many.text()).regions.size(), 20000u);

  Parts wide;  // one op that names the same value 200,000 times
  wide.ops += R"(,{"name":"g","seconds":1,"workspace_bytes":0,"outputs":[],"recomputable":true,"inputs":[)" +
              repeated(200000, [](int) { return R"("y")"; }) + "]}";
  const Problem p = problem_from_json(wide.text());
  EXPECT_EQ(p.ops[1].inputs.size(), 200000u);
  EXPECT_EQ(violation(p, solve(p)), "");
  EXPECT_LT(processor_seconds() - start, 60);
}

}  // namespace
}  // namespace cairn::plan
