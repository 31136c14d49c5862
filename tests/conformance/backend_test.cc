#include "tests/conformance/backend.h"

namespace cairn::conformance {
namespace {

TEST(Backend, CpuKernelsAgreeWithTheReference) { check_backend(kernels::cpu_registry()); }

}  // namespace
}  // namespace cairn::conformance
