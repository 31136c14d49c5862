#include "kernels/registry.h"
#include "tests/runtime/device/support.h"

namespace cairn::device {
namespace {

TEST(Open, KnowsTheCpuAndTheReference) {
  const auto cpu = open("cpu", {});
  EXPECT_EQ(cpu->info().name, "cpu");
  EXPECT_EQ(&cpu->kernels(), &kernels::cpu_registry());
  EXPECT_EQ(&open("reference", {})->kernels(), &kernels::reference_registry());
  const DeviceInfo& info = cpu->info();
  EXPECT_FALSE(info.description.empty());
  EXPECT_GT(info.memory_bytes, 0);
  EXPECT_GE(info.threads, 1);
  EXPECT_GT(info.f32_flops_per_second, 0);
  EXPECT_GT(info.bf16_flops_per_second, 0);
  EXPECT_GT(info.memory_bytes_per_second, 0);
}

TEST(Open, UnknownNamesListTheKnown) {
  for (const char* name : {"", "gpu", "cpu:0", "cuda:", "cuda:x", "cuda0", "cuda:-1", "cuda:99999"}) {
    std::string message;
    EXPECT_EQ(code_of([&] { open(name, {}); }, &message), Code::kNotFound) << name;
    EXPECT_NE(message.find("cpu, reference, cuda:N"), std::string::npos) << message;
  }
}

TEST(Open, AMissingGpuIsANormalStatus) {
  for (const char* name : {"cuda", "cuda:0"}) {
    std::shared_ptr<Device> device;
    std::string message;
    const Code code = code_of([&] { device = open(name, {}); }, &message);
    if (code == Code::kOk) continue;  // a machine with the plugin
    EXPECT_EQ(code, Code::kUnsupported);
    EXPECT_NE(message.find(name), std::string::npos);
    EXPECT_NE(message.find("CUDA"), std::string::npos);
  }
}

TEST(Open, ListsWhatCanBeOpened) {
  const auto found = list();
  ASSERT_GE(found.size(), 2u);
  EXPECT_EQ(found[0].name, "cpu");
  EXPECT_EQ(found[1].name, "reference");
}

TEST(Open, RefusesSenselessOptions) {
  DeviceOptions options;
  options.threads = -1;
  EXPECT_EQ(code_of([&] { open("cpu", options); }), Code::kInvalidArgument);
  options.threads = 0;
  options.link_bytes_per_second = -5;
  EXPECT_EQ(code_of([&] { open("cpu", options); }), Code::kInvalidArgument);
}

}  // namespace
}  // namespace cairn::device
