// What the products with weights share: activations, bfloat16 copies of float32 weights.
#pragma once
#include "kernels/cuda/common/support.h"
#include "kernels/cuda/common/workspace.h"

namespace cairn::kernels::cuda {

enum class Activation : int {
  kNone,
#define FUNCTION(name, ...) k_##name,
#include "runtime/base/elementwise.def"
};
// linear's attribute; false if unknown.
bool parse(std::string_view word, Activation* to);

void round_to_bf16(cudaStream_t stream, const float* from, bf16* to, int64_t count);

// How a product in `compute` reads a weight [n, k]: as it is, or through a bfloat16 copy in the same layout.
// The copy is the weight's packed form, or made in the workspace in every call.
class WeightReader {
 public:
  static bool takes(const TensorDesc& weight, DType compute) {
    if (weight.packed_bytes > 0)
      return compute == DType::kBF16 && weight.packed_bytes == 2 * weight.shape.elements();
    return weight.dtype == DType::kF32 || (weight.dtype == DType::kBF16 && compute == DType::kBF16);
  }
  WeightReader(const TensorDesc& weight, DType compute, Workspace* space) : count_(weight.shape.elements()) {
    if (weight.packed_bytes == 0 && weight.dtype != compute) at_ = space->add(2 * count_);
  }
  const void* read(const Call& call, size_t operand) const {
    const void* w = data_of(call.in, operand);
    if (at_ < 0) return w;
    bf16* copy = Workspace::at<bf16>(call, at_);
    round_to_bf16(stream_of(call), static_cast<const float*>(w), copy, count_);
    return copy;
  }

 private:
  int64_t count_, at_ = -1;
};

}  // namespace cairn::kernels::cuda
