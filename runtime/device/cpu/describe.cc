#include <unistd.h>

#include <algorithm>

#include "kernels/cpu/isa.h"
#include "runtime/base/proc.h"
#include "runtime/base/thread.h"
#include "runtime/device/cpu/device.h"

namespace cairn::device::cpu {
namespace {

// One thread's sustained rates in matrix products and its share of the memory's bandwidth. Round numbers,
// measured on server processors of each class: good enough to weigh recomputing against copying.
struct IsaRate {
  std::string_view name;
  double f32_flops, bf16_flops;
};
// By kernels::cpu::InstructionSet. Without tiles bfloat16 is widened to float32 before it is multiplied.
constexpr IsaRate kRates[] = {
    {"portable", 1.0e10, 5.0e9},      {"AVX2", 5.0e10, 2.5e10},     {"AVX-512", 1.0e11, 5.0e10},
    {"AVX-512 bf16", 1.0e11, 5.0e10}, {"AMX bf16", 1.8e11, 9.0e11},
};
constexpr double kBytesPerSecond = 12e9;

std::string processor_model() {
  const std::string whole = read_system_file("/proc/cpuinfo");
  for (std::string_view text = whole; !text.empty();) {
    const std::string_view line = take_line(text);
    const size_t colon = line.find(':');
    if (line.starts_with("model name") && colon != std::string_view::npos && colon + 2 <= line.size())
      return std::string(line.substr(colon + 2));
  }
  return "unknown processor";
}

}  // namespace

DeviceInfo describe(std::string_view name, int threads) {
  require(kernels::cpu::isa_refusal().empty(), Code::kInvalidArgument, kernels::cpu::isa_refusal());
  const kernels::cpu::InstructionSet isa = kernels::cpu::isa();
  const IsaRate& rate = kRates[static_cast<size_t>(isa)];
  DeviceInfo info;
  info.name = name;
  info.threads = threads > 0 ? threads : usable_processors();
  info.processor = processor_model();
  info.isa = rate.name;
  info.isa_word = kernels::cpu::isa_name(isa);
  info.description =
      cat(info.processor, ", ", info.isa, ", ", info.threads, info.threads == 1 ? " thread" : " threads");
  info.memory_bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  info.bf16 = rate.bf16_flops > rate.f32_flops;
  info.f32_flops_per_second = rate.f32_flops * info.threads;
  info.bf16_flops_per_second = rate.bf16_flops * info.threads;
  info.memory_bytes_per_second = kBytesPerSecond * info.threads;
  return info;
}

}  // namespace cairn::device::cpu
