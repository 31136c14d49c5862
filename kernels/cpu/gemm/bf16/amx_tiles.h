// Set-up of the AMX tiles.
#pragma once
#include <cstdint>

#if defined(__x86_64__)
// GCC 12 warns about its own intrinsics (bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <hwy/base.h>
#include <immintrin.h>

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512vl,avx512dq,amx-tile,amx-bf16")

namespace cairn::kernels::cpu {

// Tiles 0-3: sums, 2 x 2 blocks of 16 x 16; 4, 5: A; 6, 7: B. rows0, rows1: rows of the two blocks of A.
inline void configure_tiles(int64_t rows0, int64_t rows1) {
  alignas(64) uint8_t config[64] = {1};
  const int64_t rows[8] = {rows0, rows0, rows1, rows1, rows0, rows1, 16, 16};
  for (int i = 0; i < 8; ++i) {
    config[16 + 2 * i] = rows[i] != 0 ? 64 : 0;
    config[48 + i] = static_cast<uint8_t>(rows[i]);
  }
  // Not the intrinsic: GCC 12 tells the optimiser that it reads 8 bytes only.
  __asm__ volatile("ldtilecfg %0" ::"m"(*reinterpret_cast<const char(*)[64]>(config)));
}

}  // namespace cairn::kernels::cpu
HWY_POP_ATTRIBUTES
#endif
