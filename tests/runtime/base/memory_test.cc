#include "runtime/base/os/memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

namespace cairn {
namespace {

TEST(SystemAllocator, GivesZeroedAlignedBlocksOfAnySize) {
  const HostAllocator& a = system_allocator();
  for (const size_t bytes :
       {size_t{1}, size_t{4096}, size_t{4097}, (size_t{2} << 20) - 1, size_t{2} << 20, size_t{5000001}})
    for (const size_t alignment : {size_t{64}, size_t{4096}, size_t{1} << 16}) {
      auto* block = static_cast<unsigned char*>(a.allocate(a.user, bytes, alignment));
      ASSERT_NE(block, nullptr) << bytes << " at " << alignment;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % alignment, 0u);
      for (size_t i = 0; i < bytes; i += 997) ASSERT_EQ(block[i], 0) << i;
      EXPECT_EQ(block[bytes - 1], 0);
      std::memset(block, 0xab, bytes);
      a.release(a.user, block, bytes, alignment);
    }
}

// What lies before an aligned block and behind it goes back at once, whatever pages the system has.
TEST(SystemAllocator, AddressesComeBack) {
  const HostAllocator& a = system_allocator();
  const auto mapped = [] {
    int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * ::sysconf(_SC_PAGESIZE);
  };
  const int64_t before = mapped();
  if (before == 0) GTEST_SKIP() << "needs /proc";
  for (int i = 0; i < 1000; ++i) {
    void* const block = a.allocate(a.user, 5000001, 64);
    ASSERT_NE(block, nullptr);
    a.release(a.user, block, 5000001, 64);
  }
  EXPECT_LT(mapped(), before + (int64_t{64} << 20));
}

TEST(SystemAllocator, RefusesWhatNoMachineHas) {
  const HostAllocator& a = system_allocator();
  EXPECT_EQ(a.allocate(a.user, ~size_t{0} - 100, 4096), nullptr);
  EXPECT_EQ(a.allocate(a.user, size_t{1} << 60, 4096), nullptr);
  EXPECT_EQ(a.allocate(a.user, 0, 4096), nullptr);
  a.release(a.user, nullptr, 10, 64);
}

}  // namespace
}  // namespace cairn
