// The rows of kernels.def for plans of a device that is not there: the portable set's kernels whatever this processor has, and
// weights packed as GPUs pack them, as a copy of 16 bits in the weight's own layout.
#include "kernels/cpu/any_machine.h"

#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/rows.h"
#include "kernels/cpu/simd/blocks.h"
#include "kernels/cpu/simd/isa.h"
#include "runtime/base/checked.h"

namespace cairn::kernels::cpu {
namespace {

int64_t copied_bytes(const TensorDesc& weight, std::string_view, int64_t, DType compute, int) {
  const bool half = compute == DType::kBF16 || compute == DType::kF16;
  const bool copied = weight.dtype == DType::kF32 || in_blocks(weight);
  return half && copied && weight.shape.rank == 2 ? checked_mul(2, weight.shape.elements()) : 0;
}

// Packed weights as a plain copy; whether it is bfloat16 or float16 does not matter, as both have 16 bits.
std::vector<TensorDesc> without_packed(std::span<const TensorDesc> descs) {
  std::vector<TensorDesc> plain(descs.begin(), descs.end());
  for (TensorDesc& desc : plain)
    if (std::exchange(desc.packed_bytes, 0) > 0) desc.dtype = DType::kBF16;
  return plain;
}

template <MakeKernel kMake>
std::unique_ptr<Kernel> make(const Signature& signature) {
  const PortableIsa scope;
  const std::vector<TensorDesc> in = without_packed(signature.in);
  Signature plain = signature;
  plain.in = in;
  return kMake(plain);
}

std::unique_ptr<Kernel> make_copy(const Signature& signature) {
  const std::vector<TensorDesc> out = without_packed(signature.out);
  const Attrs attrs = {{"dtype", std::string(signature.attrs->word("dtype"))}};
  Signature copy = signature;
  const bool blocks = in_blocks(signature.in[0]);
  copy.op = blocks ? "dequantise" : "cast";
  copy.out = out;
  copy.attrs = &attrs;
  return blocks ? make<make_dequantise>(copy) : make<make_cast>(copy);
}

int64_t tile_rows_anywhere(const Signature& whole) {
  const PortableIsa scope;
  const std::vector<TensorDesc> in = without_packed(whole.in);
  Signature plain = whole;
  plain.in = in;
  return tile_rows(plain);
}

constexpr KernelRow kRows[] = {
    {"pack_weight", "copy of 16 bits", Isa::kAny, make_copy},
#define KERNEL(op, name, isa, maker) {#op, name, Isa::isa, make<cpu::maker>},
#include "kernels/cpu/kernels.def"
#undef KERNEL
};

}  // namespace

const Registry& any_machine_registry() {
  static constexpr Registry kRegistry{.backend = "cpu",
                                      .rows = kRows,
                                      .packed_bytes = copied_bytes,
                                      .one_packed_form = true,
                                      .packed_is_copy = true,
                                      .tile_rows = tile_rows_anywhere,
                                      .squares_chunk = squares_block};
  return kRegistry;
}

}  // namespace cairn::kernels::cpu
