#include <algorithm>

#include "kernels/registry.h"
#include "runtime/base/os/cgroup.h"
#include "runtime/base/os/proc.h"
#include "runtime/base/os/thread.h"
#include "runtime/device/cpu/device.h"

namespace cairn::device::cpu {
namespace {

// One thread's share of the memory's bandwidth: a round number, measured on server processors.
constexpr double kBytesPerSecond = 12e9;

}  // namespace

DeviceInfo describe(std::string_view name, int threads) {
  const kernels::BackendFacts facts = kernels::cpu_registry().facts();
  require(facts.refusal.empty(), Code::kInvalidArgument, facts.refusal);
  DeviceInfo info;
  info.name = name;
  info.threads = info.host_threads = threads > 0 ? threads : usable_processors();
  info.processor = processor_name();
  info.isa = facts.instruction_set;
  info.isa_word = facts.instruction_set_word;
  info.description =
      cat(info.processor, ", ", info.isa, ", ", info.threads, info.threads == 1 ? " thread" : " threads");
  MemoryLimit memory = memory_limit();
  info.memory_bytes = memory.bytes;
  info.memory_limit = std::move(memory.by);
  info.bf16 = facts.bf16_flops_per_second > facts.f32_flops_per_second;
  info.f32_flops_per_second = facts.f32_flops_per_second * info.threads;
  info.bf16_flops_per_second = facts.bf16_flops_per_second * info.threads;
  info.memory_bytes_per_second = kBytesPerSecond * info.threads;
  return info;
}

}  // namespace cairn::device::cpu
