#include "kernels/cpu/gemm/amx_f32.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/gemm/bf16/amx_tiles.h"
#include "kernels/cpu/gemm/bf16/gemm.h"
#include "kernels/cpu/gemm/bf16/split_tile.h"
#include "runtime/base/parallel.h"

#if defined(__x86_64__)
HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,amx-tile,amx-bf16")

namespace cairn::kernels::cpu {
namespace {

constexpr int64_t kMaxBlock = 192;  // rows of A or columns of B that a thread splits at a time
constexpr int64_t kNear = 24;       // steps of k between one load and store of C

// c += A B for 32 x 32 over `steps`. A: two blocks of 16 rows, a_block apart, a tile of each part a step. B likewise, of
// columns. The order of the products, of six if both sides have three parts, changes one side at a time.
template <int kLeft, int kRight>
inline void block(const char* a, int64_t a_block, const char* b, int64_t b_block, int64_t steps, float* c,
                  int64_t pitch, bool add) {
  char* c00 = reinterpret_cast<char*>(c);
  char* c10 = c00 + 16 * pitch;
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
#define CAIRN_LEFT(level)                     \
  _tile_loadd(4, a + (level)*kTileBytes, 64); \
  _tile_loadd(5, a + a_block + (level)*kTileBytes, 64)
#define CAIRN_RIGHT(level)                    \
  _tile_loadd(6, b + (level)*kTileBytes, 64); \
  _tile_loadd(7, b + b_block + (level)*kTileBytes, 64)
#define CAIRN_PRODUCTS     \
  _tile_dpbf16ps(0, 4, 6); \
  _tile_dpbf16ps(1, 4, 7); \
  _tile_dpbf16ps(2, 5, 6); \
  _tile_dpbf16ps(3, 5, 7)
  for (int64_t k = 0; k < steps; ++k) {
    if constexpr (kLeft > 1) {
      CAIRN_RIGHT(0);
      if constexpr (kLeft > 2) {
        CAIRN_LEFT(2);
        CAIRN_PRODUCTS;
      }
      CAIRN_LEFT(1);
      CAIRN_PRODUCTS;
    }
    if constexpr (kRight > 1) {
      CAIRN_RIGHT(1);
      if constexpr (kLeft > 1) {
        CAIRN_PRODUCTS;
      }
      CAIRN_LEFT(0);
      CAIRN_PRODUCTS;
    }
    if constexpr (kRight > 2) {
      CAIRN_RIGHT(2);
      CAIRN_PRODUCTS;
    }
    if constexpr (kRight > 1 || kLeft == 1) {
      CAIRN_RIGHT(0);
    }
    if constexpr (kRight == 1) {
      CAIRN_LEFT(0);
    }
    CAIRN_PRODUCTS;
    a += kLeft * kTileBytes;
    b += kRight * kTileBytes;
  }
#undef CAIRN_LEFT
#undef CAIRN_RIGHT
#undef CAIRN_PRODUCTS
  _tile_stored(0, c00, pitch);
  _tile_stored(1, c00 + 64, pitch);
  _tile_stored(2, c10, pitch);
  _tile_stored(3, c10 + 64, pitch);
}

}  // namespace

struct SplitArea {
  const char *a, *b;         // of the first row and column
  int64_t strip_a, strip_b;  // bytes from one 16 of a side to the next
  int64_t steps, rows, columns;
  float* c;
  int64_t ldc;
  bool add;
};

namespace {

// One block of C over one share of k; blocks at the edges go through a buffer.
template <int kLeft, int kRight>
inline void multiply_block(const SplitArea& area, int64_t m, int64_t n, int64_t k, float* edge) {
  const int64_t steps = std::min(kNear, area.steps - k);
  const char* a = area.a + m / 16 * area.strip_a + k * kLeft * kTileBytes;
  const char* b = area.b + n / 16 * area.strip_b + k * kRight * kTileBytes;
  const bool add = area.add || k > 0;
  float* c = area.c + m * area.ldc + n;
  const int64_t rows = std::min<int64_t>(32, area.rows - m),
                columns = std::min<int64_t>(32, area.columns - n);
  if (rows == 32 && columns == 32)
    return block<kLeft, kRight>(a, area.strip_a, b, area.strip_b, steps, c, area.ldc * 4, add);
  block<kLeft, kRight>(a, area.strip_a, b, area.strip_b, steps, edge, 128, false);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      c[i * area.ldc + j] = add ? c[i * area.ldc + j] + edge[i * 32 + j] : edge[i * 32 + j];
}

// Computes rows x columns of C. The thread's own block is kept in its cache; the operand that all threads share is read once, 32
// rows or columns at a time, one range of k after the other.
template <int kLeft, int kRight>
void multiply(const SplitArea& area, bool rows_outside) {
  alignas(64) float edge[32 * 32];
  const int64_t outside = rows_outside ? area.rows : area.columns,
                inside = rows_outside ? area.columns : area.rows;
  for (int64_t o = 0; o < outside; o += 32)
    for (int64_t k = 0; k < area.steps; k += kNear)
      for (int64_t i = 0; i < inside; i += 32)
        rows_outside ? multiply_block<kLeft, kRight>(area, o, i, k, edge)
                     : multiply_block<kLeft, kRight>(area, i, o, k, edge);
}

// By parts of the sides.
using Multiply = void (*)(const SplitArea&, bool);
constexpr Multiply kMultiply[3][3] = {{multiply<1, 1>, multiply<1, 2>, multiply<1, 3>},
                                      {multiply<2, 1>, multiply<2, 2>, multiply<2, 3>},
                                      {multiply<3, 1>, multiply<3, 2>, multiply<3, 3>}};

}  // namespace

int64_t SplitProduct::block_depth(int64_t k) {
  constexpr int64_t kMax = 768;
  const int64_t parts = (k + kMax - 1) / kMax;
  return round_up((k + parts - 1) / parts, kTileK);
}

SplitProduct::SplitProduct(const ProductShape& s, int threads) : shape_(s) {
  a_ = {s.m, s.lda ? s.lda : (s.transpose_a ? s.m : s.k), !s.transpose_a, s.parts_a};
  b_ = {s.n, s.ldb ? s.ldb : (s.transpose_b ? s.k : s.n), s.transpose_b, s.parts_b};
  if (shape_.ldc == 0) shape_.ldc = s.n;
  share_a_ = s.m <= s.n;
  k_block_ = block_depth(s.whole_k > 0 ? s.whole_k : s.k);
  const Side &common = share_a_ ? a_ : b_, &other = share_a_ ? b_ : a_;
  shared_at_ = space_.add(round_up(common.count, 32) * k_block_ * 2 * common.parts);
  block_ = share_a_ ? kMaxBlock : 128;
  block_bytes_ = block_ * k_block_ * 2 * other.parts;
  multiply_ = kMultiply[s.parts_a - 1][s.parts_b - 1];
  blocks_at_ = space_.add(threads * block_bytes_);
}

// [i0, i1) of a side over [k0, k1): strips of 16, each with its steps of k, each with its levels. Strips are packed
// in pairs.
void SplitProduct::pack(const Side& side, bool left, const float* from, int64_t i0, int64_t i1, int64_t k0,
                        int64_t k1, char* to) const {
  const auto split = side.parts == 3 ? split_tile<3> : side.parts == 2 ? split_tile<2> : split_tile<1>;
  for (int64_t i = i0; i < round_up(i1, 32); i += 16)
    for (int64_t k = k0; k < k1; k += kTileK, to += side.parts * kTileBytes) {
      const float* at = from + (side.k_contiguous ? i * side.ld + k : k * side.ld + i);
      split(at, side.ld, side.k_contiguous, left, side.count - i, k1 - k, to);
    }
}

void SplitProduct::run(const float* a, const float* b, float* c, void* scratch, const float* bias) const {
  char* shared = Workspace::at<char>(scratch, shared_at_);
  const Side &common = share_a_ ? a_ : b_, &other = share_a_ ? b_ : a_;
  const float *from_common = share_a_ ? a : b, *from_other = share_a_ ? b : a;
  for (int64_t k0 = 0; k0 < shape_.k; k0 += k_block_) {
    const int64_t k1 = std::min(shape_.k, k0 + k_block_), steps = round_up(k1 - k0, kTileK) / kTileK;
    const bool last = k1 == shape_.k, add = shape_.add || k0 > 0;
    parallel_for(common.count, 32, [&](int64_t i0, int64_t i1, int) {
      pack(common, share_a_, from_common, i0, i1, k0, k1, shared + i0 / 16 * common.strip(steps));
    });
    parallel_for(other.count, 32, [&](int64_t begin, int64_t end, int thread) {
      char* mine = Workspace::at<char>(scratch, blocks_at_) + thread * block_bytes_;
      configure_tiles(16, 16);
      for (int64_t i = begin; i < end; i += block_) {
        const int64_t i_end = std::min(end, i + block_);
        pack(other, !share_a_, from_other, i, i_end, k0, k1, mine);
        SplitArea area{share_a_ ? shared : mine,
                       share_a_ ? mine : shared,
                       a_.strip(steps),
                       b_.strip(steps),
                       steps,
                       0,
                       0,
                       c,
                       shape_.ldc,
                       add};
        area.rows = share_a_ ? shape_.m : i_end - i;
        area.columns = share_a_ ? i_end - i : shape_.n;
        area.c += share_a_ ? i : i * shape_.ldc;
        multiply_(area, share_a_);
        if (bias != nullptr && last)
          for (int64_t r = 0; r < area.rows; ++r)
            for (int64_t j = 0; j < area.columns; ++j)
              area.c[r * shape_.ldc + j] += bias[(share_a_ ? i : 0) + j];
      }
      _tile_release();
    });
  }
}

}  // namespace cairn::kernels::cpu
HWY_POP_ATTRIBUTES
#else
namespace cairn::kernels::cpu {
SplitProduct::SplitProduct(const ProductShape& s, int) : shape_(s) {}
int64_t SplitProduct::block_depth(int64_t k) { return k; }
void SplitProduct::run(const float*, const float*, float*, void*, const float*) const {}
}  // namespace cairn::kernels::cpu
#endif
