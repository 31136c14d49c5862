#include "runtime/device/cuda/numa.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>

#include "runtime/base/os/proc.h"

namespace cairn::device::cuda {

int numa_node(int domain, int bus, int device, const std::string& root) {
  char name[32];
  std::snprintf(name, sizeof name, "%04x:%02x:%02x.0", static_cast<unsigned>(domain),
                static_cast<unsigned>(bus), static_cast<unsigned>(device));
  const std::string whole = read_system_file((root + "/" + name + "/numa_node").c_str());
  std::string_view text = whole;
  return static_cast<int>(number_of(take_word(text)).value_or(-1));
}

void prefer_node(void* address, int64_t bytes, int node) {
  constexpr int kPreferred = 1;  // MPOL_PREFERRED: other nodes where this one is full
  constexpr int kMaxNodes = 64;
  if (node < 0 || node >= kMaxNodes) return;
  const unsigned long mask = 1ul << node;
  syscall(SYS_mbind, address, static_cast<unsigned long>(bytes), kPreferred, &mask, kMaxNodes + 1, 0);
}

}  // namespace cairn::device::cuda
