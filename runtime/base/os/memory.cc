#include "runtime/base/os/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "runtime/base/checked.h"

namespace cairn {
namespace {

// Big blocks start at a huge page's boundary: the products read all of a weight, and with 4 KiB pages that costs TLB
// misses.
constexpr size_t kHugePage = size_t{2} << 20;

// The system's pages, of 4, 16 or 64 KiB on AArch64: only full pages can be given back.
size_t page_bytes() {
  static const size_t bytes = static_cast<size_t>(std::max<long>(sysconf(_SC_PAGESIZE), kPageBytes));
  return bytes;
}
size_t whole_pages(size_t bytes) { return (bytes + page_bytes() - 1) & ~(page_bytes() - 1); }

void* map_pages(void*, size_t bytes, size_t alignment) {
  const size_t size = whole_pages(bytes);
  if (size < bytes || size == 0) return nullptr;
  const size_t unit = size >= kHugePage && alignment < kHugePage ? kHugePage : alignment;
  const size_t slack = unit > page_bytes() ? unit : 0;
  if (size + slack < size) return nullptr;
  void* mapped = mmap(nullptr, size + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  if (slack == 0) return mapped;
  // Give back what lies before the boundary and after the end: so far only address space was taken.
  const uintptr_t base = reinterpret_cast<uintptr_t>(mapped);
  const uintptr_t start = (base + unit - 1) & ~(unit - 1);
  if (start > base) munmap(mapped, start - base);
  const size_t behind = base + size + slack - (start + size);
  if (behind > 0) munmap(reinterpret_cast<void*>(start + size), behind);
  if (size >= kHugePage)
    madvise(reinterpret_cast<void*>(start), size, MADV_HUGEPAGE);  // a hint: may be refused
  return reinterpret_cast<void*>(start);
}

void unmap_pages(void*, void* block, size_t bytes, size_t) {
  if (block != nullptr) munmap(block, whole_pages(bytes));
}

constexpr HostAllocator kSystem{nullptr, map_pages, unmap_pages};

}  // namespace

const HostAllocator& system_allocator() { return kSystem; }

}  // namespace cairn
