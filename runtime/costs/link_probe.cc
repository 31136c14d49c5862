#include "runtime/costs/link_probe.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "runtime/costs/fit.h"

namespace cairn::costs {
namespace {

using device::Lane;

constexpr int64_t kSmallest = int64_t{64} << 10, kLargest = int64_t{16} << 20;
constexpr int64_t kGrowth = 4;
// Copies go round in blocks that no cache holds, as a step's copies do.
constexpr int64_t kBlock = int64_t{128} << 20;
constexpr int kRepeats = 7;
constexpr double kLongCopy = 0.05;  // seconds: no larger sizes after one of these
constexpr int kTogether = 4;        // copies queued per direction when both run

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Probe {
 public:
  Probe(device::Device& device, Tier tier)
      : out_(device, tier, Lane::kCopyOut), in_(device, tier, Lane::kCopyIn) {}

  plan::Link measure(Tier tier) {
    plan::Link link;
    link.tier = kTierNames[static_cast<size_t>(tier)];
    const Line out = alone(out_), in = alone(in_);
    link.out_bytes_per_second = out.bytes_per_second;
    link.in_bytes_per_second = in.bytes_per_second;
    link.latency_seconds = (out.latency_seconds + in.latency_seconds) / 2;
    link.both_ways_factor = together(out, in);
    return link;
  }

 private:
  // A direction: its lane and a pair of blocks.
  struct Way {
    Way(device::Device& device, Tier tier, Lane lane)
        : here(device.allocate(Tier::kDevice, kBlock)),
          there(device.allocate(tier, kBlock)),
          queue(device.create_queue(lane)),
          outwards(lane == Lane::kCopyOut) {
      do copy(kLargest);  // a page's first touch is not a copy's time
      while (offset > 0);
      queue->synchronize();
    }
    void copy(int64_t bytes) {
      const device::Location a{here.get(), offset}, b{there.get(), offset};
      queue->copy(outwards ? b : a, outwards ? a : b, bytes);
      offset = (offset + kLargest) % kBlock;
    }
    std::unique_ptr<device::Block> here, there;
    std::unique_ptr<device::Queue> queue;  // last: ends before its blocks
    bool outwards;
    int64_t offset = 0;
  };

  Line alone(Way& way) {
    std::vector<Transfer> samples;
    for (int64_t bytes = kSmallest; bytes <= kLargest; bytes *= kGrowth) {
      std::vector<double> seconds;
      for (int repeat = 0; repeat < kRepeats; ++repeat) {
        const double began = now();
        way.copy(bytes);
        way.queue->synchronize();
        seconds.push_back(now() - began);
      }
      samples.push_back({static_cast<double>(bytes), spread(std::move(seconds)).median});
      if (samples.back().seconds > kLongCopy && samples.size() > 1) break;
    }
    largest_ = std::min(largest_, static_cast<int64_t>(samples.back().bytes));
    return fit(samples);
  }

  // Share of its own rate that each direction keeps while the other runs, averaged over both.
  double together(const Line& out, const Line& in) {
    std::vector<double> factors;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      const double began = now();
      for (int i = 0; i < kTogether; ++i) {
        out_.copy(largest_);
        in_.copy(largest_);
      }
      out_.queue->synchronize();
      in_.queue->synchronize();
      const double took = now() - began;
      const auto alone = [&](const Line& line) {
        return kTogether * static_cast<double>(largest_) / line.bytes_per_second;
      };
      // The slower direction is under contention until the other ends, and is alone for the rest.
      const double shorter = std::min(alone(out), alone(in)), longer = std::max(alone(out), alone(in));
      const double contended = took - (longer - shorter);
      factors.push_back(contended > 0 ? shorter / contended : 1.0);
    }
    return std::clamp(spread(std::move(factors)).median, 0.01, 1.0);
  }

  int64_t largest_ = kLargest;
  Way out_, in_;
};

}  // namespace

LinkCost measure_link(device::Device& device, Tier tier) {
  require(tier != Tier::kDevice, Code::kInvalidArgument, "the device has no link to itself");
  LinkCost cost;
  cost.link = Probe(device, tier).measure(tier);
  if (tier == Tier::kHost) cost.stated_bytes_per_second = device.info().throttle();
  return cost;
}

}  // namespace cairn::costs
