// The kernels of the CUDA backend, compiled for the emulation, against the reference.
#include "kernels/cuda/rows.h"
#include "tests/conformance/backend.h"

namespace cairn::conformance {
namespace {

TEST(CudaKernels, AgreeWithTheReference) { check_backend(kernels::cuda_registry()); }

}  // namespace
}  // namespace cairn::conformance
