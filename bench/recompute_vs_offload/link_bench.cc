#include "bench/recompute_vs_offload/link_bench.h"

#include <benchmark/benchmark.h>

#include <algorithm>

#include "bench/recompute_vs_offload/clock.h"
#include "bench/recompute_vs_offload/ops.h"
#include "runtime/base/parallel.h"

namespace cairn::bench {
namespace {

using device::Lane;

constexpr int64_t kSizes[] = {int64_t{64} << 10, int64_t{256} << 10, int64_t{1} << 20, int64_t{4} << 20,
                              int64_t{16} << 20};
constexpr int64_t kLargest = int64_t{16} << 20;
constexpr int64_t kBlock = 4 * kLargest;        // copies go round in blocks that no cache holds
constexpr int64_t kChunk = int64_t{1} << 20;    // of copies beside a computation
constexpr double kCovering = 0.2, kUsed = 0.8;  // seconds of computation, and share of them that copies fill

// One direction: a lane, and a block at each end.
class Way {
 public:
  Way(const TierUnderTest& tier, Lane lane)
      : here_(tier.device->allocate(Tier::kDevice, kBlock)),
        there_(tier.device->allocate(tier.tier, kBlock)),
        queue_(tier.device->create_queue(lane)),
        outwards_(lane == Lane::kCopyOut) {
    for (int64_t i = 0; i < kBlock / kLargest; ++i) copy(kLargest);  // a page's first touch is no copy
    queue_->synchronize();
  }
  void copy(int64_t bytes) {
    if (offset_ + bytes > kBlock) offset_ = 0;
    const device::Location a{here_.get(), offset_}, b{there_.get(), offset_};
    queue_->copy(outwards_ ? b : a, outwards_ ? a : b, bytes);
    offset_ += bytes;
  }
  void finish() { queue_->synchronize(); }

 private:
  std::unique_ptr<device::Block> here_, there_;
  std::unique_ptr<device::Queue> queue_;  // last: ends before its blocks
  bool outwards_;
  int64_t offset_ = 0;
};

void copies(benchmark::State& state, const TierUnderTest& tier, int ways, int64_t bytes) {
  std::unique_ptr<Way> out, in;
  if (ways & 1) out = std::make_unique<Way>(tier, Lane::kCopyOut);
  if (ways & 2) in = std::make_unique<Way>(tier, Lane::kCopyIn);
  std::vector<double> samples;
  for (auto _ : state) {
    const double began = now();
    if (out) out->copy(bytes);
    if (in) in->copy(bytes);
    if (out) out->finish();
    if (in) in->finish();
    samples.push_back(now() - began);
    state.SetIterationTime(samples.back());
  }
  state.counters["median_seconds"] = median(samples);
  state.counters["bytes"] = static_cast<double>(bytes);
}

double seconds_of(Runner& runner, int runs, int threads) {
  const double began = compute_seconds(threads);
  for (int i = 0; i < runs; ++i) runner.run();
  return compute_seconds(threads) - began;
}

// Bytes per second of each direction when both run: the best of a few rounds.
double both_ways_rate(Way& out, Way& in) {
  double best = 0;
  for (int round = 0; round < 5; ++round) {
    const double began = now();
    for (int i = 0; i < 32; ++i) {
      out.copy(kChunk);
      in.copy(kChunk);
    }
    out.finish();
    in.finish();
    best = std::max(best, 32 * static_cast<double>(kChunk) / (now() - began));
  }
  return best;
}

// The same computation alone and with both lanes busy for most of it; what the copies add is the price of
// hiding.
void hidden(benchmark::State& state, const TierUnderTest& tier, DType compute, int threads) {
  set_thread_count(threads);
  const Case op = covering_op(compute, threads);
  Runner runner(op, threads);
  Way out(tier, Lane::kCopyOut), in(tier, Lane::kCopyIn);
  seconds_of(runner, 2, threads);
  const int runs = std::max(1, static_cast<int>(kCovering / seconds_of(runner, 3, threads) * 3));
  const double rate = both_ways_rate(out, in);
  std::vector<double> alone, added, freed;
  for (auto _ : state) {
    alone.push_back(seconds_of(runner, runs, threads));
    const auto chunks = std::max<int64_t>(1, static_cast<int64_t>(alone.back() * kUsed * rate / kChunk));
    for (int64_t i = 0; i < chunks; ++i) {
      out.copy(kChunk);
      in.copy(kChunk);
    }
    const double together = seconds_of(runner, runs, threads);
    out.finish();
    in.finish();
    state.SetIterationTime(together);
    added.push_back(together - alone.back());
    freed.push_back(static_cast<double>(chunks * kChunk));
  }
  state.counters["alone_seconds"] = median(alone);
  state.counters["added_seconds"] = median(added);
  state.counters["freed_bytes"] = median(freed);
}

}  // namespace

void register_links(const TierUnderTest& tier, int threads) {
  constexpr const char* kWays[] = {"", "out", "in", "both"};
  for (int ways = 1; ways <= 3; ++ways)
    for (int64_t bytes : kSizes)
      benchmark::RegisterBenchmark(
          ("link/" + tier.name + "/" + kWays[ways] + "/" + std::to_string(bytes)).c_str(),
          [tier, ways, bytes](benchmark::State& state) { copies(state, tier, ways, bytes); })
          ->UseManualTime()
          ->Unit(benchmark::kMicrosecond);
  for (DType type : {DType::kF32, DType::kBF16})
    benchmark::RegisterBenchmark(
        ("hidden/" + tier.name + "/" + std::string(dtype_name(type))).c_str(),
        [tier, type, threads](benchmark::State& state) { hidden(state, tier, type, threads); })
        ->UseManualTime()
        ->Iterations(15)
        ->Unit(benchmark::kMillisecond);
}

}  // namespace cairn::bench
