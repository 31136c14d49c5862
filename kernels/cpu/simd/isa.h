// The instruction set that the CPU kernels use: the best of this processor, or a lower one that CAIRN_ISA
// names.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace cairn::kernels::cpu {

// In ascending order; each contains those before it. `portable`: what every processor of the architecture
// runs (on x86-64 vectors of SSE2 as far as the compiler makes them; no AVX in any kernel of ours).
// `avx512_bf16` runs the rows of `avx512`.
enum class InstructionSet : uint8_t { kPortable, kAvx2, kAvx512, kAvx512Bf16, kAmx };

std::string_view isa_name(InstructionSet isa);  // "portable", "avx2", "avx512", "avx512_bf16", "amx"
InstructionSet best_isa();                      // of this processor and its operating system
// CAIRN_ISA, as it stood at the first call of this or of a kernel; best_isa() where it is not set or not
// usable.
InstructionSet isa();
// "" or why CAIRN_ISA is not usable: an unknown word, or a set that this processor lacks.
const std::string& isa_refusal();

// AMX tiles with bfloat16: in the processor, switched on by the operating system, granted to this process
// (the first call asks for them), and not forbidden by CAIRN_ISA.
inline bool has_amx() { return isa() >= InstructionSet::kAmx; }

// The tiles' sizes stand in CPUID leaf 0x1D, which some hypervisors that show AMX hide. We do without;
// benchmarks that measure other libraries have to know.
bool amx_palette_hidden();

}  // namespace cairn::kernels::cpu
