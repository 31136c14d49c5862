#include "tests/fault/memory/heap.h"

#include <link.h>
#include <unwind.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

// The C library's own, under the names that it keeps for programs that define malloc.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* block, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* block);
}

namespace {

// Libraries of others that end the process when they get no memory: what they ask for themselves is given to
// them. Take a name out as soon as nothing of cairn's calls it any more.
constexpr const char* kSpared[] = {"libdnnl", "libgomp", "libsentencepiece", "libprotobuf"};

constexpr int kMostRanges = 32;
struct Range {
  uintptr_t begin, end;
};
Range spared[kMostRanges];
int spared_count = -1;  // -1: not looked up yet

std::atomic<bool> armed{false};
std::atomic<long> calls{0}, failed_at{-1}, live_blocks{0};
long fail_at = -1;
heap::Failing kind = heap::Failing::kOne;
thread_local bool looking = false;  // the unwinder may allocate

int note_library(dl_phdr_info* info, size_t, void*) {
  bool wanted = false;
  for (const char* name : kSpared) wanted = wanted || std::strstr(info->dlpi_name, name) != nullptr;
  for (int i = 0; wanted && i < info->dlpi_phnum && spared_count < kMostRanges; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    spared[spared_count++] = {begin, begin + segment.p_memsz};
  }
  return 0;
}

_Unwind_Reason_Code look(_Unwind_Context* context, void* found) {
  const uintptr_t at = _Unwind_GetIP(context);
  for (int i = 0; i < spared_count; ++i)
    if (at >= spared[i].begin && at < spared[i].end) {
      *static_cast<bool*>(found) = true;
      return _URC_END_OF_STACK;
    }
  return _URC_NO_REASON;
}

bool is_spared() {
  bool found = false;
  looking = true;
  _Unwind_Backtrace(look, &found);
  looking = false;
  return found;
}

// Whether this allocation fails; sets errno then.
bool fails() {
  if (!armed.load(std::memory_order_relaxed) || looking) return false;
  const long call = calls.fetch_add(1);
  if (fail_at < 0 || call < fail_at) return false;
  if (kind == heap::Failing::kOne && failed_at.load() >= 0) return false;
  if (spared_count > 0 && is_spared()) return false;
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
  if (spared_count < 0) {
    spared_count = 0;
    dl_iterate_phdr(note_library, nullptr);
    is_spared();  // the unwinder's own tables
  }
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
