// A warp's products with tiles in shared memory, for the attention kernels on tensor cores.
#pragma once
#include "kernels/cuda/attention/mask.h"
#include "kernels/cuda/common/tiles.h"

namespace cairn::kernels::cuda {

// acc = x y^T: 16 kM rows of tile x by 8 kN rows of tile y.
template <class T, int kD, int kM, int kN>
__device__ __forceinline__ void dot_rows(float (&acc)[kM][kN][4], Shared x, Shared y) {
  const LaneAddress<kD, true> left(x);
  const LaneAddress<kD, false> right(y);
  clear(acc);
  CAIRN_UNROLL
  for (int k = 0; k < kD / 16; ++k) {
    unsigned a[kM][4];
    CAIRN_UNROLL
    for (int m = 0; m < kM; ++m) ldmatrix(a[m], left.at(m, k));
    CAIRN_UNROLL
    for (int n = 0; n < kN; n += 2) {
      unsigned b[4];
      ldmatrix(b, right.at(n / 2, k));
      CAIRN_UNROLL
      for (int m = 0; m < kM; ++m) {
        mma_16x8x16<T>(acc[m][n], a[m], b[0], b[1]);
        mma_16x8x16<T>(acc[m][n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

// What one product leaves is, rounded, what the next one takes: columns 16 k.. of rows 16 m...
template <class T, int kM, int kN>
__device__ __forceinline__ void round_pairs(unsigned (&to)[kM][kN / 2][4], const float (&v)[kM][kN][4]) {
  CAIRN_UNROLL
  for (int m = 0; m < kM; ++m) {
    CAIRN_UNROLL
    for (int k = 0; k < kN / 2; ++k) {
      CAIRN_UNROLL
      for (int i = 0; i < 4; ++i)
        to[m][k][i] = pack_pair<T>(v[m][2 * k + i / 2][i % 2 * 2], v[m][2 * k + i / 2][i % 2 * 2 + 1]);
    }
  }
}

// acc += w x: w[16 kM, 16 kK] in registers, x the 16 kK rows of a tile.
template <class T, int kD, int kM, int kK>
__device__ __forceinline__ void add_product(float (&acc)[kM][kD / 8][4], const unsigned (&w)[kM][kK][4],
                                            Shared x) {
  const LaneAddress<kD, true> right(x);
  CAIRN_UNROLL
  for (int k = 0; k < kK; ++k) {
    CAIRN_UNROLL
    for (int n = 0; n < kD / 8; n += 2) {
      unsigned b[4];
      ldmatrix_transposed(b, right.at(k, n / 2));
      CAIRN_UNROLL
      for (int m = 0; m < kM; ++m) {
        mma_16x8x16<T>(acc[m][n], w[m][k], b[0], b[1]);
        mma_16x8x16<T>(acc[m][n + 1], w[m][k], b[2], b[3]);
      }
    }
  }
}

// Which rows of which head a block has. Causal blocks that see more keys come first.
struct BlockPlace {
  int b, h, first;

  __device__ __forceinline__ BlockPlace(int length, int heads, int rows, bool late_first) {
    const unsigned blocks = static_cast<unsigned>(length - 1) / static_cast<unsigned>(rows) + 1;
    const unsigned block = blockIdx.x % blocks, head = blockIdx.x / blocks;
    first = static_cast<int>(late_first ? blocks - 1 - block : block) * rows;
    h = static_cast<int>(head % static_cast<unsigned>(heads));
    b = static_cast<int>(head / static_cast<unsigned>(heads));
  }
};

// These kernels take rows of full pieces, up to 128 numbers; narrower rows are filled up with zeros.
inline bool fits_mma(const Signature& s, size_t first, const AttentionShape& a) {
  return is_half(s.in[first].dtype) && a.dim % 8 == 0 && a.dim <= 128;
}

// The forward kernel whose warps have 32 queries (wide), which read every key half as often, or 16, which
// make more blocks of a small problem: as many blocks as kManyBlocks keep a large GPU busy.
inline constexpr int64_t kManyBlocks = 264;
std::unique_ptr<Kernel> make_attention_mma_of(const AttentionShape& a, DType type, bool wide);

}  // namespace cairn::kernels::cuda
