// The instruction set that the CPU kernels use: the best of this processor, or a lower one that CAIRN_ISA
// names.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace cairn::kernels::cpu {

// In ascending order; each contains those before it. `portable`: what every processor of the architecture
// runs (on x86-64 vectors of SSE2 as far as the compiler makes them; no AVX in any kernel of ours).
enum class InstructionSet : uint8_t { kPortable, kAvx2, kAvx512, kAvx512Bf16, kAmx };

std::string_view isa_name(InstructionSet isa);  // "portable", "avx2", "avx512", "avx512_bf16", "amx"
InstructionSet best_isa();                      // of this processor and its operating system
// CAIRN_ISA, as it stood at the first call of this or of a kernel. Where it is not set or not usable: best_isa(),
// but kAvx512 on processors whose dot products of bfloat16 are slower than float32.
InstructionSet isa();
// "" or why CAIRN_ISA is not usable: an unknown word, or a set that this processor lacks.
const std::string& isa_refusal();

// AMX tiles with bfloat16: in the processor, switched on by the operating system, granted to this process
// (the first call asks for them), and not forbidden by CAIRN_ISA.
inline bool has_amx() { return isa() >= InstructionSet::kAmx; }

// Products of bfloat16 that are summed in float32: AVX512_BF16's dot products, or the tiles.
inline bool has_bf16_products() { return isa() >= InstructionSet::kAvx512Bf16; }

// The tiles' sizes stand in CPUID leaf 0x1D, which some hypervisors that show AMX hide. We do without;
// benchmarks that measure other libraries have to know.
bool amx_palette_hidden();

}  // namespace cairn::kernels::cpu
