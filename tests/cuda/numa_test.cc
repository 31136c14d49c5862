#include "runtime/device/cuda/numa.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <vector>

namespace cairn::device::cuda {
namespace {

TEST(Numa, IsReadWhereTheSystemHasIt) {
  const std::filesystem::path root = std::filesystem::path(::testing::TempDir()) / "cairn_numa";
  std::filesystem::create_directories(root / "0001:c1:00.0");
  std::ofstream(root / "0001:c1:00.0" / "numa_node") << "1\n";
  EXPECT_EQ(numa_node(1, 0xc1, 0, root), 1);
  EXPECT_EQ(numa_node(0, 0xc1, 0, root), -1);
  std::filesystem::remove_all(root);
}

TEST(Numa, AWishThatCannotBeMetChangesNothing) {
  std::vector<char> memory(1 << 16, 'c');
  for (const int node : {-1, 0, 63, 1000})
    prefer_node(memory.data(), static_cast<int64_t>(memory.size()), node);
  for (const char c : memory) ASSERT_EQ(c, 'c');
}

}  // namespace
}  // namespace cairn::device::cuda
