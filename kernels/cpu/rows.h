// Declares the maker of every row of kernels.def.
#pragma once
#include "runtime/base/kernel.h"

namespace cairn::kernels::cpu {

#define KERNEL(op, name, isa, make) std::unique_ptr<Kernel> make(const Signature&);
#include "kernels/cpu/kernels.def"
#undef KERNEL

inline constexpr int64_t kSquaresBlock = 64 << 10;
// Registry::squares_chunk of this backend: the same for every tensor.
constexpr int64_t squares_block(int64_t /*count*/) { return kSquaresBlock; }
// Registry::packed_bytes of this backend.
int64_t packed_bytes(const TensorDesc& weight, std::string_view use, int64_t m, DType compute, int threads);

// Registry::tile_rows of this backend.
int64_t tile_rows(const Signature& whole);

}  // namespace cairn::kernels::cpu
