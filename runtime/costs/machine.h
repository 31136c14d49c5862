// The machine that seconds were measured on.
#pragma once
#include <cstdint>
#include <string>

namespace cairn::costs {

// Where a profile was measured. Costs are taken for another machine only if they are forced.
struct Machine {
  std::string processor;  // as the system names it
  std::string isa;        // the instruction set that the kernels use
  std::string device;     // "cpu", "cuda:0"
  int64_t threads = 0;
  int64_t memory_bytes = 0;
  std::string cairn;  // version; for the reader, not compared
};
// "" or what differs between processor, ISA, device and threads.
std::string difference(const Machine& measured, const Machine& here);

}  // namespace cairn::costs
