// The disk tier beside the bare file: `bench_disk [DIRECTORY [SECONDS [ROUNDS]]]`. The bare file is read and written past
// the page cache by plain threads, in requests of 4 MiB, eight of them at once in each direction. Rounds alternate, since
// a disk that is shared changes its mind; what is printed are medians of the rounds, in GB/s.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/arguments.h"
#include "runtime/costs/disk_probe.h"
#include "runtime/device/device.h"

namespace cairn {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int64_t kFile = int64_t{1} << 30, kRequest = int64_t{4} << 20, kCopy = int64_t{32} << 20;
constexpr int kAtOnce = 8;

struct Rates {
  double out = 0, in = 0;
};

double since(Clock::time_point began) { return std::chrono::duration<double>(Clock::now() - began).count(); }

[[noreturn]] void stop(const char* what) {
  std::perror(what);
  std::exit(5);
}

class Bare {
 public:
  explicit Bare(const std::string& directory)
      : file_(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | O_DIRECT, 0600)),
        memory_(static_cast<char*>(std::aligned_alloc(4096, 2 * kAtOnce * kRequest))) {
    if (file_ < 0 || ::posix_fallocate(file_, 0, kFile) != 0) stop("bench_disk: a file past the page cache");
    std::fill(memory_, memory_ + 2 * kAtOnce * kRequest, 'x');
    for (int64_t at = 0; at < kFile; at += kRequest) move(true, memory_, at);
  }
  ~Bare() {
    ::close(file_);
    std::free(memory_);
  }
  Rates run(bool out, bool in, double seconds) {
    std::atomic<int64_t> next[2] = {0, 0}, done[2] = {0, 0};
    const Clock::time_point began = Clock::now();
    std::vector<std::thread> threads;
    for (int lane = 0; lane < 2 * kAtOnce; ++lane) {
      const bool writes = lane < kAtOnce;
      if (writes ? !out : !in) continue;
      threads.emplace_back([&, lane, writes] {
        while (since(began) < seconds) {
          move(writes, memory_ + lane * kRequest, next[writes]++ * kRequest % kFile);
          done[writes] += kRequest;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    const double took = since(began);
    return {static_cast<double>(done[1]) / took, static_cast<double>(done[0]) / took};
  }

 private:
  void move(bool writes, char* memory, int64_t at) const {
    const ssize_t n = writes ? ::pwrite(file_, memory, kRequest, at) : ::pread(file_, memory, kRequest, at);
    if (n != kRequest) stop("bench_disk: the bare file");
  }
  const int file_;
  char* const memory_;
};

// The copy lanes of a CPU device, in copies of 32 MiB. `skew`: how far from a page's begin the memory lies.
class Tiered {
 public:
  Tiered(const std::string& directory, int64_t skew) : skew_(skew) {
    device::DeviceOptions options;
    options.disk_directory = directory;
    device_ = device::open("cpu", options);
    disk_ = device_->allocate(Tier::kDisk, kFile);
    memory_ = device_->allocate(Tier::kDevice, 2 * (kCopy + kPageBytes));
    for (const bool writes : {false, true})
      queue_[writes] = device_->create_queue(writes ? device::Lane::kCopyOut : device::Lane::kCopyIn);
    for (int64_t at = 0; at < kFile; at += kCopy) copy(true, at);
    queue_[1]->synchronize();
  }
  Rates run(bool out, bool in, double seconds) {
    double rates[2] = {0, 0};
    std::vector<std::thread> threads;
    const Clock::time_point began = Clock::now();
    for (const bool writes : {false, true}) {
      if (writes ? !out : !in) continue;
      threads.emplace_back([&, writes] {
        int64_t moved = 0;
        for (; since(began) < seconds; moved += 2 * kCopy) {
          for (int64_t i = 0; i < 2; ++i) copy(writes, (moved + i * kCopy) % kFile);
          queue_[writes]->synchronize();
        }
        rates[writes] = static_cast<double>(moved) / since(began);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return {rates[1], rates[0]};
  }

 private:
  void copy(bool writes, int64_t at) {
    const device::Location far{disk_.get(), at}, near{memory_.get(), writes * (kCopy + kPageBytes) + skew_};
    queue_[writes]->copy(writes ? far : near, writes ? near : far, kCopy);
  }
  const int64_t skew_;
  std::shared_ptr<device::Device> device_;
  std::unique_ptr<device::Block> disk_, memory_;
  std::unique_ptr<device::Queue> queue_[2];
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2] / 1e9;
}

struct Row {
  const char* name;
  std::vector<double> out, in, out_both, in_both;

  template <class Kind>
  void round(Kind& kind, double seconds) {
    out.push_back(kind.run(true, false, seconds).out);
    in.push_back(kind.run(false, true, seconds).in);
    const Rates both = kind.run(true, true, seconds);
    out_both.push_back(both.out);
    in_both.push_back(both.in);
  }
  void print() const {
    std::printf("| %s | %.2f | %.2f | %.2f | %.2f |\n", name, median(out), median(in), median(out_both),
                median(in_both));
  }
};

int run(int count, char** words) {
  const bench::Arguments arguments(count, words, "bench_disk [DIRECTORY [SECONDS [ROUNDS]]]");
  const auto& given = arguments.words(3);
  const std::string directory = given.empty() ? "/tmp" : given[0];
  const double seconds = given.size() > 1 ? arguments.real_of("SECONDS", given[1]) : 1.0;
  const int rounds = given.size() > 2 ? arguments.whole_of("ROUNDS", given[2]) : 5;
  Bare bare(directory);
  Tiered whole(directory, 0), skewed(directory, 64);
  Row rows[] = {{"bare file", {}, {}, {}, {}},
                {"tier, memory of whole sectors", {}, {}, {}, {}},
                {"tier, other memory", {}, {}, {}, {}}};
  for (int i = 0; i < rounds; ++i) {
    rows[0].round(bare, seconds);
    rows[1].round(whole, seconds);
    rows[2].round(skewed, seconds);
  }
  std::printf("| GB/s | write | read | write, both at once | read, both at once |\n|---|---|---|---|---|\n");
  for (const Row& row : rows) row.print();
  const Clock::time_point began = Clock::now();
  const auto link = costs::probe_disk(directory);
  const double took = since(began);
  if (link)
    std::printf("| probe, %.0f ms | %.2f | %.2f | x %.2f | x %.2f |\n", took * 1e3,
                link->out_bytes_per_second / 1e9, link->in_bytes_per_second / 1e9, link->both_ways_factor,
                link->both_ways_factor);
  return 0;
}

}  // namespace
}  // namespace cairn

int main(int count, char** words) { return cairn::run(count, words); }
