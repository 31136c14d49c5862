#include "runtime/costs/machine_facts.h"

#include <gtest/gtest.h>

#include "runtime/costs/rate_source.h"

namespace cairn::costs {
namespace {

const std::string kModel(kRatesModel);

device::DeviceInfo at_directory(const std::string& directory) {
  device::DeviceInfo info;
  info.disk_directory = directory;
  return info;
}

TEST(MachineFacts, TheDirectorySaysItsRoom) {
  const MachineFacts facts = find_machine_facts(at_directory(testing::TempDir()), nullptr, true, kModel);
  EXPECT_EQ(facts.disk_refusal, "");
  EXPECT_GT(facts.disk_room_bytes, 0);
  EXPECT_LT(facts.disk_room_bytes, MachineFacts().disk_room_bytes);
  EXPECT_FALSE(facts.disk) << "the model's rates are no measured ones";
  EXPECT_EQ(facts.host_memory_bytes_per_second, 0) << "the host reaches the device: no update runs there";
}

TEST(MachineFacts, ADirectoryThatTakesNoFilesIsNamed) {
  const MachineFacts facts =
      find_machine_facts(at_directory("/nonexistent-directory"), nullptr, true, kModel);
  EXPECT_NE(facts.disk_refusal.find("/nonexistent-directory"), std::string::npos) << facts.disk_refusal;
}

TEST(MachineFacts, NobodyIsAskedWithoutADiskOrForAModel) {
  const device::DeviceInfo info = at_directory("/nonexistent-directory");
  EXPECT_EQ(find_machine_facts(info, nullptr, false, kModel).disk_refusal, "");
  Table table;
  table.model.emplace();
  EXPECT_EQ(find_machine_facts(info, &table, true, kModel).disk_refusal, "");
}

}  // namespace
}  // namespace cairn::costs
