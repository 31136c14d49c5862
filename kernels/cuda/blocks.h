// Weights that are stored in blocks, decoded by the codecs of runtime/formats.
#pragma once
#include "kernels/cuda/common/support.h"

namespace cairn::kernels::cuda {

inline bool in_blocks(const TensorDesc& d) {
  return d.packed_bytes == 0 && format(d.dtype).read == Read::kDequantised;
}

// All values of `blocks` as `type`, float32 or half.
void decode_blocks(cudaStream_t stream, const TensorDesc& of, const void* blocks, DType type, void* to);

}  // namespace cairn::kernels::cuda
