#include <unistd.h>

#include <algorithm>

#include "kernels/registry.h"
#include "runtime/base/os/proc.h"
#include "runtime/base/os/thread.h"
#include "runtime/device/cpu/device.h"

namespace cairn::device::cpu {
namespace {

// One thread's share of the memory's bandwidth: a round number, measured on server processors.
constexpr double kBytesPerSecond = 12e9;

// What the first processor's line of that name says; "": there is none.
std::string_view said_of(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const size_t colon = line.find(':');
    if (line.starts_with(name) && colon != std::string_view::npos && colon + 2 <= line.size())
      return line.substr(colon + 2);
  }
  return {};
}

// Kernels for AArch64 give numbers in place of a name.
std::string processor_model() {
  const std::string whole = read_system_file("/proc/cpuinfo");
  if (const std::string_view name = said_of(whole, "model name"); !name.empty()) return std::string(name);
  const std::string_view maker = said_of(whole, "CPU implementer"), part = said_of(whole, "CPU part");
  if (!maker.empty() && !part.empty()) return cat("processor ", part, " of implementer ", maker);
  return "unknown processor";
}

}  // namespace

DeviceInfo describe(std::string_view name, int threads) {
  const kernels::BackendFacts facts = kernels::cpu_registry().facts();
  require(facts.refusal.empty(), Code::kInvalidArgument, facts.refusal);
  DeviceInfo info;
  info.name = name;
  info.threads = info.host_threads = threads > 0 ? threads : usable_processors();
  info.processor = processor_model();
  info.isa = facts.instruction_set;
  info.isa_word = facts.instruction_set_word;
  info.description =
      cat(info.processor, ", ", info.isa, ", ", info.threads, info.threads == 1 ? " thread" : " threads");
  info.memory_bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  info.bf16 = facts.bf16_flops_per_second > facts.f32_flops_per_second;
  info.f32_flops_per_second = facts.f32_flops_per_second * info.threads;
  info.bf16_flops_per_second = facts.bf16_flops_per_second * info.threads;
  info.memory_bytes_per_second = kBytesPerSecond * info.threads;
  return info;
}

}  // namespace cairn::device::cpu
