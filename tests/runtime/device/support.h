// Small kernels with visible effects, and a device to run them on.
#pragma once
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include "runtime/device/device.h"

namespace cairn::device {

struct FunctionKernel : kernels::Kernel {
  explicit FunctionKernel(std::function<void(const kernels::Call&)> f, int64_t workspace = 0)
      : function(std::move(f)), workspace_size(workspace) {}
  int64_t workspace_bytes() const override { return workspace_size; }
  void run(const kernels::Call& call) const override { function(call); }
  std::function<void(const kernels::Call&)> function;
  int64_t workspace_size;
};

inline std::shared_ptr<Device> open_cpu(DeviceOptions options = {}) {
  if (options.threads == 0) options.threads = 1;
  return open("reference", options);
}

inline Tensor bytes_at(Block& block, int64_t offset, int64_t bytes) {
  return {{DType::kU8, {bytes}}, static_cast<char*>(block.address()) + offset};
}

template <class Call>
Code code_of(const Call& call, std::string* message = nullptr) {
  try {
    call();
  } catch (const Error& error) {
    if (message != nullptr) *message = error.what();
    return error.code();
  }
  return Code::kOk;
}

inline void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

}  // namespace cairn::device
