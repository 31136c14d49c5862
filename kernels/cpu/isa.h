// What this processor and this kernel of the operating system allow.
#pragma once

namespace cairn::kernels::cpu {

bool has_avx2();
bool has_avx512();  // F, BW, DQ, VL
// AMX tiles with bfloat16, in the processor, switched on by the operating system, and granted to this process
// (the first call asks for them).
bool has_amx();
// oneDNN reads the tile palette from CPUID leaf 0x1D and executes an illegal instruction where a hypervisor
// shows AMX but hides that leaf.
bool amx_palette_hidden();

}  // namespace cairn::kernels::cpu
