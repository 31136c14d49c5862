// The kernels of the CUDA backend, compiled for the emulation, against the reference.
#include "kernels/cuda/rows.h"
#include "kernels/registry.h"
#include "tests/conformance/backend.h"
#include "tests/cuda/kernels/known.h"

namespace cairn::conformance {
namespace {

TEST(CudaKernels, AgreeWithTheReference) {
  const Known known{kCudaUnsupported, kCudaFailures, {}};
  check_backend(kernels::cuda_registry(), &known);
}

}  // namespace
}  // namespace cairn::conformance
