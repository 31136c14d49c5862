#include "runtime/costs/disk_probe.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>

#include "runtime/base/os/memory.h"
#include "runtime/base/os/thread.h"
#include "runtime/device/host/disk.h"

namespace cairn::costs {
namespace {

using device::host::Channel;
using Clock = std::chrono::steady_clock;

constexpr int64_t kRequest = int64_t{2} << 20, kRequests = 32;
constexpr int64_t kFile = kRequests * kRequest;
constexpr int kWorkers = static_cast<int>(Channel::kWorkers);
constexpr std::chrono::milliseconds kAlone{20}, kBoth{30};
constexpr int kRounds = 3, kLatencies = 9;

double seconds_since(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

class DiskProbe {
 public:
  explicit DiskProbe(const std::string& directory)
      : file_(directory, kFile, fault_),
        memory_(static_cast<char*>(allocator_.allocate(allocator_.user, kMemory, kPageBytes))) {
    require(memory_ != nullptr, Code::kOutOfMemory, "no ", kMemory, " bytes to measure a disk with");
  }
  ~DiskProbe() { allocator_.release(allocator_.user, memory_, kMemory, kPageBytes); }
  DiskProbe(const DiskProbe&) = delete;
  DiskProbe& operator=(const DiskProbe&) = delete;

  plan::Link measure() {
    // What was never written is not on the disk: it costs more to write and nothing to read. So pages are touched
    // and blocks written first.
    for (int64_t request = 0; request < kRequests; ++request)
      file_.transfer(true, memory_ + request % (2 * kWorkers) * kRequest, request * kRequest, kRequest);
    plan::Link link;
    link.tier = "disk";
    double together = 0;
    for (int round = 0; round < kRounds; ++round) {
      link.out_bytes_per_second = std::max(link.out_bytes_per_second, run(kAlone, true, false)[1]);
      link.in_bytes_per_second = std::max(link.in_bytes_per_second, run(kAlone, false, true)[0]);
    }
    for (int round = 0; round < kRounds; ++round) {
      const auto [in, out] = run(kBoth, true, true);
      together = std::max(together, (out / link.out_bytes_per_second + in / link.in_bytes_per_second) / 2);
    }
    link.both_ways_factor = std::clamp(together, 0.01, 1.0);
    link.latency_seconds = latency();
    return link;
  }

 private:
  // Requests until the time is over; bytes per second, read and written. Each direction has its half of the lanes.
  std::array<double, 2> run(Clock::duration time, bool writes, bool reads) {
    std::array<std::atomic<int64_t>, 2> next{}, moved{};
    std::array<std::atomic<double>, 2> took{};
    const Clock::time_point began = Clock::now();
    const int64_t lanes = writes && reads ? 2 * kWorkers : kWorkers;
    cairn::spread("cairn/disk-rate", lanes, static_cast<int>(lanes), [&](int64_t lane) {
      const bool out = writes && (!reads || lane % 2 == 0);
      const auto way = static_cast<size_t>(out);
      do {
        const int64_t request = next[way]++ % kRequests;
        try {
          file_.transfer(out, memory_ + lane * kRequest, request * kRequest, kRequest);
        } catch (...) {
          failed_.store(true);
          return;
        }
        moved[way] += kRequest;
      } while (Clock::now() - began < time);
      const double mine = seconds_since(began);
      for (double last = took[way].load(); last < mine && !took[way].compare_exchange_weak(last, mine);) {
      }
    });
    require(!failed_.load(), Code::kIo, "a disk could not be measured");
    std::array<double, 2> rates{};
    for (size_t way = 0; way < rates.size(); ++way)
      if (took[way].load() > 0) rates[way] = static_cast<double>(moved[way].load()) / took[way].load();
    return rates;
  }

  // The time of copying one page: what a copy takes however few bytes it has.
  double latency() {
    std::array<double, kLatencies> seconds;
    for (int i = 0; i < kLatencies; ++i) {
      const Clock::time_point began = Clock::now();
      file_.transfer(false, memory_, i * 7 % kRequests * kRequest, kPageBytes);
      seconds[static_cast<size_t>(i)] = seconds_since(began);
    }
    std::nth_element(seconds.begin(), seconds.begin() + kLatencies / 2, seconds.end());
    return seconds[kLatencies / 2];
  }

  static constexpr size_t kMemory = 2 * kWorkers * kRequest;
  const HostAllocator& allocator_ = system_allocator();
  const device::host::DiskFault fault_ = {};
  const device::host::DiskFile file_;
  char* const memory_;
  std::atomic<bool> failed_{false};
};

}  // namespace

std::optional<plan::Link> probe_disk(const std::string& directory) {
  try {
    return DiskProbe(directory).measure();
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace cairn::costs
