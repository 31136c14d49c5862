// Time to plan, from 10 to 100,000 ops, and how good the plans are.
//   bench_plan [--benchmark_filter=transformer/1000] [--benchmark_format=json]
// Names: <kind>/<size>/<percent>[/link]: the budget holds the persistent values and so many percent of the
// activations of keeping everything; link: with a host link of 20 GB/s each way, 10 us, 0.7 of it when both
// ways are busy. Size: transformer: layers; chain, random: forward ops; unet: levels.
// Counters: ops (forward); gap_percent (planned over the bound); bound_percent and planned_percent (seconds
// added to keep-all); arena_over_peak (height over most bytes alive); fits (0: no plan, and smallest_percent
// says what budget would do).
#include <benchmark/benchmark.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "bench/google_benchmark.h"
#include "bench/plan/problems.h"
#include "runtime/base/error.h"
#include "runtime/plan/plan.h"

namespace cairn::bench {
namespace {

using plan::Plan;
using plan::Problem;

struct Sized {
  Problem problem;  // without links and budget
  int64_t activations = 0;
};

// Making a large problem takes longer than planning it: once per size.
const Sized& sized(const std::string& kind, int size) {
  static std::map<std::pair<std::string, int>, Sized> known;
  Sized& s = known[{kind, size}];
  if (s.problem.ops.empty()) {
    s.problem = make_problem(kind, size);
    s.activations = plan::solve(s.problem).device_peak_bytes - s.problem.persistent_bytes();
  }
  return s;
}

void plan_it(benchmark::State& state, const std::string& kind, int size, int percent, bool link) {
  const Sized& s = sized(kind, size);
  Problem p = s.problem;
  const int64_t fixed = p.persistent_bytes();
  p.budget_bytes = fixed + s.activations / 100 * percent;
  if (link) p.links.push_back({"host", 1e-5, 2e10, 2e10, .7, int64_t{1} << 40});
  state.counters["ops"] = p.backward_begin;
  Plan plan;
  int64_t smallest = 0;
  for (auto _ : state) try {
      plan = plan::solve(p);
    } catch (const Error& e) {
      if (e.code() != Code::kOverBudget || e.fault() == nullptr) throw;
      smallest = static_cast<int64_t>(e.fault()->smallest_budget_bytes);
    }
  state.counters["fits"] = smallest == 0;
  if (smallest > 0) {
    state.counters["smallest_percent"] =
        100.0 * static_cast<double>(smallest - fixed) / static_cast<double>(s.activations);
    return;
  }
  if (const std::string wrong = violation(p, plan); !wrong.empty()) {
    state.SkipWithError(wrong.c_str());
    return;
  }
  const auto added = [&](double seconds) { return 100 * (seconds / plan.keep_all_seconds - 1); };
  state.counters["gap_percent"] = 100 * plan.gap;
  state.counters["planned_percent"] = added(plan.predicted_seconds);
  state.counters["bound_percent"] = added(plan.bound_seconds);
  state.counters["arena_over_peak"] =
      static_cast<double>(plan.arena_bytes) / static_cast<double>(plan.device_peak_bytes);
}

void register_all() {
  const std::pair<const char*, std::vector<int>> kinds[] = {
      {"transformer", {1, 10, 24, 100, 300, 1000, 5500}},
      {"chain", {10, 60, 1000, 10000, 50000}},
      {"unet", {3, 4, 5, 6, 7}},
      {"random", {10, 60, 300, 1000, 10000}}};
  for (const auto& [kind, sizes] : kinds)
    for (int size : sizes)
      for (bool link : {false, true})
        for (int percent : {60, 40, 25, 15, 10, 5}) {
          std::string name = cat(kind, "/", size, "/", percent);
          if (link) name += "/link";
          benchmark::RegisterBenchmark(name.c_str(), plan_it, std::string(kind), size, percent, link)
              ->Unit(benchmark::kMillisecond)
              ->Iterations(1);
        }
}

}  // namespace
}  // namespace cairn::bench

int main(int argc, char** argv) {
  cairn::bench::Arguments arguments =
      cairn::bench::benchmark_arguments(argc, argv, "bench_plan [Google Benchmark options]");
  cairn::bench::register_all();
  cairn::bench::initialize_benchmarks(arguments);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
