// cuDNN without a GPU: it looks for its plans for a device that is only described. The driver's functions come from the toolkit's library
// for linkers, so kernels are compiled and not loaded.
#pragma once
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "kernels/cuda/native/cudnn_graph.h"

namespace cairn::kernels::cuda {

// An H200, in the words of cuDNN's own description of a device.
inline constexpr const char* kDevice = R"({"deviceVer": 900, "multiProcessorCount": 132, "warpSize": 32,
  "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024,
  "maxRegistersPerSM": 65536, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048,
  "regsPerBlock": 65536, "totalGlobalMem": 150110404608, "smClockRateKHz": 1980000, "l2CacheSize": 62914560,
  "maxBlockSize": [1024, 1024, 64], "memClockRateKHz": 3201000, "maxGridSize": [2147483647, 65535, 65535],
  "supportCoopLaunch": 1, "pciDeviceId": 0, "isTccDriver": 0, "cudaDeviceId": 0, "driverVer": 13000,
  "deviceName": "NVIDIA H200"})";

class DescribedDevice : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("CUDNN_FRONTEND_CUDART_LIB_NAME", CAIRN_NO_CUDART, 1);
    dlopen(CAIRN_LINK_DRIVER, RTLD_NOW | RTLD_GLOBAL);  // so that "libcuda.so.1" is there
    for (const char* name : {"libcudnn.so.9", CAIRN_CUDA_LIBRARIES "/libcudnn.so.9"})
      if (cudnn_frontend::cudnn_dlhandle == nullptr)
        cudnn_frontend::cudnn_dlhandle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  void SetUp() override {
    if (cudnn_frontend::cudnn_dlhandle == nullptr) GTEST_SKIP() << "there is no libcudnn.so.9";
    if (cudnn_frontend::detail::get_backend_version() < 90800)
      GTEST_SKIP() << "cuDNN before 9.8 needs the device itself";
  }
  static void describe(cudnn_frontend::graph::Graph& graph) {
    const std::string text = kDevice;
    auto device = std::make_shared<cudnn_frontend::DeviceProperties>();
    EXPECT_TRUE(device->deserialize({text.begin(), text.end()}).is_good());
    graph.set_device_properties(device).set_sm_version(90);
  }
};

}  // namespace cairn::kernels::cuda
