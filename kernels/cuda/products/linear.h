// What the products with weights share: activations, copies of float32 weights in the products' type.
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

// to: of 16 bits.
void round_copy(cudaStream_t stream, const float* from, DType type, void* to, int64_t count);

// How a product in `compute` reads a weight [n, k]: as it is, or through a copy in that type and the same layout.
// The copy is the weight's packed form, or made in the workspace in every call.
class WeightReader {
 public:
  static bool takes(const TensorDesc& weight, DType compute) {
    if (weight.packed_bytes > 0)
      return is_half(compute) && weight.packed_bytes == 2 * weight.shape.elements();
    return weight.dtype == DType::kF32 || (is_half(compute) && weight.dtype == compute);
  }
  WeightReader(const TensorDesc& weight, DType compute, Workspace* space)
      : count_(weight.shape.elements()), compute_(compute) {
    if (weight.packed_bytes == 0 && weight.dtype != compute) at_ = space->add(2 * count_);
  }
  const void* read(const Call& call, size_t operand) const {
    const void* w = data_of(call.in, operand);
    if (at_ < 0) return w;
    void* copy = Workspace::at(call, at_);
    round_copy(stream_of(call), static_cast<const float*>(w), compute_, copy, count_);
    return copy;
  }

 private:
  int64_t count_, at_ = -1;
  DType compute_;
};

}  // namespace cairn::kernels::cuda
