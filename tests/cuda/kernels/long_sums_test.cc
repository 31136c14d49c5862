// Sums over many rows, of all kernels but products, whose sums are the library's own.
#include "tests/conformance/long_sums.h"

#include <string_view>

#include "kernels/registry.h"

namespace cairn::conformance {
namespace {

// Most sums are cut into parts for as many multiprocessors as there are: 2 here, 132 on a GPU, so that what one thread
// adds up is as much longer. Windows of an embedding's tokens are of one size.
constexpr double kWithin = 2e-5, kWithinOfWindows = 1e-6;

TEST(CudaLongSums, AreThoseOfFloat64) {
  for (const auto& [rows, columns, type] : {std::tuple{1 << 15, 4, DType::kF32}, {1 << 13, 5, DType::kBF16}})
    for (const LongSum& sum : long_sums(rows, columns, type)) {
      const std::string_view op = sum.call.op;
      if (op == "linear_grad_weight") continue;
      check_long_sums(kernels::cuda_registry(), {sum}, 1,
                      op == "embedding_grad" ? kWithinOfWindows : kWithin);
    }
}

}  // namespace
}  // namespace cairn::conformance
