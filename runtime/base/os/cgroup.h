// How much memory this process may use: the machine's, less where a control group (a container, a systemd unit, a job of
// a cluster) or a limit of the process itself says so.
#pragma once
#include <cstdint>
#include <limits>
#include <string>

namespace cairn {

inline constexpr int64_t kNoMemoryLimit = std::numeric_limits<int64_t>::max();

struct MemoryLimit {
  int64_t bytes = kNoMemoryLimit;
  std::string by;  // the file or limit that sets it; "": it is all of the machine's memory
};

// The least of the machine's memory, of what its own control group and all groups above it allow that can be seen
// (version 2: memory.max, memory.high; version 1: memory.limit_in_bytes, hierarchical_memory_limit), and of
// RLIMIT_AS and RLIMIT_DATA. root: where /proc and the mount points are looked for; "" but in tests.
MemoryLimit memory_limit(const std::string& root = "");

// Bytes that the machine and the groups can still give without taking them from others: what their page caches hold
// would be given back. kNoMemoryLimit where nobody says.
int64_t available_memory(const std::string& root = "");

}  // namespace cairn
