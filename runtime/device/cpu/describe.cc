#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <thread>

#include "runtime/base/parallel.h"
#include "runtime/base/proc.h"
#include "runtime/device/cpu/device.h"

namespace cairn::device::cpu {
namespace {

// One thread's sustained rates in matrix products and its share of the memory's bandwidth. Round numbers,
// measured on server processors of each class: good enough to weigh recomputing against copying.
struct IsaRate {
  std::string_view flag;  // in /proc/cpuinfo
  std::string_view name;
  double f32_flops, bf16_flops;
};
constexpr IsaRate kRates[] = {
    {"amx_bf16", "AMX bf16", 1.8e11, 9.0e11},
    {"avx512_bf16", "AVX-512 bf16", 1.0e11, 1.8e11},
    {"avx512f", "AVX-512", 1.0e11, 5.0e10},
    {"avx2", "AVX2", 5.0e10, 2.5e10},
};
constexpr IsaRate kBaseline = {"", "SSE2", 1.0e10, 5.0e9};
constexpr double kBytesPerSecond = 12e9;

struct Processor {
  std::string model = "unknown processor";
  IsaRate rate = kBaseline;
};

Processor read_processor() {
  Processor found;
  const std::string whole = read_system_file("/proc/cpuinfo");
  bool model = false, flags = false;
  for (std::string_view text = whole; !text.empty() && !(model && flags);) {
    const std::string_view line = take_line(text);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    std::string_view value = line.substr(std::min(colon + 2, line.size()));
    if (!model && line.starts_with("model name")) {
      found.model = value, model = true;
    } else if (!flags && line.starts_with("flags")) {
      flags = true;
      std::vector<std::string_view> all;
      for (std::string_view word = take_word(value); !word.empty(); word = take_word(value))
        all.push_back(word);
      const auto* best = std::find_if(std::begin(kRates), std::end(kRates), [&](const IsaRate& r) {
        return std::find(all.begin(), all.end(), r.flag) != all.end();
      });
      if (best != std::end(kRates)) found.rate = *best;
    }
  }
  return found;
}

int usable_processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

DeviceInfo describe(std::string_view name, int threads) {
  const Processor processor = read_processor();
  DeviceInfo info;
  info.name = name;
#ifdef _OPENMP
  info.threads = threads > 0 ? threads : usable_processors();
#else
  info.threads = 1;  // parallel_for is serial in such a build
  (void)threads;
#endif
  info.processor = processor.model;
  info.isa = processor.rate.name;
  info.description = cat(processor.model, ", ", processor.rate.name, ", ", info.threads,
                         info.threads == 1 ? " thread" : " threads");
  info.memory_bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  info.bf16 = processor.rate.bf16_flops > processor.rate.f32_flops;
  info.f32_flops_per_second = processor.rate.f32_flops * info.threads;
  info.bf16_flops_per_second = processor.rate.bf16_flops * info.threads;
  info.memory_bytes_per_second = kBytesPerSecond * info.threads;
  return info;
}

}  // namespace cairn::device::cpu
