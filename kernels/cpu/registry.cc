#include "kernels/registry.h"

#include "kernels/cpu/rows.h"
#include "kernels/cpu/simd/isa.h"

namespace cairn::kernels {
namespace {

// One thread's sustained rates in matrix products. Round numbers, measured on server processors of each
// class: good enough to weigh recomputing against copying.
struct IsaRate {
  std::string_view name;
  double f32_flops, bf16_flops;
};
// By cpu::InstructionSet. Without dot products of bfloat16 it is widened to float32 before it is multiplied.
constexpr IsaRate kRates[] = {
    {"portable", 1.0e10, 5.0e9},      {"AVX2", 5.0e10, 2.5e10},     {"AVX-512", 1.0e11, 5.0e10},
    {"AVX-512 bf16", 1.0e11, 1.2e11}, {"AMX bf16", 1.8e11, 9.0e11},
};

BackendFacts facts() {
  const cpu::InstructionSet isa = cpu::isa();
  const IsaRate& rate = kRates[static_cast<size_t>(isa)];
  return {.instruction_set = rate.name,
          .instruction_set_word = cpu::isa_name(isa),
          .f32_flops_per_second = rate.f32_flops,
          .bf16_flops_per_second = rate.bf16_flops,
          .refusal = cpu::isa_refusal()};
}

constexpr KernelRow kRows[] = {
#define KERNEL(op, name, isa, make) {#op, name, Isa::isa, cpu::make},
#include "kernels/cpu/kernels.def"
#undef KERNEL
};

}  // namespace

const Registry& cpu_registry() {
  static constexpr Registry kRegistry{
      .backend = "cpu", .rows = kRows, .packed_bytes = cpu::packed_bytes, .facts = facts};
  return kRegistry;
}

}  // namespace cairn::kernels
