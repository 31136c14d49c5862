#include <gtest/gtest.h>

#include <map>

#include "runtime/plan/search/search.h"
#include "tests/runtime/plan/make_problem.h"
#include "tests/support/seeds.h"

namespace cairn::plan {
namespace {

// Convolutions with their norms on so many levels of falling size, down and up again; each way up reads what the way down made.
Problem u_shaped(int levels, int blocks) {
  Maker m;
  m.value("in", 1, true).value("end", 1, true);
  struct Made {
    std::string name, input, skip;
    int64_t bytes;
  };
  std::vector<Made> made;
  std::vector<std::string> skips;
  std::string last = "in";
  const auto make = [&](const std::string& name, double seconds, int64_t bytes,
                        const std::string& skip = "") {
    m.value(name, bytes);
    m.op(name, seconds, skip.empty() ? std::vector{last} : std::vector{last, skip}, {name});
    made.push_back({name, last, skip, bytes});
    last = name;
  };
  const auto block = [&](const std::string& name, int64_t bytes) {
    make(name + ".norm", .1, bytes);
    make(name + ".relu", .1, bytes);
    make(name + ".conv", 1, bytes);
  };
  for (int level = 0; level < levels; ++level) {
    for (int b = 0; b < blocks; ++b) {
      block("d" + std::to_string(level) + std::to_string(b), int64_t{64000} >> level);
      skips.push_back(last);
    }
    make("pool" + std::to_string(level), .1, int64_t{16000} >> level);
  }
  for (int level = levels; level-- > 0;) {
    for (int b = 0; b < blocks; ++b) {
      const std::string name = "u" + std::to_string(level) + std::to_string(b);
      make(name + ".cat", .2, int64_t{128000} >> level, skips.back());
      skips.pop_back();
      block(name, int64_t{64000} >> level);
    }
  }
  m.backward_begin();
  m.value("g." + last, made.back().bytes).op("loss", .1, {last}, {"g." + last}, 0, false);
  // What is read twice has its gradients summed.
  std::map<std::string, std::string> gradient = {{last, "g." + last}};
  for (size_t k = made.size(); k-- > 0;) {
    const Made& f = made[k];
    std::vector<std::string> reads = {gradient.at(f.name)}, makes;
    if (f.name.find("cat") == std::string::npos && f.input != "in") reads.push_back(f.input);
    for (const std::string& input : {f.input, f.skip}) {
      if (input.empty() || input == "in") continue;
      if (const auto sum = gradient.find(input); sum != gradient.end()) reads.push_back(sum->second);
      makes.push_back("g." + input + "." + f.name);
      m.value(makes.back(), m.p.values[m.find(input)].bytes);
      gradient[input] = makes.back();
    }
    if (makes.empty()) makes.push_back("end");
    m.op("b." + f.name, f.name.find("conv") == std::string::npos ? .2 : 2, reads, makes);
  }
  return m.p;
}

// Such graphs have few stages: only plans that begin with segments and are annealed by excess are fast little above the smallest
// budget (without: 4.5 and 2.6 times the seconds of keeping everything).
TEST(SearchAll, LittleMemoryIsNotMuchSlowerWhereForwardIsNoChain) {
  if (support::kSanitized && !support::long_campaign())
    GTEST_SKIP() << "a part of the search promises valid plans alone";
  const Problem p = u_shaped(2, 3);
  ASSERT_LE(p.ops.size(), kSmallProblem);
  Search search(p, true);
  search_all_budgets(search);
  const int64_t smallest = search.lowest()->plan.arena_bytes;
  for (const auto& [percent, times] : {std::pair{100, 2.5}, {110, 1.8}}) {
    const int64_t budget = smallest * percent / 100;
    const std::optional<Fit> fit = search.fastest_within(budget, budget);
    ASSERT_TRUE(fit);
    EXPECT_LE(fit->plan.predicted_seconds, times * search.index.total_seconds) << percent;
  }
}

}  // namespace
}  // namespace cairn::plan
