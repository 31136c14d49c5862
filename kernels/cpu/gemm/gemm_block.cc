#include "kernels/cpu/gemm/gemm_block.h"

#include <algorithm>

#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/gemm_block.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/gemm/gemm_dots-inl.h"
#include "kernels/cpu/gemm/gemm_pack-inl.h"
#include "kernels/cpu/gemm/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::cpu::HWY_NAMESPACE {

// Brings the lines of the next panel of B nearer while tiles of this one are summed. Along a transposed B
// each tile takes two of the panel's rows, spread over its own steps of k; else it takes a share of the lines
// at its end.
struct Ahead {
  const char* at;
  int64_t rows, row_bytes, stride;
  int64_t each;  // lines for a tile; 0: rows
  int64_t byte = 0;

  HWY_INLINE Ahead(const GemmBlock& g, const float* b, int64_t columns, int64_t depth, int64_t tiles)
      : at(reinterpret_cast<const char*>(b)) {
    const bool along = g.b_step == 1;
    rows = columns == 0 ? 0 : along ? columns : depth;
    row_bytes = columns * 4 + 60;
    stride = (along ? g.b_column : g.b_step) * 4;
    each = along ? 0 : (rows * ((row_bytes + 63) / 64) + tiles - 1) / tiles;
  }
  HWY_INLINE void before(Tile* t) {
    for (const char*& row : t->next) {
      row = at;
      if (each == 0 && rows > 1) --rows, at += stride;
    }
  }
  HWY_INLINE void after() {
    for (int64_t i = 0; i < each && rows > 0; ++i) {
      __builtin_prefetch(at + byte, 0, kNear);
      byte += 64;
      if (byte >= row_bytes) byte = 0, --rows, at += stride;
    }
  }
};

// Multiplies rows [m0, m1) of A by a panel of B. t: its first tile; strip: elements of A from one tile to the next.
HWY_INLINE void panel(int64_t m0, int64_t m1, int64_t columns, Tile t, int64_t strip, Ahead ahead) {
  const int64_t lanes = tile_lanes(), vectors = (columns + lanes - 1) / lanes, ldc = t.ldc;
  const bool whole = columns % lanes == 0;
  // The last vector's missing columns are computed and dropped.
  HWY_ALIGN float edge[kTileRows * kMostColumns];
  HWY_ALIGN float edge_bias[kMostColumns];
  if (!whole && t.bias != nullptr) {
    std::copy(t.bias, t.bias + columns, edge_bias);
    t.bias = edge_bias;
  }
  for (int64_t i = m0; i < m1; i += kTileRows) {
    const int64_t rows = std::min<int64_t>(kTileRows, m1 - i);
    float* c = t.c;
    if (!whole) {
      t.c = edge;
      t.ldc = kMostColumns;
      for (int64_t r = 0; r < rows && t.add; ++r)
        std::copy(c + r * ldc, c + r * ldc + columns, edge + r * kMostColumns);
    }
    ahead.before(&t);
    tile_of(static_cast<int>(vectors), rows, t);
    ahead.after();
    for (int64_t r = 0; r < rows && !whole; ++r)
      std::copy(edge + r * kMostColumns, edge + r * kMostColumns + columns, c + r * ldc);
    t.c = c + kTileRows * ldc;
    t.a += strip;
  }
}

// Columns of the next panel: the last two share what would leave one of them a single vector.
HWY_INLINE int64_t panel_columns(int64_t left) {
  const int64_t lanes = tile_lanes(), most = tile_columns();
  if (left > most && left <= most + lanes) return (left / 2 + lanes - 1) / lanes * lanes;
  return std::min(most, left);
}

int64_t block_depth_dispatch(int64_t k, bool pack_a) { return depth_of(k, pack_a ? kPackedDepth : kDepth); }

// Loops, from the outside: rows of A that fit the cache; shares of k; panels of B; tiles.
void gemm_block_dispatch(const GemmBlock& g) {
  if (g.dots) return dots(g);
  const bool direct_b = g.b_column == 1 && g.m1 - g.m0 <= 2 * kTileRows;
  const int64_t mc = even_share(g.m1 - g.m0, g.pack_a ? kPackedRows : kRows, kRowUnit),
                kc = block_depth_dispatch(g.whole_k, g.pack_a);
  float *packed_b = g.scratch, *packed_a = g.scratch + kc * kColumnUnit;
  for (int64_t m = g.m0; m < g.m1; m += mc) {
    const int64_t m_end = std::min(g.m1, m + mc), tiles = (m_end - m + kTileRows - 1) / kTileRows;
    for (int64_t k = 0; k < g.k; k += kc) {
      const int64_t depth = std::min(kc, g.k - k);
      Tile t{};
      t.k = depth, t.ldc = g.ldc, t.add = g.add || k > 0;
      t.a = g.a + m * g.a_row + k * g.a_step, t.a_row = g.a_row, t.a_step = g.a_step;
      int64_t strip = kTileRows * g.a_row;
      if (g.pack_a) {
        strip = kTileRows * depth;
        pack_rows(t.a, g.a_row, g.a_step, m_end - m, depth, packed_a);
        t.a = packed_a, t.a_row = 1, t.a_step = kTileRows;
      }
      int64_t columns;
      for (int64_t j = g.n0; j < g.n1; j += columns) {
        columns = panel_columns(g.n1 - j);
        t.b = g.b + k * g.b_step + j * g.b_column, t.b_step = g.b_step;
        const Ahead ahead(g, t.b + columns * g.b_column, std::min(tile_columns(), g.n1 - j - columns), depth,
                          tiles);
        if (!direct_b || columns % tile_lanes() != 0) {
          pack_strip(tile_columns(), t.b, g.b_step, g.b_column, columns, depth, packed_b);
          t.b = packed_b, t.b_step = tile_columns();
        }
        t.c = g.c + m * g.ldc + j;
        t.bias = g.bias != nullptr && k == 0 ? g.bias + j : nullptr;
        panel(m, m_end, columns, t, strip, ahead);
      }
    }
  }
}

}  // namespace cairn::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cairn::kernels::cpu {
HWY_EXPORT(gemm_block_dispatch);
HWY_EXPORT(block_depth_dispatch);
int64_t gemm_block_depth(int64_t k, bool pack_a) { return CAIRN_DISPATCH(block_depth_dispatch)(k, pack_a); }
bool gemm_packs_rows(int64_t columns) {
  constexpr int64_t kLeast = 384;  // fewer are done before packing has paid
  return columns >= kLeast && isa() == InstructionSet::kAvx2;
}
void gemm_block(const GemmBlock& g) { CAIRN_DISPATCH(gemm_block_dispatch)(g); }
int64_t gemm_scratch_bytes(int64_t rows, int64_t k, bool pack_a) {
  const int64_t a = pack_a ? std::min((rows + kRowUnit - 1) / kRowUnit * kRowUnit, kPackedRows) : 0;
  return (a + kColumnUnit) * depth_of(k, pack_a ? kMaxPackedDepth : kMaxDepth) * 4;
}
}  // namespace cairn::kernels::cpu
#endif
