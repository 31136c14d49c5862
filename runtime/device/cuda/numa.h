// Host memory near the GPU: copies to memory of another socket cross the link between sockets as well.
#pragma once
#include <cstdint>
#include <string>

namespace cairn::device::cuda {

// The memory node that a PCI device hangs on, as the system says; -1: unknown, or there is only one.
int numa_node(int domain, int bus, int device, const std::string& root = "/sys/bus/pci/devices");
// Pages of the range that are not there yet should come from the node. A wish: nothing happens where it
// cannot be met.
void prefer_node(void* address, int64_t bytes, int node);

}  // namespace cairn::device::cuda
