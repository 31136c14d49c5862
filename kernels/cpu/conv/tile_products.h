// Sums of products on the AMX tiles whose left operand is where a table of offsets says.
#pragma once
#include <cstdint>
#include <type_traits>

#include "kernels/cpu/gemm/bf16/amx_tiles.h"
#include "kernels/cpu/gemm/bf16/split_tile.h"

#if defined(__x86_64__)
HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,amx-tile,amx-bf16")

namespace cairn::kernels::cpu {

// The rows that the tiles are set up for.
class TileRows {
 public:
  void set(int64_t first, int64_t second) {
    if (first_ != first || second_ != second) configure_tiles(first_ = first, second_ = second);
  }

 private:
  int64_t first_ = 0, second_ = 0;
};

struct StripProduct {
  const char *a0, *a1;  // a1 == nullptr: one strip
  int64_t a_row, a_plane;
  const int64_t* offsets;  // of each step from a0
  const char* b;
  int64_t b_half;  // bytes from 16 columns to the other 16
  int64_t steps;
  float* c;
  int64_t pitch;  // bytes
  bool add;
};

// c (+)= A B for two strips of 16 and a panel of 32, over `steps`. Of numbers in three parts the six largest
// products are summed, the small ones first (gemm/amx_f32.h).
template <int kParts>
inline void multiply_strips(const StripProduct& o) {
  char* const c00 = reinterpret_cast<char*>(o.c);
  char* const c10 = c00 + 16 * o.pitch;
  const int64_t pitch = o.pitch;
  const bool two = o.a1 != nullptr;
  if (o.add) {
    _tile_loadd(0, c00, pitch);
    _tile_loadd(1, c00 + 64, pitch);
    if (two) {
      _tile_loadd(2, c10, pitch);
      _tile_loadd(3, c10 + 64, pitch);
    }
  } else {
    _tile_zero(0);
    _tile_zero(1);
    if (two) {
      _tile_zero(2);
      _tile_zero(3);
    }
  }
  const char* b = o.b;
#define CAIRN_LEFT(level)                          \
  _tile_loadd(4, a0 + (level)*o.a_plane, o.a_row); \
  if constexpr (kTwo) _tile_loadd(5, a1 + (level)*o.a_plane, o.a_row)
#define CAIRN_RIGHT(level)                    \
  _tile_loadd(6, b + (level)*kTileBytes, 64); \
  _tile_loadd(7, b + (level)*kTileBytes + o.b_half, 64)
#define CAIRN_PRODUCTS       \
  _tile_dpbf16ps(0, 4, 6);   \
  _tile_dpbf16ps(1, 4, 7);   \
  if constexpr (kTwo) {      \
    _tile_dpbf16ps(2, 5, 6); \
    _tile_dpbf16ps(3, 5, 7); \
  }
  const auto sum = [&]<bool kTwo>(std::bool_constant<kTwo>) __attribute__((always_inline)) {
    for (int64_t s = 0; s < o.steps; ++s, b += kParts * kTileBytes) {
      const char* const a0 = o.a0 + o.offsets[s];
      [[maybe_unused]] const char* const a1 = o.a1 + (kTwo ? o.offsets[s] : 0);
      if constexpr (kParts == 3) {
        CAIRN_RIGHT(0);
        CAIRN_LEFT(2);
        CAIRN_PRODUCTS;
        CAIRN_LEFT(1);
        CAIRN_PRODUCTS;
        CAIRN_RIGHT(1);
        CAIRN_PRODUCTS;
        CAIRN_LEFT(0);
        CAIRN_PRODUCTS;
        CAIRN_RIGHT(2);
        CAIRN_PRODUCTS;
        CAIRN_RIGHT(0);
        CAIRN_PRODUCTS;
      } else {
        CAIRN_RIGHT(0);
        CAIRN_LEFT(0);
        CAIRN_PRODUCTS;
      }
    }
  };
#undef CAIRN_LEFT
#undef CAIRN_RIGHT
#undef CAIRN_PRODUCTS
  two ? sum(std::true_type()) : sum(std::false_type());
  _tile_stored(0, c00, pitch);
  _tile_stored(1, c00 + 64, pitch);
  if (two) {
    _tile_stored(2, c10, pitch);
    _tile_stored(3, c10 + 64, pitch);
  }
}

}  // namespace cairn::kernels::cpu
HWY_POP_ATTRIBUTES
#endif
