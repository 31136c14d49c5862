#include "tests/conformance/long_sums.h"

#include "kernels/registry.h"

namespace cairn::conformance {
namespace {

constexpr double kWithin = 1e-6;  // what PyTorch's sums are off by

TEST(LongSums, OfTheCpuKernelsAreThoseOfFloat64) {
  const kernels::Registry& cpu = kernels::cpu_registry();
  check_long_sums(cpu, long_sums(1 << 19, 4, DType::kF32), 2, kWithin);
  check_long_sums(cpu, long_sums(1 << 17, 5, DType::kF32), 1, kWithin);
  check_long_sums(cpu, long_sums(1 << 17, 4, DType::kBF16), 3, kWithin);
  check_long_sums(cpu, long_sums(5000, 70, DType::kF32), 2, kWithin);
  check_long_sums(cpu, wide_sums((1 << 19) + 3, DType::kF32), 2, kWithin);
}

}  // namespace
}  // namespace cairn::conformance
