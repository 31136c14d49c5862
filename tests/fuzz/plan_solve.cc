#include "tests/fuzz/plan_solve.h"

#include <stdexcept>

#include "runtime/base/error.h"
#include "runtime/plan/plan.h"

namespace cairn::fuzz {
namespace {

constexpr size_t kMaxOps = 10, kMaxValues = 24, kMaxLinks = 2;  // so that an input takes milliseconds

void solve_and_replay(const plan::Problem& problem) {
  const plan::Plan made = plan::solve(problem);
  const std::string wrong = plan::violation(problem, made);
  if (!wrong.empty()) throw std::logic_error("a plan of the planner: " + wrong);
  if (plan::to_json(problem, made, true).empty()) throw std::logic_error("a plan without text");
}

}  // namespace

void solve_problem(std::string_view text) {
  plan::Problem problem = plan::problem_from_json(text);
  if (problem.ops.size() > kMaxOps || problem.values.size() > kMaxValues || problem.links.size() > kMaxLinks)
    return;
  try {
    solve_and_replay(problem);
  } catch (const Error& error) {
    if (error.code() != Code::kOverBudget) throw;
    if (error.fault() == nullptr) throw std::logic_error("over budget, but by how much?");
    problem.budget_bytes = static_cast<int64_t>(error.fault()->smallest_budget_bytes);
    try {
      solve_and_replay(problem);
    } catch (const Error& again) {
      throw std::logic_error(cat("the smallest budget named is not enough: ", again.what()));
    }
  }
}

std::vector<std::string> problem_seeds() {
  const std::string chain = R"({"format":"cairn.problem/1","values":[
{"name":"x","bytes":64,"persistent":true},{"name":"a","bytes":4096,"persistent":false},
{"name":"b","bytes":8192,"persistent":false},{"name":"c","bytes":4096,"persistent":false},
{"name":"d","bytes":4096,"persistent":false},{"name":"e","bytes":4096,"persistent":false},
{"name":"g","bytes":64,"persistent":true}],"ops":[
{"name":"f1","seconds":1,"workspace_bytes":0,"inputs":["x"],"outputs":["a"],"recomputable":true,"region":"h0"},
{"name":"f2","seconds":2,"workspace_bytes":64,"inputs":["a"],"outputs":["b"],"recomputable":true,"region":"h0/m"},
{"name":"f3","seconds":1e-3,"workspace_bytes":0,"inputs":["b"],"outputs":["c"],"recomputable":true,"region":"h1"},
{"name":"b3","seconds":2,"workspace_bytes":0,"inputs":["b","c"],"outputs":["d"],"recomputable":false},
{"name":"b2","seconds":2,"workspace_bytes":0,"inputs":["a","d"],"outputs":["e"],"recomputable":true},
{"name":"b1","seconds":2,"workspace_bytes":0,"inputs":["x","e","a"],"outputs":["g"],"recomputable":true}],
"turnaround":3,)";
  const std::string link =
      R"("links":[{"tier":"host","latency_seconds":1e-2,"out_bytes_per_second":4000,"in_bytes_per_second":5000,
"both_ways_factor":0.7,"capacity_bytes":9000}],)";
  const std::string policy = R"("regions":[{"name":"h0","policy":"OFFLOAD","tier":"host"},
{"name":"h0/m","policy":"RECOMPUTE"}],)";
  return {chain + R"("links":[],"budget_bytes":17000})", chain + link + R"("budget_bytes":15000})",
          chain + link + policy + R"("budget_bytes":13000})"};
}

}  // namespace cairn::fuzz
