// What a byte less in the arena costs, made again or copied away and back.
// bench_recompute_vs_offload [--threads=N] [--link=BYTES_PER_SECOND] [Google Benchmark options]
//   recompute/<dtype>/<op>/<rows>    seconds to make an op's outputs again; counters: freed_bytes, flops,
//   moved_bytes link/<tier>/<way>/<bytes>        seconds of one copy, its lane's waking and the end's arrival
//   included hidden/<tier>/<dtype>            copies beside a product that covers them: what they add
// Each has the counter median_seconds over its runs. With --threads=1 computation is processor time, so that
// the rest of the machine counts for little. Tiers: host, host throttled to --link (default 2e9), disk (in
// $TMPDIR). table.py makes table and picture of the JSON.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/google_benchmark.h"
#include "bench/recompute_vs_offload/clock.h"
#include "bench/recompute_vs_offload/link_bench.h"
#include "bench/recompute_vs_offload/ops.h"
#include "runtime/base/parallel.h"

namespace cairn::bench {
namespace {

void remake(benchmark::State& state, const Remade& remade, int threads) {
  set_thread_count(threads);
  Runner runner(remade.op, threads);
  runner.run();
  std::vector<double> samples;
  for (auto _ : state) {
    const double began = compute_seconds(threads);
    runner.run();
    samples.push_back(compute_seconds(threads) - began);
    state.SetIterationTime(samples.back());
  }
  state.SetLabel(runner.row());
  state.counters["median_seconds"] = median(samples);
  state.counters["freed_bytes"] = static_cast<double>(remade.freed_bytes);
  state.counters["flops"] = remade.op.flops;
  state.counters["moved_bytes"] = remade.op.bytes;
}

int main(int argc, char** argv) {
  Arguments arguments = benchmark_arguments(
      argc, argv,
      "bench_recompute_vs_offload [--threads=N] [--link=BYTES_PER_SECOND] [Google Benchmark options]");
  const int threads = arguments.whole("threads", usable_processors());
  const double link = arguments.real("link", 2e9);
  initialize_benchmarks(arguments);
  ThreadTeam team(threads);
  set_thread_team(&team);
  set_thread_count(threads);
  constexpr DType kTypes[] = {DType::kF32, DType::kBF16};
  std::vector<std::vector<Remade>> ops;
  for (DType type : kTypes) ops.push_back(remade_ops(type, threads));
  for (size_t t = 0; t < ops.size(); ++t)
    for (const Remade& remade : ops[t])
      benchmark::RegisterBenchmark(
          ("recompute/" + std::string(dtype_name(kTypes[t])) + "/" + remade.name + "/" +
           std::to_string(remade.rows))
              .c_str(),
          [&remade, threads](benchmark::State& state) { remake(state, remade, threads); })
          ->UseManualTime()
          ->Unit(benchmark::kMicrosecond);
  device::DeviceOptions options;
  options.threads = threads;
  const auto device = device::open("cpu", options);
  options.link_bytes_per_second = link;
  const auto throttled = device::open("cpu", options);
  char slow[40];
  std::snprintf(slow, sizeof slow, "host %g GB per s", link / 1e9);
  register_links({"host", Tier::kHost, device}, threads);
  register_links({slow, Tier::kHost, throttled}, threads);
  register_links({"disk", Tier::kDisk, device}, threads);
  benchmark::AddCustomContext("processor", device->info().description);
  benchmark::AddCustomContext("threads", std::to_string(threads));
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace cairn::bench

int main(int argc, char** argv) { return cairn::bench::main(argc, argv); }
