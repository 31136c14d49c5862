// bench_kernels [--threads=N] [Google Benchmark options]   every kernel of a GPT-2 124M step, f32 and bf16
// bench_kernels --step [--threads=N] [--repeats=N]          a table: best time, rate, share of the step; the
// sum of all
//                                                           kernels beside the floor, the matrix products
//                                                           alone
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "bench/google_benchmark.h"
#include "bench/kernels/cases.h"
#include "bench/kernels/clock.h"

namespace cairn::bench {
namespace {

double best_seconds(Runner& runner, int repeats) {
  runner.run();
  double best = 1e30;
  for (int i = 0; i < repeats; ++i) {
    const double start = now();
    runner.run();
    best = std::min(best, now() - start);
  }
  return best;
}

void print_step(DType compute, int threads, int repeats) {
  const std::vector<Case> cases = gpt2_cases(compute, threads);
  struct Line {
    const Case* c;
    std::string row;
    double seconds;
  };
  std::vector<Line> lines;
  double total = 0, floor = 0;
  for (const Case& c : cases) {
    Runner runner(c, threads);
    const double seconds = best_seconds(runner, c.count > 4 ? 3 * repeats : repeats);
    lines.push_back({&c, runner.row(), seconds});
    total += seconds * c.count;
    if (c.gemm) floor += seconds * c.count;
  }
  std::printf("%s, %d threads\n%-28s %-12s %9s %6s %9s %10s %7s\n", std::string(dtype_name(compute)).c_str(),
              threads, "kernel", "row", "best ms", "runs", "ms/step", "rate", "share");
  for (const Line& l : lines) {
    const bool flops = l.c->flops > 0;
    std::printf("%-28s %-12s %9.3f %6.1f %9.2f %6.0f %s %6.1f%%\n", l.c->name.c_str(), l.row.c_str(),
                l.seconds * 1e3, l.c->count, l.seconds * l.c->count * 1e3,
                (flops ? l.c->flops : l.c->bytes) / l.seconds / 1e9, flops ? "GF/s" : "GB/s",
                100 * l.seconds * l.c->count / total);
  }
  std::printf(
      "all kernels %.1f ms, products (with what is fused into them) %.1f ms, ratio %.3f, %.0f tokens/s\n\n",
      total * 1e3, floor * 1e3, total / floor, 1024 / total);
}

void run_case(benchmark::State& state, const Case& c, int threads) {
  set_thread_count(threads);
  Runner runner(c, threads);
  for (auto _ : state) runner.run();
  state.SetLabel(runner.row());
  const double n = static_cast<double>(state.iterations());
  if (c.flops > 0)
    state.counters["FLOP/s"] = benchmark::Counter(c.flops * n, benchmark::Counter::kIsRate);
  else
    state.counters["B/s"] = benchmark::Counter(c.bytes * n, benchmark::Counter::kIsRate);
}

int main(int argc, char** argv) {
  Arguments arguments = benchmark_arguments(
      argc, argv, "bench_kernels [--step] [--threads=N] [--repeats=N] [Google Benchmark options]");
  const bool step = arguments.flag("step");
  const int threads = arguments.whole("threads", usable_processors()),
            repeats = arguments.whole("repeats", 7);
  initialize_benchmarks(arguments);
  ThreadTeam team(threads);
  set_thread_team(&team);
  set_thread_count(threads);
  constexpr DType kTypes[] = {DType::kF32, DType::kBF16};
  if (step) {
    for (DType type : kTypes) print_step(type, threads, repeats);
    return 0;
  }
  std::vector<std::vector<Case>> cases;
  for (DType type : kTypes) cases.push_back(gpt2_cases(type, threads));
  for (size_t t = 0; t < cases.size(); ++t)
    for (const Case& c : cases[t])
      benchmark::RegisterBenchmark((std::string(dtype_name(kTypes[t])) + "/" + c.name).c_str(),
                                   [&c, threads](benchmark::State& state) { run_case(state, c, threads); })
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace cairn::bench

int main(int argc, char** argv) { return cairn::bench::main(argc, argv); }
