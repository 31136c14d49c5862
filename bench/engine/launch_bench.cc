// What the engine itself costs: a program of many tiny launches, seconds per instruction and per launch.
#include <benchmark/benchmark.h>

#include "bench/google_benchmark.h"
#include "runtime/exec/session.h"

namespace cairn {
namespace {

std::shared_ptr<graph::Graph> chain(int ops) {
  auto g = std::make_shared<graph::Graph>();
  graph::ValueId x = g->input("x", {DType::kF32, {16}});
  for (int i = 0; i < ops; ++i) x = g->op("relu", {x})[0];
  g->freeze(graph::kNone, graph::kNone, {x});
  return g;
}

void launch(benchmark::State& state) {
  device::DeviceOptions options;
  options.threads = 1;
  auto device = device::open("cpu", options);
  engine::PlanOptions plan_options;
  plan_options.optimizer.name = "";
  auto plan = engine::compile(chain(static_cast<int>(state.range(0))), *device, plan_options);
  engine::Session session(plan, device);
  const auto code = static_cast<double>(plan->program().code.size());
  const auto launches = static_cast<double>(plan->program().launches.size());
  session.run({});
  for (auto _ : state) session.run({});
  const double runs = static_cast<double>(state.iterations());
  using benchmark::Counter;
  state.counters["s_per_instruction"] = Counter(runs * code, Counter::kIsRate | Counter::kInvert);
  state.counters["s_per_launch"] = Counter(runs * launches, Counter::kIsRate | Counter::kInvert);
}
BENCHMARK(launch)->Arg(100)->Arg(1000)->Unit(benchmark::kMicrosecond)->UseRealTime();

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) {
  cairn::bench::Arguments arguments =
      cairn::bench::benchmark_arguments(argc, argv, "bench_engine [Google Benchmark options]");
  cairn::bench::initialize_benchmarks(arguments);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
