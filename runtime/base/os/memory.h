// The host's allocator: every block that cairn takes for tensors (arenas, host tier, staging) comes from
// here.
#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/base/error.h"

namespace cairn {

// allocate returns `bytes` bytes aligned to `alignment` (a power of two), or nullptr; release gets the same
// sizes. Both may be called from any thread.
struct HostAllocator {
  void* user = nullptr;
  void* (*allocate)(void* user, size_t bytes, size_t alignment) = nullptr;
  void (*release)(void* user, void* block, size_t bytes, size_t alignment) = nullptr;
};

// mmap: exact sizes (page granular), zeroed, returned to the system at once.
const HostAllocator& system_allocator();

}  // namespace cairn
