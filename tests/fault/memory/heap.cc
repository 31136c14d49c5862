#include "tests/fault/memory/heap.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

// The C library's own, under the names that it keeps for programs that define malloc.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* block, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* block);
}

namespace {

std::atomic<bool> armed{false};
std::atomic<long> calls{0}, failed_at{-1}, live_blocks{0};
long fail_at = -1;
heap::Failing kind = heap::Failing::kOne;

// Whether this allocation fails; sets errno then.
bool fails() {
  if (!armed.load(std::memory_order_relaxed)) return false;
  const long call = calls.fetch_add(1);
  if (fail_at < 0 || call < fail_at) return false;
  if (kind == heap::Failing::kOne && failed_at.load() >= 0) return false;
  long none = -1;
  const bool first = failed_at.compare_exchange_strong(none, call);
  if (kind == heap::Failing::kOne && !first) return false;
  errno = ENOMEM;
  return true;
}

void* counted(void* block) {
  if (block != nullptr) live_blocks.fetch_add(1, std::memory_order_relaxed);
  return block;
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED void* malloc(size_t bytes) { return fails() ? nullptr : counted(__libc_malloc(bytes)); }
EXPORTED void* calloc(size_t count, size_t bytes) {
  return fails() ? nullptr : counted(__libc_calloc(count, bytes));
}
EXPORTED void* realloc(void* block, size_t bytes) {
  if (fails()) return nullptr;
  void* const moved = __libc_realloc(block, bytes);
  return block == nullptr ? counted(moved) : moved;
}
EXPORTED void free(void* block) {
  if (block != nullptr) live_blocks.fetch_sub(1, std::memory_order_relaxed);
  __libc_free(block);
}
EXPORTED void* memalign(size_t alignment, size_t bytes) {
  return fails() ? nullptr : counted(__libc_memalign(alignment, bytes));
}
EXPORTED void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
EXPORTED int posix_memalign(void** out, size_t alignment, size_t bytes) {
  void* const block = memalign(alignment, bytes);
  if (block == nullptr) return ENOMEM;
  *out = block;
  return 0;
}

namespace heap {

void arm(long at, Failing failing) {
  fail_at = at;
  kind = failing;
  calls = 0;
  failed_at = -1;
  armed = true;
}

Outcome disarm() {
  armed = false;
  return {failed_at.load(), calls.load()};
}

long live() { return live_blocks.load(); }

}  // namespace heap
