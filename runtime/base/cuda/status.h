// What statuses of the CUDA runtime, and of the libraries on it, mean to the caller of cairn.
#pragma once
#include <cuda_runtime_api.h>

#include "runtime/base/error.h"

namespace cairn::kernels::cuda {

// After these nothing on the device can be used any more, by anybody in this process.
bool is_lost(cudaError_t);
// kDeviceLost, kOutOfMemory, kUnsupported (no driver, no device, too old), or kInternal: a mistake of ours.
Code code_of(cudaError_t);
const char* advice_of(cudaError_t);  // "" or "; what to do"

// Why a library did not start what it was asked for.
enum class Refusal : uint8_t { kNotSupported, kInvalidValue, kNoMemory, kFailed };
// A library that refuses says nothing of the device: only the runtime's own status tells whether that is
// lost.
Code code_of(Refusal, cudaError_t runtime);

// What the runtime says of the device now: the status of earlier work that lost it, or cudaSuccess. Allowed
// while a stream is captured.
cudaError_t present_status();

}  // namespace cairn::kernels::cuda
