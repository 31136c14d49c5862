// bench_layout [Google Benchmark options] [FILE.csv ...]
// Arena height over the most bytes alive at once, and the time to lay out: on the blocks of plans of
// generated problems, and on public instances in MiniMalloc's CSV form (files named on the command line or,
// separated by ':', in CAIRN_LAYOUT_CSV).
//   cheap/...    as low as can be cheaply       tight/...    the capacity is the most bytes alive
//   hard/KIND/BLOCKS/SEED   a capacity of 1.02 of the most bytes alive, with 30 times the work (hard_blocks.h)
//   csv/...      as low as can be cheaply       csv_capacity/...   the capacity in the file's name
//   csv_effort_50/...   the same with 50 times the work (seconds)
// Counters: blocks; ratio (height / most alive); fits (1 if within the capacity).
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "bench/google_benchmark.h"
#include "bench/layout/hard_blocks.h"
#include "bench/layout/minimalloc_csv.h"
#include "bench/plan/problems.h"
#include "runtime/base/error.h"
#include "runtime/plan/layout/layout.h"

namespace cairn::bench {
namespace {

using plan::Block;
using plan::Plan;
using plan::Problem;
using plan::StepKind;

// What the plan takes in the device's arena above the persistent values.
std::vector<Block> device_blocks(const Problem& p, const Plan& plan) {
  std::vector<Block> blocks;
  std::vector<int32_t> open(p.values.size(), -1);
  const auto steps = static_cast<int32_t>(plan.steps.size());
  const auto take = [&](int32_t v, int32_t s) {
    if (p.values[v].persistent || open[v] >= 0) return;
    open[v] = static_cast<int32_t>(blocks.size());
    blocks.push_back({s, steps, p.values[v].bytes});
  };
  for (int32_t s = 0; s < steps; ++s) {
    const plan::Step& step = plan.steps[s];
    if (step.kind == StepKind::kFree) {
      blocks[open[step.index]].end = s;
      open[step.index] = -1;
    } else if (step.kind == StepKind::kIn) {
      take(step.index, s);
    } else if (step.kind == StepKind::kRun) {
      const plan::Op& op = p.ops[step.index];
      for (int32_t v : op.outputs) take(v, s);
      if (op.workspace_bytes > 0) blocks.push_back({s, s + 1, op.workspace_bytes});
    }
  }
  return blocks;
}

// Blocks of a plan for `percent` of the activations of doing nothing; the smallest budget there is if that is
// too little. 0: every region recomputed (checkpoints per layer).
std::vector<Block> blocks_of_plan(const std::string& kind, int size, int percent) {
  Problem p = make_problem(kind, size);
  if (percent == 0)
    for (plan::Region& region : p.regions) region.policy = Policy::kRecompute;
  if (percent == 0 || percent == 100) return device_blocks(p, plan::solve(p));
  const int64_t fixed = p.persistent_bytes();
  p.budget_bytes = fixed + (plan::solve(p).device_peak_bytes - fixed) / 100 * percent;
  try {
    return device_blocks(p, plan::solve(p));
  } catch (const Error& e) {
    if (e.fault() == nullptr) throw;
    p.budget_bytes = static_cast<int64_t>(e.fault()->smallest_budget_bytes);
    return device_blocks(p, plan::solve(p));
  }
}

void measure(benchmark::State& state, const std::vector<Block>& blocks, int64_t capacity, int64_t effort) {
  int64_t alignment = 64;
  for (const Block& b : blocks)
    if (b.bytes % 64 != 0) alignment = 1;
  plan::Layout layout;
  for (auto _ : state) benchmark::DoNotOptimize(layout = plan::lay_out(blocks, alignment, capacity, effort));
  const int64_t most = plan::max_alive(blocks);
  state.counters["blocks"] = static_cast<double>(blocks.size());
  state.counters["ratio"] = most > 0 ? static_cast<double>(layout.height) / static_cast<double>(most) : 1;
  if (capacity > 0) state.counters["fits"] = layout.height <= capacity;
}

void add(const std::string& name, std::shared_ptr<const std::vector<Block>> blocks, int64_t capacity,
         int64_t effort = 1) {
  benchmark::RegisterBenchmark(name.c_str(), [blocks, capacity, effort](benchmark::State& state) {
    measure(state, *blocks, capacity, effort);
  })->Unit(benchmark::kMillisecond);
}

struct Case {
  const char* kind;
  int size, percent;
};
constexpr Case kCases[] = {
    {"transformer", 24, 100},  {"transformer", 24, 50},
    {"transformer", 24, 15},   {"transformer", 24, 5},
    {"transformer", 24, 0},    {"transformer", 200, 50},
    {"transformer", 200, 10},  {"transformer", 1000, 100},
    {"transformer", 1000, 50}, {"transformer", 1000, 15},
    {"transformer", 1000, 0},  {"transformer", 8000, 100},
    {"transformer", 8000, 0},  {"unet", 5, 100},
    {"unet", 5, 50},           {"unet", 7, 100},
    {"unet", 7, 50},           {"chain", 256, 100},
    {"chain", 256, 50},        {"chain", 256, 15},
    {"chain", 5000, 50},       {"chain", 5000, 15},
    {"random", 60, 100},       {"random", 60, 50},
    {"random", 2000, 100},     {"random", 2000, 50},
};

void add_plans() {
  for (const Case& c : kCases) {
    const std::string name = std::string(c.kind) + "/" + std::to_string(c.size) +
                             (c.percent == 0 ? "/per_region" : "/" + std::to_string(c.percent) + "%");
    auto blocks = std::make_shared<const std::vector<Block>>(blocks_of_plan(c.kind, c.size, c.percent));
    const int64_t most = plan::max_alive(*blocks);
    add("cheap/" + name, blocks, 0);
    add("tight/" + name, blocks, most);
  }
}

void add_hard() {
  for (const HardKind& kind : hard_kinds())
    for (const int count : {150, 250, 350, 450})
      for (const uint32_t seed : {1u, 2u, 3u}) {
        auto blocks = std::make_shared<const std::vector<Block>>(kind.make(count, seed));
        const int64_t most = plan::max_alive(*blocks);
        add(std::string("hard/") + kind.name + "/" + std::to_string(count) + "/" + std::to_string(seed),
            blocks, most + most / 50, 30);
      }
}

void add_file(const std::string& path) {
  Instance instance = read_minimalloc_csv(path);
  const std::string name = std::filesystem::path(path).stem().string();
  auto blocks = std::make_shared<const std::vector<Block>>(std::move(instance.blocks));
  add("csv/" + name, blocks, 0);
  if (instance.capacity == 0) return;
  add("csv_capacity/" + name, blocks, instance.capacity);
  add("csv_effort_50/" + name, blocks, instance.capacity, 50);
}

int main(int argc, char** argv) {
  Arguments arguments =
      benchmark_arguments(argc, argv, "bench_layout [Google Benchmark options] [FILE.csv ...]");
  try {
    std::vector<std::string> files = initialize_benchmarks(arguments, SIZE_MAX);
    if (const char* more = std::getenv("CAIRN_LAYOUT_CSV")) {
      std::istringstream list(more);
      for (std::string path; std::getline(list, path, ':');)
        if (!path.empty()) files.push_back(path);
    }
    for (const std::string& path : files) add_file(path);
    if (files.empty()) {
      add_plans();
      add_hard();
    }
  } catch (const Error& e) {
    std::fprintf(stderr, "bench_layout: %s\n", e.what());
    return 3;
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace cairn::bench

int main(int argc, char** argv) { return cairn::bench::main(argc, argv); }
