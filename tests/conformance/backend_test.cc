#include "tests/conformance/backend.h"

#include "kernels/registry.h"

namespace cairn::conformance {
namespace {

TEST(Backend, GatesOfUpdates) {
  check_grad_scales(kernels::reference_registry());
  check_grad_scales(kernels::cpu_registry());
}

TEST(Backend, UpdatesThatNoKernelTakes) {
  check_refusals(kernels::reference_registry());
  check_refusals(kernels::cpu_registry());
}

TEST(Backend, CpuKernelsAgreeWithTheReference) { check_backend(kernels::cpu_registry()); }

}  // namespace
}  // namespace cairn::conformance
