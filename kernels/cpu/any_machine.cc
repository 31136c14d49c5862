// The rows of kernels.def for plans of a device that is not there: the portable set's kernels whatever this processor has, and
// weights packed as GPUs pack them, as a copy of 16 bits in the weight's own layout.
#include "kernels/cpu/any_machine.h"

#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/rows.h"
#include "kernels/cpu/simd/isa.h"
#include "runtime/base/checked.h"

namespace cairn::kernels::cpu {
namespace {

int64_t copied_bytes(const TensorDesc& weight, std::string_view, int64_t, DType compute, int) {
  const bool half = compute == DType::kBF16 || compute == DType::kF16;
  return half && weight.dtype == DType::kF32 && weight.shape.rank == 2
             ? checked_mul(2, weight.shape.elements())
             : 0;
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
  copy.op = "cast";
  copy.out = out;
  copy.attrs = &attrs;
  return make<make_cast>(copy);
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
                                      .squares_chunk = squares_block};
  return kRegistry;
}

}  // namespace cairn::kernels::cpu
