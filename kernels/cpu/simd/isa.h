// The instruction set that the CPU kernels use: the best of this processor, or a lower one that CAIRN_ISA
// names. Sets are the rows of isa.def.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/kernel.h"

namespace cairn::kernels::cpu {

enum class InstructionSet : uint8_t {
#define ISA(architecture, set, ...) set,
#include "kernels/cpu/simd/isa.def"
#undef ISA
};

// How bfloat16 is multiplied with float32 sums: not at all, by AVX512_BF16's dot products of pairs, on the AMX tiles, or by
// BFMMLA's products of small matrices.
enum class Bf16Products : uint8_t { kNone, kDots, kTiles, kMatrices };

struct IsaRow {
  InstructionSet set;
  std::string_view word, name;
  uint32_t needs;
  int64_t targets;
  Bf16Products products;
  double f32_flops, bf16_flops;
  bool of_this_architecture;
};
const IsaRow& isa_row(InstructionSet isa);

inline std::string_view isa_name(InstructionSet isa) { return isa_row(isa).word; }
bool has_isa(InstructionSet isa);  // this processor and its operating system
InstructionSet best_isa();         // of those that they have
// CAIRN_ISA, as it stood at the first call of this or of a kernel. Where it is not set or not usable: best_isa(),
// but kAvx512 on processors whose dot products of bfloat16 are slower than float32.
InstructionSet isa();
// While an object of this class lives, isa() is the portable set on this thread. It is for making kernels, not for running them:
// the way a kernel multiplies is chosen when it is made, its vectors when it runs, by the processor.
class PortableIsa {
 public:
  PortableIsa();
  ~PortableIsa();
  PortableIsa(const PortableIsa&) = delete;
  PortableIsa& operator=(const PortableIsa&) = delete;
};
// "" or why CAIRN_ISA is not usable: an unknown word, or a set that this processor lacks.
const std::string& isa_refusal();

// AMX tiles with bfloat16: in the processor, switched on by the operating system, granted to this process
// (the first call asks for them), and not forbidden by CAIRN_ISA.
inline bool has_amx() { return isa() == InstructionSet::kAmx; }

// Products of bfloat16 that are summed in float32.
inline bool has_bf16_products() { return isa_row(isa()).products != Bf16Products::kNone; }
inline bool has(Isa needed) {
  return needed == Isa::kAmx ? has_amx() : needed != Isa::kBf16 || has_bf16_products();
}

// The tiles' sizes stand in CPUID leaf 0x1D, which some hypervisors that show AMX hide. We do without;
// benchmarks that measure other libraries have to know.
bool amx_palette_hidden();

}  // namespace cairn::kernels::cpu
