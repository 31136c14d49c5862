#include "kernels/cpu/simd/isa.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string_view>
#include <vector>

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

TEST(Isa, RowsAreNamedOnceAndTheBestIsTheLastOneThatIsHere) {
  std::set<std::string_view> words;
  std::vector<cpu::InstructionSet> here;
  constexpr cpu::InstructionSet kAll[] = {
#define ISA(architecture, set, ...) cpu::InstructionSet::set,
#include "kernels/cpu/simd/isa.def"
#undef ISA
  };
  for (const cpu::InstructionSet set : kAll) {
    EXPECT_EQ(cpu::isa_row(set).set, set);
    EXPECT_TRUE(words.insert(cpu::isa_name(set)).second) << cpu::isa_name(set);
    if (cpu::has_isa(set)) here.push_back(set);
  }
  ASSERT_FALSE(here.empty());
  EXPECT_EQ(here.front(), cpu::InstructionSet::kPortable);
  EXPECT_EQ(here.back(), cpu::best_isa());
  EXPECT_TRUE(cpu::has_isa(cpu::isa()));
  // None of another architecture.
  EXPECT_FALSE(cpu::has_isa(cpu::InstructionSet::kAvx2) && cpu::has_isa(cpu::InstructionSet::kNeon));
}

TEST(Isa, ProductsOfBfloat16AloneHavePackedWeights) {
  const int64_t bytes =
      cpu_registry().packed_bytes({DType::kF32, {64, 64}, 0}, "forward", 8, DType::kBF16, 1);
  EXPECT_EQ(bytes > 0, cpu::has_bf16_products());
}

// Whatever CAIRN_ISA and the processor are: what plans for a device that is not there count.
TEST(Isa, KernelsForAnyMachineHaveTheSameWorkspacesEverywhere) {
  const Registry* const any = cpu_registry().any_machine;
  ASSERT_NE(any, nullptr);
  const auto bytes = [&](DType type) {
    const TensorDesc in[] = {{type, {512, 384}, 0}, {DType::kF32, {640, 384}, 0}};
    const TensorDesc out[] = {{type, {512, 640}, 0}};
    Attrs attrs;
    attrs.set("dtype", type == DType::kBF16 ? "bf16" : "f32");
    return any->find({.op = "linear", .in = in, .out = out, .attrs = &attrs})->workspace_bytes();
  };
  EXPECT_EQ(bytes(DType::kF32), 73728);
  EXPECT_EQ(bytes(DType::kBF16), 2170880);  // widened
  // Weights are packed as GPUs pack them.
  const TensorDesc weight{DType::kF32, {640, 384}, 0};
  EXPECT_EQ(any->packed_bytes(weight, "forward", 512, DType::kF32, 1), 0);
  const int64_t packed = any->packed_bytes(weight, "forward", 512, DType::kBF16, 1);
  EXPECT_EQ(packed, 2 * 640 * 384);
  const TensorDesc copy{DType::kOpaque, {packed}, packed};
  Attrs attrs;
  attrs.set("dtype", "bf16");
  attrs.set("use", "forward");
  const auto pack = any->find({.op = "pack_weight", .in = {&weight, 1}, .out = {&copy, 1}, .attrs = &attrs});
  ASSERT_NE(pack, nullptr);
  EXPECT_EQ(pack->workspace_bytes(), 0);
  EXPECT_EQ(cpu::isa_name(cpu::isa()), cpu_registry().facts().instruction_set_word);  // as it was
}

}  // namespace
}  // namespace cairn::kernels
