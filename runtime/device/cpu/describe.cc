#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include "runtime/base/thread.h"
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
  std::ifstream file("/proc/cpuinfo");
  bool model = false, flags = false;
  for (std::string line; !(model && flags) && std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string text = colon + 2 <= line.size() ? line.substr(colon + 2) : "";
    if (!model && line.starts_with("model name")) {
      found.model = text, model = true;
    } else if (!flags && line.starts_with("flags")) {
      flags = true;
      std::istringstream words(text);
      const std::vector<std::string> all{std::istream_iterator<std::string>(words), {}};
      const auto* best = std::find_if(std::begin(kRates), std::end(kRates), [&](const IsaRate& r) {
        return std::find(all.begin(), all.end(), r.flag) != all.end();
      });
      if (best != std::end(kRates)) found.rate = *best;
    }
  }
  return found;
}

}  // namespace

DeviceInfo describe(std::string_view name, int threads) {
  const Processor processor = read_processor();
  DeviceInfo info;
  info.name = name;
  info.threads = threads > 0 ? threads : usable_processors();
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
