// The CUDA device on the emulated runtime, as its tests use it.
#pragma once
#include "runtime/base/cuda/stream_context.h"
#include "runtime/device/cuda/device.h"
#include "tests/cuda/emulated/runtime.h"
#include "tests/runtime/device/support.h"

namespace cairn::device {

namespace emulated = kernels::cuda::emulated;

// Submits `function` to the call's stream.
inline FunctionKernel on_stream(std::function<void(const kernels::Call&)> function) {
  return FunctionKernel([function](const kernels::Call& call) {
    const auto& lane = *static_cast<const kernels::cuda::StreamContext*>(call.lane);
    emulated::submit(lane.stream, [function, call] { function(call); });
  });
}

class Cuda : public ::testing::Test {
 protected:
  void SetUp() override { emulated::reset(); }
  void TearDown() override {
    device_.reset();
    emulated::reset();
    EXPECT_EQ(emulated::allocated_bytes(), 0);
    EXPECT_EQ(emulated::registered_bytes(), 0);
  }
  Device& device() {
    if (!device_) device_ = cuda::open("cuda:0", options_);
    return *device_;
  }
  Code failing_open(std::string* message) {
    return code_of([&] { cuda::open("cuda:0", {}); }, message);
  }

  DeviceOptions options_;
  std::shared_ptr<Device> device_;
};

inline int value_at(const Block& block, int64_t offset) {
  char byte = 0;
  block.read(offset, &byte, 1);
  return byte;
}

}  // namespace cairn::device
