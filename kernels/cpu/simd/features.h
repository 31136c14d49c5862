// What the processor and its operating system have of what instruction sets need. Internal to kernels/cpu/simd.
#pragma once
#include <cstdint>

// BFMMLA's intrinsics: g++ has them in functions for processors with them; clang 14 has not.
#if defined(__aarch64__) && (!defined(__clang__) || defined(__ARM_FEATURE_BF16))
#define CAIRN_BFMMLA 1
#else
#define CAIRN_BFMMLA 0
#endif

namespace cairn::kernels::cpu {

inline constexpr uint32_t kHasAvx2 = 1, kHasAvx512 = 2, kHasDots = 4, kHasTiles = 8, kHasNeon = 16,
                          kHasMatrices = 32, kHasSve = 64;

// The first call asks the operating system for the tiles.
uint32_t features();
// Whether AVX512_BF16's dot products multiply faster than widening to float32 does.
bool dots_are_fast();

}  // namespace cairn::kernels::cpu
