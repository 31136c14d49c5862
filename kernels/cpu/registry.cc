#include "kernels/registry.h"

#include "kernels/cpu/any_machine.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/vocabulary/products.h"

namespace cairn::kernels {
namespace {

BackendFacts facts() {
  const cpu::IsaRow& isa = cpu::isa_row(cpu::isa());
  return {.instruction_set = isa.name,
          .instruction_set_word = isa.word,
          .f32_flops_per_second = isa.f32_flops,
          .bf16_flops_per_second = isa.bf16_flops,
          .fuses_multiply_add = cpu::isa() != cpu::InstructionSet::kPortable,
          .refusal = cpu::isa_refusal()};
}

constexpr KernelRow kRows[] = {
#define KERNEL(op, name, isa, make) {#op, name, Isa::isa, cpu::make},
#include "kernels/cpu/kernels.def"
#undef KERNEL
};

}  // namespace

const Registry& cpu_registry() {
  static const Registry kRegistry{.backend = "cpu",
                                  .rows = kRows,
                                  .packed_bytes = cpu::packed_bytes,
                                  .part_rows = cpu::head_unit,
                                  .tile_rows = cpu::tile_rows,
                                  .squares_chunk = cpu::squares_block,
                                  .facts = facts,
                                  .any_machine = &cpu::any_machine_registry()};
  return kRegistry;
}

}  // namespace cairn::kernels
