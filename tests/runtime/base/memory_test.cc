#include "runtime/base/os/memory.h"

#include <gtest/gtest.h>

#include <cstring>

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

TEST(SystemAllocator, RefusesWhatNoMachineHas) {
  const HostAllocator& a = system_allocator();
  EXPECT_EQ(a.allocate(a.user, ~size_t{0} - 100, 4096), nullptr);
  EXPECT_EQ(a.allocate(a.user, size_t{1} << 60, 4096), nullptr);
  EXPECT_EQ(a.allocate(a.user, 0, 4096), nullptr);
  a.release(a.user, nullptr, 10, 64);
}

}  // namespace
}  // namespace cairn
