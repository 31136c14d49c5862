// Declares the maker of every row of kernels.def.
#pragma once
#include "runtime/base/kernel.h"

namespace cairn::kernels::cuda {

#define KERNEL(op, name, isa, make) std::unique_ptr<Kernel> make(const Signature&);
#include "kernels/cuda/kernels.def"
#undef KERNEL

// Registry::packed_bytes of this backend.
int64_t packed_bytes(const TensorDesc& weight, std::string_view use, int64_t m, DType compute, int threads);

// Registry::part_rows of this backend.
int64_t head_unit(const Signature& whole);

// Registry::batch of this backend.
std::unique_ptr<Kernel> make_batch(std::span<const Signature> ops);

}  // namespace cairn::kernels::cuda
