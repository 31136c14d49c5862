#include "runtime/base/cuda/status.h"

namespace cairn::kernels::cuda {
namespace {

struct Meaning {
  cudaError_t status;
  Code code;
  const char* advice;
};
// Whatever is not here is a mistake of ours. Lost: the toolkit's documentation says of a status that the
// process cannot go on with CUDA, that memory or links failed beyond correction, or that the context is gone.
constexpr Meaning kMeanings[] = {
    {cudaErrorMemoryAllocation, Code::kOutOfMemory, ""},
    {cudaErrorInsufficientDriver, Code::kUnsupported, "; CUDA 13 needs a driver of version 580 or later"},
    {cudaErrorSystemDriverMismatch, Code::kUnsupported, "; driver and its libraries are of two versions"},
    {cudaErrorSystemNotReady, Code::kUnsupported, "; a service that the GPUs need does not run yet"},
    {cudaErrorDevicesUnavailable, Code::kUnsupported, "; another process holds the GPU for itself alone"},
    {cudaErrorNoDevice, Code::kUnsupported, ""},
    {cudaErrorInitializationError, Code::kUnsupported, ""},
    {cudaErrorNoKernelImageForDevice, Code::kUnsupported, "; compute capability 8.0 or later is needed"},
    {cudaErrorUnsupportedPtxVersion, Code::kUnsupported, "; the driver is older than the kernels"},
    {cudaErrorNotSupported, Code::kUnsupported, ""},
    {cudaErrorECCUncorrectable, Code::kDeviceLost, ""},
    {cudaErrorNvlinkUncorrectable, Code::kDeviceLost, ""},
    {cudaErrorContained, Code::kDeviceLost, ""},
    {cudaErrorIllegalAddress, Code::kDeviceLost, ""},
    {cudaErrorLaunchTimeout, Code::kDeviceLost, "; the system ends kernels that run longer than it allows"},
    {cudaErrorContextIsDestroyed, Code::kDeviceLost, "; the host program reset the device"},
    {cudaErrorAssert, Code::kDeviceLost, ""},
    {cudaErrorHardwareStackError, Code::kDeviceLost, ""},
    {cudaErrorIllegalInstruction, Code::kDeviceLost, ""},
    {cudaErrorMisalignedAddress, Code::kDeviceLost, ""},
    {cudaErrorInvalidAddressSpace, Code::kDeviceLost, ""},
    {cudaErrorInvalidPc, Code::kDeviceLost, ""},
    {cudaErrorLaunchFailure, Code::kDeviceLost, ""},
    {cudaErrorTensorMemoryLeak, Code::kDeviceLost, ""},
    {cudaErrorMpsClientTerminated, Code::kDeviceLost, ""},
    {cudaErrorExternalDevice, Code::kDeviceLost, ""},
    {cudaErrorUnknown, Code::kDeviceLost, ""},
};
constexpr Meaning kOurs{cudaSuccess, Code::kInternal, ""};

const Meaning& meaning_of(cudaError_t status) {
  for (const Meaning& m : kMeanings)
    if (m.status == status) return m;
  return kOurs;
}

}  // namespace

bool is_lost(cudaError_t status) { return meaning_of(status).code == Code::kDeviceLost; }
Code code_of(cudaError_t status) { return meaning_of(status).code; }
const char* advice_of(cudaError_t status) { return meaning_of(status).advice; }

Code code_of(Refusal refusal, cudaError_t runtime) {
  constexpr Code kCodes[] = {Code::kUnsupported, Code::kInternal, Code::kOutOfMemory, Code::kInternal};
  return is_lost(runtime) ? Code::kDeviceLost : kCodes[static_cast<size_t>(refusal)];
}

cudaError_t present_status() {
  size_t free_bytes = 0, total_bytes = 0;  // what is asked for matters little; it fails on a lost device
  return cudaMemGetInfo(&free_bytes, &total_bytes);
}

}  // namespace cairn::kernels::cuda
