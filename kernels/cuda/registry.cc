#include "kernels/cuda/rows.h"

namespace cairn::kernels {

const Registry& cuda_registry() {
  static constexpr KernelRow kRows[] = {
#define KERNEL(op, name, isa, make) {#op, name, Isa::isa, cuda::make},
#include "kernels/cuda/kernels.def"
#undef KERNEL
  };
  static constexpr Registry kRegistry{"cuda", kRows, cuda::packed_bytes, false};
  return kRegistry;
}

}  // namespace cairn::kernels
