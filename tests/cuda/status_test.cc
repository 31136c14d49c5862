// What the driver's and the libraries' statuses become: a lost device only where it is lost.
#include "runtime/base/cuda/status.h"

#include <fstream>
#include <regex>
#include <set>

#include "kernels/cuda/products/product.h"
#include "tests/cuda/device_fixture.h"

namespace cairn::device {
namespace {

using kernels::cuda::Refusal;

constexpr cudaError_t kLost[] = {
    cudaErrorECCUncorrectable,    cudaErrorNvlinkUncorrectable, cudaErrorContained,
    cudaErrorIllegalAddress,      cudaErrorLaunchTimeout,       cudaErrorAssert,
    cudaErrorHardwareStackError,  cudaErrorIllegalInstruction,  cudaErrorMisalignedAddress,
    cudaErrorInvalidAddressSpace, cudaErrorInvalidPc,           cudaErrorLaunchFailure,
    cudaErrorTensorMemoryLeak,    cudaErrorMpsClientTerminated, cudaErrorExternalDevice,
};

TEST_F(Cuda, EveryStickyStatusIsALostDevice) {
  for (const cudaError_t status : kLost) {
    const auto queue = device().create_queue(Lane::kCompute);
    emulated::fail("cudaStreamSynchronize", status);
    std::string message;
    EXPECT_EQ(code_of([&] { queue->synchronize(); }, &message), Code::kDeviceLost) << message;
    EXPECT_NE(message.find(cudaGetErrorName(status)), std::string::npos) << message;
    EXPECT_TRUE(device().poisoned()) << message;
    EXPECT_EQ(code_of([&] { device().allocate(Tier::kDevice, 64); }), Code::kDeviceLost) << message;
    emulated::reset();
    device_.reset();
  }
}

TEST_F(Cuda, OtherStatusesLoseNoDevice) {
  const struct {
    cudaError_t status;
    Code code;
  } kCases[] = {{cudaErrorInvalidValue, Code::kInternal},
                {cudaErrorLaunchOutOfResources, Code::kInternal},
                {cudaErrorNotSupported, Code::kUnsupported},
                {cudaErrorNoKernelImageForDevice, Code::kUnsupported},
                {cudaErrorMemoryAllocation, Code::kOutOfMemory}};
  for (const auto& c : kCases) {
    const auto group = device().create_group();
    const auto queue = device().create_queue(Lane::kCompute, group);
    emulated::fail("cudaStreamSynchronize", c.status);
    EXPECT_EQ(code_of([&] { queue->synchronize(); }), c.code) << cudaGetErrorName(c.status);
    EXPECT_FALSE(device().poisoned());
  }
}

TEST_F(Cuda, DriversThatAreBusyOrNotReadyAreUnsupported) {
  for (const cudaError_t status :
       {cudaErrorDevicesUnavailable, cudaErrorSystemNotReady, cudaErrorUnsupportedPtxVersion}) {
    std::string message;
    emulated::fail("cudaGetDeviceCount", status);
    EXPECT_EQ(failing_open(&message), Code::kUnsupported) << message;
  }
}

// A launch may be the first call to learn that earlier work lost the device.
TEST_F(Cuda, ALaunchThatFindsTheDeviceLostSaysSo) {
  const auto queue = device().create_queue(Lane::kCompute, device().create_group());
  const FunctionKernel broken([](const kernels::Call&) {
    fail(kernels::cuda::code_of(cudaErrorIllegalAddress), "a kernel could not be started");
  });
  queue->launch(broken, {});
  EXPECT_TRUE(device().poisoned());
  EXPECT_EQ(code_of([&] { queue->synchronize(); }), Code::kDeviceLost);
}

TEST_F(Cuda, AProductThatTheLibraryRefusesLosesNoDevice) {
  kernels::cuda::ProductShape shape;
  shape.m = 4, shape.n = 8, shape.k = 8;
  const auto product = kernels::cuda::make_product(shape);
  const auto block = device().allocate(Tier::kDevice, 4096);
  char* const at = static_cast<char*>(block->address());
  const FunctionKernel kernel([&](const kernels::Call& call) {
    product->run({.stream = static_cast<const kernels::cuda::StreamContext*>(call.lane)->stream,
                  .a = at,
                  .b = at + 512,
                  .c = at + 1024,
                  .workspace = at + 2048});
  });
  const struct {
    cudaError_t refusal;
    Code code;
  } kCases[] = {{cudaErrorNotSupported, Code::kUnsupported}, {cudaErrorInvalidValue, Code::kInternal}};
  for (const auto& c : kCases) {
    const auto queue = device().create_queue(Lane::kCompute, device().create_group());
    emulated::fail("cublasLtMatmul", c.refusal);
    queue->launch(kernel, {});
    std::string message;
    EXPECT_EQ(code_of([&] { queue->synchronize(); }, &message), c.code);
    EXPECT_NE(message.find("f32[4, 8] x [8, 8]"), std::string::npos) << message;
    EXPECT_FALSE(device().poisoned());
  }
  const auto queue = device().create_queue(Lane::kCompute, device().create_group());
  emulated::fail("cublasLtMatmul", cudaErrorIllegalAddress);  // the runtime says so from then on
  queue->launch(kernel, {});
  EXPECT_EQ(code_of([&] { queue->synchronize(); }), Code::kDeviceLost);
  EXPECT_TRUE(device().poisoned());
}

TEST(CudaStatus, ALibrarysRefusalIsNoLostDevice) {
  using kernels::cuda::code_of;
  EXPECT_EQ(code_of(Refusal::kNotSupported, cudaSuccess), Code::kUnsupported);
  EXPECT_EQ(code_of(Refusal::kInvalidValue, cudaSuccess), Code::kInternal);
  EXPECT_EQ(code_of(Refusal::kNoMemory, cudaSuccess), Code::kOutOfMemory);
  EXPECT_EQ(code_of(Refusal::kFailed, cudaSuccess), Code::kInternal);
  for (const Refusal refusal :
       {Refusal::kNotSupported, Refusal::kInvalidValue, Refusal::kNoMemory, Refusal::kFailed})
    for (const cudaError_t status : kLost) EXPECT_EQ(code_of(refusal, status), Code::kDeviceLost);
}

// The toolkit's own words, where it is installed: "any further CUDA work will return the same error".
TEST(CudaStatus, NoStickyStatusOfTheToolkitIsMissing) {
  std::ifstream file("/usr/local/cuda/include/driver_types.h");
  if (!file) GTEST_SKIP() << "there is no CUDA toolkit";
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::regex status(R"(\bcudaError(\w+)\s*=\s*(\d+))");
  size_t from = 0;
  int found = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), status), end; it != end; ++it) {
    const auto at = static_cast<size_t>(it->position());
    const std::string about = text.substr(from, at - from);
    from = at;
    const bool sticky = about.find("inconsistent state") != std::string::npos ||
                        about.find("must be terminated and relaunched") != std::string::npos ||
                        about.find("uncorrectable") != std::string::npos;
    if (!sticky) continue;
    ++found;
    EXPECT_TRUE(kernels::cuda::is_lost(static_cast<cudaError_t>(std::stoi((*it)[2])))) << it->str();
  }
  EXPECT_GE(found, 12);
}

}  // namespace
}  // namespace cairn::device
