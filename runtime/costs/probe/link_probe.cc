#include "runtime/costs/probe/link_probe.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/base/os/clock.h"
#include "runtime/costs/fit.h"
#include "runtime/ops/ops.h"

namespace cairn::costs {
namespace {

using device::Lane;

constexpr int64_t kSmallest = int64_t{64} << 10, kLargest = int64_t{16} << 20;
constexpr int64_t kGrowth = 4;
constexpr double kLongCopy = 0.05;  // seconds: no larger sizes after one of these
constexpr double kLongBlock = 2;    // seconds of a full block, estimated from a copy of kGlance bytes
constexpr int64_t kGlance = int64_t{1} << 20;
constexpr double kSlowest =
    1 << 20;  // bytes a second: measuring such a link takes half a minute; slower ones are refused
constexpr int kQueued = 4;  // copies queued per direction when both run
// Copies while kernels run: how long the kernels run alone, and how many times as long the copies would take.
constexpr double kKernelSeconds = 0.01, kLonger = 3;
constexpr int64_t kRows = 256, kColumns = 512;  // of the product that stands for kernels

// Products on the compute lane, as most of a step's time is.
class Products {
 public:
  explicit Products(device::Device& device)
      : in_{TensorDesc{DType::kF32, Shape{kRows, kColumns}},
            TensorDesc{DType::kF32, Shape{kColumns, kColumns}},
            {}},
        out_{TensorDesc{DType::kF32, Shape{kRows, kColumns}}, {}},
        kernel_(device.kernels().find({.op = ops::with(ops::PRODUCTS).name,
                                       .in = in_,
                                       .out = out_,
                                       .in_present = 3,
                                       .out_present = 1,
                                       .attrs = &attrs_,
                                       .threads = device.info().threads})) {
    require(kernel_ != nullptr, Code::kInternal, "no kernel for float32 products");
    memory_ = device.allocate(Tier::kDevice, at(3) + kernel_->workspace_bytes() + kAlignment);
    char* const base = static_cast<char*>(memory_->address());
    tensors_ = {Tensor{in_[0], base}, Tensor{in_[1], base + at(1)}, Tensor{}};
    results_ = {Tensor{out_[0], base + at(2)}, Tensor{}};
    workspace_ = base + at(3);
    queue_ = device.create_queue(Lane::kCompute);
    seconds(1);
  }
  device::Queue& queue() { return *queue_; }
  void submit(int count) {
    for (int i = 0; i < count; ++i)
      queue_->launch(*kernel_, {.in = tensors_, .out = results_, .workspace = workspace_});
  }
  double seconds(int count) {
    const double began = now();
    submit(count);
    queue_->synchronize();
    return now() - began;
  }

 private:
  // Where the n-th operand lies.
  static int64_t at(int n) { return n * align_up(4 * std::max(kRows, kColumns) * kColumns, kAlignment); }

  const Attrs attrs_;
  const std::array<TensorDesc, 3> in_;
  const std::array<TensorDesc, 2> out_;
  const std::unique_ptr<kernels::Kernel> kernel_;
  std::unique_ptr<device::Block> memory_;
  std::array<Tensor, 3> tensors_;
  std::array<Tensor, 2> results_;
  void* workspace_ = nullptr;
  std::unique_ptr<device::Queue> queue_;  // last: ends before its memory
};

class LinkProbe {
 public:
  LinkProbe(device::Device& device, Tier tier, const ProbeEffort& effort)
      : device_(device),
        effort_(effort),
        out_(device, tier, Lane::kCopyOut, effort.block_bytes),
        in_(device, tier, Lane::kCopyIn, effort.block_bytes) {}

  plan::Link measure(Tier tier) {
    plan::Link link;
    link.tier = kTierNames[static_cast<size_t>(tier)];
    const Line out = alone(out_), in = alone(in_);
    link.out_bytes_per_second = out.bytes_per_second;
    link.in_bytes_per_second = in.bytes_per_second;
    link.latency_seconds = (out.latency_seconds + in.latency_seconds) / 2;
    link.both_ways_factor = together(out, in);
    if (device_.info().host_reaches) beside_kernels(link);
    return link;
  }

 private:
  // A direction: its lane and a pair of blocks.
  struct Way {
    Way(device::Device& device, Tier tier, Lane lane, int64_t block)
        : block_bytes(block),
          here(device.allocate(Tier::kDevice, block)),
          there(device.allocate(tier, block)),
          queue(device.create_queue(lane)),
          outwards(lane == Lane::kCopyOut) {
      // A page's first touch is not a copy's time, but a slow link's is: there little is touched, and used, as no
      // cache is that slow.
      if (slow()) block_bytes = kLargest;
      offset = 0;
      while (block_bytes > kLargest) {
        copy(kLargest);
        if (offset == 0) break;
      }
      queue->synchronize();
    }
    // Whether a block takes seconds.
    bool slow() {
      double best = std::numeric_limits<double>::infinity();
      for (int i = 0; i < 3; ++i) {
        const double began = now();
        copy(kGlance);
        queue->synchronize();
        best = std::min(best, now() - began);
      }
      return best * static_cast<double>(block_bytes) > kLongBlock * static_cast<double>(kGlance);
    }
    void copy(int64_t bytes) {
      const device::Location a{here.get(), offset}, b{there.get(), offset};
      queue->copy(outwards ? b : a, outwards ? a : b, bytes);
      offset = (offset + kLargest) % block_bytes;
    }
    int64_t block_bytes;
    std::unique_ptr<device::Block> here, there;
    std::unique_ptr<device::Queue> queue;  // last: ends before its blocks
    bool outwards;
    int64_t offset = 0;
  };

  Line alone(Way& way) {
    std::vector<Transfer> samples;
    for (int64_t bytes = kSmallest; bytes <= kLargest; bytes *= kGrowth) {
      std::vector<double> seconds;
      for (int repeat = 0; repeat < effort_.repeats; ++repeat) {
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
    for (int repeat = 0; repeat < effort_.repeats; ++repeat) {
      const double began = now();
      for (int i = 0; i < kQueued; ++i) {
        out_.copy(largest_);
        in_.copy(largest_);
      }
      out_.queue->synchronize();
      in_.queue->synchronize();
      const double took = now() - began;
      const auto alone = [&](const Line& line) {
        return kQueued * static_cast<double>(largest_) / line.bytes_per_second;
      };
      // The slower direction is under contention until the other ends, and is alone for the rest.
      const double shorter = std::min(alone(out), alone(in)), longer = std::max(alone(out), alone(in));
      const double contended = took - (longer - shorter);
      factors.push_back(contended > 0 ? shorter / contended : 1.0);
    }
    return std::clamp(spread(std::move(factors)).median, 0.01, 1.0);
  }

  // Copies in one direction while products run: the share of its speed that each keeps, averaged over both directions.
  void beside_kernels(plan::Link& link) {
    Products products(device_);
    const auto rounds = static_cast<int>(std::ceil(kKernelSeconds / products.seconds(1)));
    std::vector<double> compute, copies;
    for (int repeat = 0; repeat < effort_.repeats; ++repeat)
      for (auto [way, rate] :
           {std::pair{&out_, link.out_bytes_per_second}, std::pair{&in_, link.in_bytes_per_second}}) {
        const double alone = products.seconds(rounds);
        const double one = static_cast<double>(largest_) / rate;
        const auto count = static_cast<int>(std::ceil(kLonger * alone / one));
        way->queue->trace(true);
        const double began = now();
        for (int i = 0; i < count; ++i) way->copy(largest_);
        products.submit(rounds);
        products.queue().synchronize();
        const double ended = now();
        way->queue->synchronize();
        double done = 0;  // copies that were done while the products ran
        for (const device::Queue::Busy& copy : way->queue->take_trace())
          done += std::clamp((ended - copy.begin) / (copy.end - copy.begin), 0.0, 1.0);
        way->queue->trace(false);
        compute.push_back(alone / (ended - began));
        copies.push_back(done * one / (ended - began));
      }
    link.busy_factor = std::clamp(spread(std::move(compute)).median, 0.01, 1.0);
    link.busy_rate_factor = std::clamp(spread(std::move(copies)).median, 0.01, 1.0);
  }

  device::Device& device_;
  const ProbeEffort effort_;
  int64_t largest_ = kLargest;
  Way out_, in_;
};

}  // namespace

LinkCost measure_link(device::Device& device, Tier tier, const ProbeEffort& effort) {
  require(tier != Tier::kDevice, Code::kInvalidArgument, "the device has no link to itself");
  const double throttle = tier == Tier::kHost ? device.info().throttle() : 0;
  require(throttle == 0 || throttle >= kSlowest, Code::kInvalidArgument, "the host link is throttled to ",
          throttle, " bytes per second, and measuring it would take minutes to hours; state ",
          static_cast<int64_t>(kSlowest),
          " or more to measure with, or none: plans take the rate that they are given as it is stated");
  LinkCost cost;
  cost.link = LinkProbe(device, tier, effort).measure(tier);
  cost.stated_bytes_per_second = throttle;
  return cost;
}

}  // namespace cairn::costs
