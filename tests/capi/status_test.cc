// Chapter 1: status, errors, texts; and the rule of struct_size, which holds for every struct.
#include <cstring>

#include "tests/capi/rig.h"

namespace cairn_test {
namespace {

TEST(Status, EveryCodeHasItsName) {
  const std::vector<std::string> names = {"OK",          "INVALID_ARGUMENT", "WRONG_STATE", "OUT_OF_MEMORY",
                                          "OVER_BUDGET", "UNSUPPORTED",      "NOT_FOUND",   "CORRUPT_FILE",
                                          "IO",          "DEVICE_LOST",      "CANCELLED",   "NON_FINITE",
                                          "INTERNAL"};
  for (size_t i = 0; i < names.size(); ++i) EXPECT_EQ(cairn_status_name(static_cast<int32_t>(i)), names[i]);
  for (int32_t none : {-1, 13, 1 << 30}) EXPECT_STREQ(cairn_status_name(none), "UNKNOWN");
}

TEST(Status, NullHandlesAreNothing) {
  cairn_error_retain(nullptr);
  cairn_error_release(nullptr);
  EXPECT_EQ(cairn_error_status(nullptr), CAIRN_STATUS_OK);
  EXPECT_STREQ(cairn_error_message(nullptr), "");
  EXPECT_STREQ(cairn_text_data(nullptr), "");
  EXPECT_EQ(cairn_text_size(nullptr), 0u);
  cairn_text_release(nullptr);
  cairn_instance_release(nullptr);
  cairn_device_release(nullptr);
  cairn_graph_release(nullptr);
  cairn_plan_release(nullptr);
  cairn_session_release(nullptr);
  cairn_session_cancel(nullptr);
  cairn_stepper_release(nullptr);
  cairn_checkpoint_release(nullptr);
  cairn_tokenizer_release(nullptr);
  cairn_dataset_release(nullptr);
  EXPECT_EQ(cairn_graph_value_count(nullptr), 0u);
  EXPECT_EQ(cairn_graph_find(nullptr, "x"), 0u);
  EXPECT_EQ(cairn_tokenizer_vocabulary(nullptr), 0u);
  EXPECT_STREQ(cairn_checkpoint_directory(nullptr), "");
  EXPECT_EQ(cairn_checkpoint_metadata(nullptr, "key"), nullptr);
}

TEST(Status, ErrorStaysUntilTheNextFailure) {
  Failure failure;
  EXPECT_EQ(cairn_error_status(failure), CAIRN_STATUS_OK);
  EXPECT_EQ(failure.message(), "");
  cairn_instance_t* instance = nullptr;
  expect_failure(cairn_instance_create(nullptr, nullptr, failure), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"out_instance", "NULL"});
  const std::string before = failure.message();
  ASSERT_EQ(cairn_instance_create(nullptr, &instance, failure), CAIRN_STATUS_OK);
  EXPECT_EQ(failure.message(), before);
  cairn_graph_t* graph = nullptr;
  expect_failure(cairn_graph_create(nullptr, &graph, failure), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"'instance'"});
  EXPECT_EQ(graph, nullptr);
  cairn_instance_release(instance);
}

TEST(Status, LongMessagesAreCutAtACharacter) {
  const auto instance = cairn::Instance::create();
  std::string name;
  while (name.size() < 3000) name += "\xc3\xa4";  // a two-byte letter
  Failure failure;
  cairn_device_t* device = nullptr;
  EXPECT_EQ(cairn_device_open(instance.get(), name.c_str(), nullptr, &device, failure),
            CAIRN_STATUS_NOT_FOUND);
  const std::string message = failure.message();
  EXPECT_LE(message.size(), 1023u);
  EXPECT_GE(message.size(), 1022u);
  EXPECT_EQ(static_cast<unsigned char>(message.back()), 0xa4) << "half a letter at the end";
}

TEST(Status, FaultOnlyAfterFailuresOfMemory) {
  Failure failure;
  cairn_memory_fault_t fault = CAIRN_MEMORY_FAULT_INIT;
  EXPECT_EQ(cairn_error_memory_fault(failure, &fault), CAIRN_STATUS_NOT_FOUND);
  EXPECT_EQ(cairn_error_memory_fault(failure, nullptr), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(cairn_error_memory_fault(nullptr, &fault), CAIRN_STATUS_INVALID_ARGUMENT);

  const Devices devices;
  const auto graph = perceptron(devices.instance);
  cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
  options.budget_bytes = 1;
  cairn_plan_t* plan = nullptr;
  ASSERT_EQ(cairn_plan_create(graph.get(), devices.device.get(), &options, &plan, failure),
            CAIRN_STATUS_OVER_BUDGET);
  ASSERT_EQ(cairn_error_memory_fault(failure, &fault), CAIRN_STATUS_OK);
  EXPECT_EQ(fault.budget_bytes, 1u);
  EXPECT_GT(fault.smallest_budget_bytes, 1u);
  EXPECT_NE(std::string(fault.region), "");
  // A failure of another kind takes the fault away.
  EXPECT_EQ(cairn_plan_create(nullptr, devices.device.get(), &options, &plan, failure),
            CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(cairn_error_memory_fault(failure, &fault), CAIRN_STATUS_NOT_FOUND);
}

// ---- struct_size

struct Larger {
  cairn_device_options_t known = CAIRN_DEVICE_OPTIONS_INIT;
  uint64_t unknown[2] = {0, 0};
  Larger() { known.struct_size = sizeof(Larger); }
};

TEST(StructSize, LargerIsFineWithAZeroTailAndToldOtherwise) {
  const auto instance = cairn::Instance::create();
  Larger options;
  Failure failure;
  cairn_device_t* device = nullptr;
  ASSERT_EQ(cairn_device_open(instance.get(), "cpu", &options.known, &device, failure), CAIRN_STATUS_OK)
      << failure.message();
  cairn_device_release(device);
  device = nullptr;
  reinterpret_cast<char*>(&options)[sizeof(Larger) - 1] = 1;
  expect_failure(cairn_device_open(instance.get(), "cpu", &options.known, &device, failure),
                 CAIRN_STATUS_UNSUPPORTED, failure, {"options"});
  EXPECT_EQ(device, nullptr);
}

TEST(StructSize, SmallerLeavesTheRestZero) {
  const auto instance = cairn::Instance::create();
  cairn_device_options_t options = CAIRN_DEVICE_OPTIONS_INIT;
  options.threads = 1;
  options.verify = 77;  // not read: the caller says that its struct ends before
  options.struct_size = offsetof(cairn_device_options_t, verify);
  Failure failure;
  cairn_device_t* device = nullptr;
  ASSERT_EQ(cairn_device_open(instance.get(), "cpu", &options, &device, failure), CAIRN_STATUS_OK)
      << failure.message();
  cairn_device_release(device);
  for (size_t size : {size_t{0}, size_t{7}, size_t{1} << 40}) {
    options.struct_size = size;
    expect_failure(cairn_device_open(instance.get(), "cpu", &options, &device, failure),
                   CAIRN_STATUS_INVALID_ARGUMENT, failure, {"struct_size"});
  }
}

TEST(StructSize, OutStructsAreFilledAsFarAsTheyReach) {
  const auto instance = cairn::Instance::create();
  Failure failure;
  cairn_device_info_t info = CAIRN_DEVICE_INFO_INIT;
  info.struct_size = offsetof(cairn_device_info_t, memory_bytes);
  info.memory_bytes = 4242;
  ASSERT_EQ(cairn_instance_device(instance.get(), 0, &info, failure), CAIRN_STATUS_OK) << failure.message();
  EXPECT_STREQ(info.name, "cpu");
  EXPECT_EQ(info.memory_bytes, 4242u) << "written past the caller's struct";
  EXPECT_EQ(info.struct_size, offsetof(cairn_device_info_t, memory_bytes));

  struct {
    cairn_device_info_t known = CAIRN_DEVICE_INFO_INIT;
    uint64_t tail = 0;
  } larger;
  larger.known.struct_size = sizeof(larger);
  EXPECT_EQ(cairn_instance_device(instance.get(), 0, &larger.known, failure), CAIRN_STATUS_OK);
  larger.tail = 1;
  EXPECT_EQ(cairn_instance_device(instance.get(), 0, &larger.known, failure), CAIRN_STATUS_UNSUPPORTED);
}

}  // namespace
}  // namespace cairn_test
