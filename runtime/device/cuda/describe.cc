#include <algorithm>

#include "kernels/registry.h"
#include "runtime/base/os/cgroup.h"
#include "runtime/base/os/thread.h"
#include "runtime/device/cuda/device.h"
#include "runtime/device/cuda/status.h"

namespace cairn::device::cuda {
namespace {

// Dense products per multiprocessor and clock (bfloat16 with float32 sums; float32 on the ordinary units), as
// the vendor's architecture papers give them.
struct Architecture {
  int major, minor;
  const char* name;
  double bf16_flops, f32_flops;
};
constexpr Architecture kArchitectures[] = {
    {8, 0, "sm_80", 2048, 128}, {8, 6, "sm_86", 512, 256},    {8, 9, "sm_89", 1024, 256},
    {9, 0, "sm_90", 4096, 256}, {10, 0, "sm_100", 8192, 256}, {12, 0, "sm_120", 1024, 256},
};
constexpr double kSustained = 0.65;   // of the peak, by large products
constexpr double kBandwidth = 0.85;   // of the memory's, by long copies
constexpr int kMostHostThreads = 16;  // memory is what they wait for

// Of many processors not that of the thread that waits for the GPU: it looks all the time, and a loop is as slow as the
// slowest of its threads.
int host_threads() {
  const int all = usable_processors();
  return std::clamp(all - 1, std::min(all, 2), kMostHostThreads);
}

constexpr double kLink = 25e9;  // host link where nothing was measured: PCIe 4 x16

const Architecture& architecture_of(const cudaDeviceProp& p) {
  const Architecture* best = &kArchitectures[0];
  for (const Architecture& a : kArchitectures)
    if (a.major < p.major || (a.major == p.major && a.minor <= p.minor)) best = &a;
  return *best;
}

double attribute(cudaDeviceAttr which, int ordinal, double otherwise) {
  int value = 0;
  return cudaDeviceGetAttribute(&value, which, ordinal) == cudaSuccess && value > 0 ? value * 1e3 : otherwise;
}

}  // namespace

DeviceInfo describe(std::string_view name, int ordinal) {
  int count = 0, driver = 0;
  cudaDriverGetVersion(&driver);
  require(driver > 0, Code::kUnsupported, "device '", name, "': there is no NVIDIA driver on this machine");
  check(cudaGetDeviceCount(&count), cat("device '", name, "': no usable GPU"));
  require(ordinal < count, Code::kUnsupported, "device '", name, "': there ", count == 1 ? "is" : "are",
          " only ", count, count == 1 ? " GPU" : " GPUs");
  cudaDeviceProp p;
  check(cudaGetDeviceProperties(&p, ordinal), cat("device '", name, '\''));
  require(p.major >= 8, Code::kUnsupported, "device '", name, "': ", p.name, " has compute capability ",
          p.major, '.', p.minor, "; 8.0 or later is needed");
  const Architecture& a = architecture_of(p);
  const double clock = attribute(cudaDevAttrClockRate, ordinal, 1.5e9);
  const double memory_clock = attribute(cudaDevAttrMemoryClockRate, ordinal, 1.5e9);
  DeviceInfo info;
  info.name = name;
  info.processor = p.name;
  info.isa = info.isa_word = a.name;
  info.memory_bytes = static_cast<int64_t>(p.totalGlobalMem);
  MemoryLimit memory = memory_limit();
  info.host_memory_bytes = memory.bytes;
  info.memory_limit = std::move(memory.by);
  info.threads = 1;
  info.host_threads = host_threads();
  info.bf16 = true;
  info.bf16_flops_per_second = kSustained * p.multiProcessorCount * a.bf16_flops * clock;
  info.f32_flops_per_second = kSustained * p.multiProcessorCount * a.f32_flops * clock;
  info.memory_bytes_per_second = kBandwidth * 2 * memory_clock * p.memoryBusWidth / 8;
  info.link_bytes_per_second = kLink;
  info.host_reaches = false;
  info.description = cat(p.name, ", ", a.name, ", ", p.multiProcessorCount, " multiprocessors, ",
                         info.memory_bytes >> 20, " MiB, CUDA driver ", driver / 1000, '.',
                         driver % 1000 / 10, "; ", kernels::cuda_registry().facts().note);
  return info;
}

}  // namespace cairn::device::cuda
