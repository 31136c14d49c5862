#include "kernels/cpu/simd/isa.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "kernels/registry.h"
#include "runtime/base/kernel.h"

namespace cairn::kernels {
namespace {

// Words that are refused are in tests/scripts/train/isa_test.py: what a process runs is chosen once.
TEST(Isa, IsWhatTheEnvironmentAsksForOrTheBest) {
  const char* const word = std::getenv("CAIRN_ISA");
  EXPECT_EQ(cpu::isa_refusal(), "");
  if (word == nullptr)  // or one less, where the processor is faster without its dot products of bfloat16
    EXPECT_TRUE(cpu::isa() == cpu::best_isa() || (cpu::isa() == cpu::InstructionSet::kAvx512 &&
                                                  cpu::best_isa() == cpu::InstructionSet::kAvx512Bf16));
  else
    EXPECT_EQ(cpu::isa_name(cpu::isa()), word);
  EXPECT_LE(cpu::isa(), cpu::best_isa());
  EXPECT_EQ(cpu::has_amx(), cpu::isa() == cpu::InstructionSet::kAmx);
}

TEST(Isa, ProductsOfBfloat16AloneHavePackedWeights) {
  const int64_t bytes =
      cpu_registry().packed_bytes({DType::kF32, {64, 64}, 0}, "forward", 8, DType::kBF16, 1);
  EXPECT_EQ(bytes > 0, cpu::has_bf16_products());
}

}  // namespace
}  // namespace cairn::kernels
