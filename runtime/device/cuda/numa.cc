#include "runtime/device/cuda/numa.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

namespace cairn::device::cuda {

int numa_node(int domain, int bus, int device, const std::string& root) {
  char name[32];
  std::snprintf(name, sizeof name, "%04x:%02x:%02x.0", static_cast<unsigned>(domain),
                static_cast<unsigned>(bus), static_cast<unsigned>(device));
  std::ifstream file(root + "/" + name + "/numa_node");
  int node = -1;
  return file >> node ? node : -1;
}

void prefer_node(void* address, int64_t bytes, int node) {
  constexpr int kPreferred = 1;  // MPOL_PREFERRED: other nodes where this one is full
  constexpr int kMostNodes = 64;
  if (node < 0 || node >= kMostNodes) return;
  const unsigned long mask = 1ul << node;
  syscall(SYS_mbind, address, static_cast<unsigned long>(bytes), kPreferred, &mask, kMostNodes + 1, 0);
}

}  // namespace cairn::device::cuda
