#include "runtime/costs/disk_probe.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace cairn::costs {
namespace {

TEST(DiskProbe, MeasuresADirectoryAndLeavesNothingThere) {
  const std::string directory = ::testing::TempDir() + "cairn_probe_" + std::to_string(getpid());
  std::filesystem::create_directory(directory);
  const std::optional<plan::Link> link = probe_disk(directory);
  ASSERT_TRUE(link.has_value());
  EXPECT_EQ(link->tier, "disk");
  EXPECT_GT(link->out_bytes_per_second, 0);
  EXPECT_GT(link->in_bytes_per_second, 0);
  EXPECT_GT(link->latency_seconds, 0);
  EXPECT_GT(link->both_ways_factor, 0);
  EXPECT_LE(link->both_ways_factor, 1);
  EXPECT_EQ(link->capacity_bytes, 0);
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  std::filesystem::remove_all(directory);
}

TEST(DiskProbe, SaysNothingOfADirectoryThatTakesNoFile) {
  EXPECT_FALSE(probe_disk("/nonexistent-directory").has_value());
}

}  // namespace
}  // namespace cairn::costs
