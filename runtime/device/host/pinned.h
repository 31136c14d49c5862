// Memory that is there before anybody needs it: every page present, locked where the system allows. What a
// CPU has in place of registering host memory with a device.
#pragma once
#include <cstdint>
#include <string>

#include "runtime/device/host/state.h"

namespace cairn::device::host {

// Makes every page present, on up to `threads` threads. False: the system has too few.
bool populate(void* address, int64_t bytes, int threads);

// mlock. "" or why not.
std::string lock_pages(void* address, int64_t bytes);
void unlock_pages(void* address, int64_t bytes);

// Takes `bytes` (> 0) for `tier` from the allocator, zeroed; with `pin`, present and locked. kOutOfMemory
// with the fault. Counts pinned bytes, and nothing else, in the ledger.
class Memory {
 public:
  Memory(State& state, Tier tier, int64_t bytes, bool pin);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  char* address() const { return address_; }
  int64_t pinned_bytes() const { return pinned_ ? bytes_ : 0; }

 private:
  void release();
  State& state_;
  const Tier tier_;
  const int64_t bytes_;
  char* address_ = nullptr;
  bool pinned_ = false;
};

}  // namespace cairn::device::host
