#include "runtime/device/cuda/status.h"

namespace cairn::device::cuda {
namespace {

struct Meaning {
  cudaError_t status;
  Code code;
  const char* advice;
};
// Whatever is not here is a mistake of ours.
constexpr Meaning kMeanings[] = {
    {cudaErrorMemoryAllocation, Code::kOutOfMemory, ""},
    {cudaErrorInsufficientDriver, Code::kUnsupported, "; CUDA 13 needs a driver of version 580 or later"},
    {cudaErrorSystemDriverMismatch, Code::kUnsupported, "; driver and its libraries are of two versions"},
    {cudaErrorNoDevice, Code::kUnsupported, ""},
    {cudaErrorInitializationError, Code::kUnsupported, ""},
    {cudaErrorNoKernelImageForDevice, Code::kUnsupported, "; compute capability 8.0 or later is needed"},
    {cudaErrorNotSupported, Code::kUnsupported, ""},
    {cudaErrorIllegalAddress, Code::kDeviceLost, ""},
    {cudaErrorLaunchFailure, Code::kDeviceLost, ""},
    {cudaErrorECCUncorrectable, Code::kDeviceLost, ""},
    {cudaErrorUnknown, Code::kDeviceLost, ""},
};

}  // namespace

bool is_lost(cudaError_t status) {
  for (const Meaning& m : kMeanings)
    if (m.status == status) return m.code == Code::kDeviceLost;
  return false;
}

Error error_of(cudaError_t status, std::string_view what) {
  Code code = Code::kInternal;
  const char* advice = "";
  for (const Meaning& m : kMeanings)
    if (m.status == status) code = m.code, advice = m.advice;
  return Error(code,
               cat(what, ": ", cudaGetErrorString(status), " (", cudaGetErrorName(status), ')', advice));
}

}  // namespace cairn::device::cuda
