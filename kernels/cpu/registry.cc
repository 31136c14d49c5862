#include "kernels/cpu/isa.h"
#include "kernels/cpu/rows.h"

namespace cairn::kernels {

const Registry& cpu_registry() {
  static constexpr KernelRow kRows[] = {
#define KERNEL(op, name, isa, make) {#op, name, Isa::isa, cpu::make},
#include "kernels/cpu/kernels.def"
#undef KERNEL
  };
  static constexpr Registry kRegistry{"cpu", kRows, cpu::packed_bytes};
  return kRegistry;
}

}  // namespace cairn::kernels
