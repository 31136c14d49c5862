// Packed weights: under mixed precision the float32 weight is read through a copy of 16 bits in the same layout, made
// once per optimizer step. The transposed product reads the same layout.
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {

int64_t packed_bytes(const TensorDesc& weight, std::string_view, int64_t, DType compute, int) {
  const bool copied = weight.dtype == DType::kF32 || format(weight.dtype).read == Read::kDequantised;
  if ((compute != DType::kBF16 && compute != DType::kF16) || !copied || weight.shape.rank != 2) return 0;
  return checked_mul(2, weight.shape.elements());
}

}  // namespace cairn::kernels::cuda
