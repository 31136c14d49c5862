// Blocks of a bfloat16 product on the AMX tiles.
#include <algorithm>

#include "kernels/cpu/gemm/bf16/amx_tiles.h"
#include "kernels/cpu/gemm/bf16/block.h"

#if defined(__x86_64__)
HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512vl,avx512dq,amx-tile,amx-bf16")

namespace cairn::kernels::cpu {
namespace {

struct Step {
  const char *a0, *a1;  // a1 == nullptr: at most 16 rows
  const char* b;
  int64_t a_row, a_step, steps;
};

// 32 rows of one line or two, fetched while tiles are multiplied: they lie in pages of their own, so nobody else foresees
// them.
struct Fetch {
  const char* at = nullptr;  // or nothing
  int64_t pitch = 0;
  bool two = false;

  inline void rows(int64_t n) {
    for (int64_t i = 0; i < n; ++i, at += pitch) {
      __builtin_prefetch(at, 1);
      if (two) __builtin_prefetch(at + 64, 1);
    }
  }
};

// One block of at most 32 x 32: c (+)= A B over `steps` tiles of k; pitch in bytes.
inline void block(const Step& s, float* c, int64_t pitch, bool add, Fetch fetch) {
  char* c00 = reinterpret_cast<char*>(c);
  char* c10 = c00 + 16 * pitch;
  const char *a0 = s.a0, *a1 = s.a1, *b = s.b;
  if (a1 != nullptr) {
    if (add) {
      _tile_loadd(0, c00, pitch);
      _tile_loadd(1, c00 + 64, pitch);
      _tile_loadd(2, c10, pitch);
      _tile_loadd(3, c10 + 64, pitch);
    } else {
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
    }
    int64_t rows = fetch.at != nullptr ? 32 : 0;
    const int64_t each = (32 + s.steps - 1) / s.steps;
    for (int64_t k = 0; k < s.steps; ++k) {
      const int64_t now = std::min(rows, each);
      fetch.rows(now);
      rows -= now;
      _tile_loadd(6, b, 64);
      _tile_loadd(4, a0, s.a_row);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(7, b + 1024, 64);
      _tile_dpbf16ps(1, 4, 7);
      _tile_loadd(5, a1, s.a_row);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
      a0 += s.a_step;
      a1 += s.a_step;
      b += 2048;
    }
    _tile_stored(0, c00, pitch);
    _tile_stored(1, c00 + 64, pitch);
    _tile_stored(2, c10, pitch);
    _tile_stored(3, c10 + 64, pitch);
    return;
  }
  if (add) {
    _tile_loadd(0, c00, pitch);
    _tile_loadd(1, c00 + 64, pitch);
  } else {
    _tile_zero(0);
    _tile_zero(1);
  }
  for (int64_t k = 0; k < s.steps; ++k) {
    _tile_loadd(4, a0, s.a_row);
    _tile_loadd(6, b, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + 1024, 64);
    _tile_dpbf16ps(1, 4, 7);
    a0 += s.a_step;
    b += 2048;
  }
  _tile_stored(0, c00, pitch);
  _tile_stored(1, c00 + 64, pitch);
}

// Rows [m, m_end) x one panel x steps [k0, k1): blocks of 32 rows, the last one of what is left.
void column(const GemmOperands& g, int64_t m, int64_t m_end, int64_t panel, int64_t k0, int64_t k1, float* c,
            int64_t pitch, bool add) {
  const char* a = static_cast<const char*>(g.a) + k0 / kTileK * g.a_step;
  const char* b = reinterpret_cast<const char*>(g.b) + panel * g.b_panel * 2 + k0 / kTileK * 2048;
  const int64_t steps = (k1 - k0) / kTileK;
  const float* const top = c;
  const bool far =
      pitch >
      kPanel * 4;  // else sums are in a buffer in cache, and the epilogue writes its results to memory
  for (; m < m_end; m += 32) {
    const char* a0 = a + m / 16 * g.a_block;
    const int64_t rows = std::min<int64_t>(32, m_end - m);
    if (rows < 32) configure_tiles(std::min<int64_t>(16, rows), std::max<int64_t>(0, rows - 16));
    Fetch fetch;
    if (far)  // the block that comes next: sums are read, too
      fetch = {reinterpret_cast<const char*>(m + 32 < m_end ? c + 8 * pitch : top + kPanel), pitch, true};
    else if (g.target != nullptr && k0 == 0)
      fetch = {g.target + m * g.target_row, g.target_row, false};
    block({a0, rows > 16 ? a0 + g.a_block : nullptr, b, g.a_row, g.a_step, steps}, c, pitch, add, fetch);
    if (rows < 32) configure_tiles(16, 16);
    c += 8 * pitch;
  }
}

void begin() { configure_tiles(16, 16); }
void end() { _tile_release(); }

}  // namespace

// A share of k is so long that B's part of it fits the second cache, which it is read from for all rows of A.
const Bf16Blocks kAmxBlocks{.max_share = 1024,
                            .near_share = 512,
                            .begin = begin,
                            .column = column,
                            .end = end,
                            .near_bytes = 768 << 10};

}  // namespace cairn::kernels::cpu
HWY_POP_ATTRIBUTES
#else
namespace cairn::kernels::cpu {
const Bf16Blocks kAmxBlocks{};  // never used where has_amx() is false
}  // namespace cairn::kernels::cpu
#endif
