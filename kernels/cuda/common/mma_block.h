// A product of 16-bit matrices on tensor cores by a block of threads: 128 rows and 128 columns, whose factors come to shared
// memory in parts of 64 places of the sums, two parts in turn.
#pragma once
#include "kernels/cuda/common/tiles.h"

namespace cairn::kernels::cuda::mma_block {

inline constexpr int kTile = 128, kDepth = 64, kThreads = 256;
inline constexpr int kWarpRows = 32, kWarpColumns = 64;  // of the tile, in a warp's registers
inline constexpr int kM = kWarpRows / 16, kN = kWarpColumns / 8;
inline constexpr int kFactorBytes = kTile * kDepth * 2, kStageBytes = 2 * kFactorBytes,
                     kSharedBytes = 2 * kStageBytes;
using Sums = float[kM][kN][4];

// How a factor's part lies in memory and in a tile. kAlong: a row has kDepth neighbours along the sums; else kTile
// neighbours of one place in the sums.
template <bool kAlong>
struct Layout {
  static constexpr int kD = kAlong ? kDepth : kTile, kRows = kAlong ? kTile : kDepth;
};

// What a lane reads of a factor's tile, from the warp's first row or column `first` on.
template <bool kAlong, bool kLeft>
class Fragments {
 public:
  __device__ __forceinline__ Fragments(Shared tile, int first) : lane_(tile), first_(first / 16) {}
  // 16 rows or columns, at 16 places of the sums.
  __device__ __forceinline__ void load(unsigned (&to)[4], int block, int depth) const {
    if constexpr (kAlong)
      ldmatrix(to, lane_.at(first_ + block, depth));
    else
      ldmatrix_transposed(to, lane_.at(depth, first_ + block));
  }

 private:
  LaneAddress<Layout<kAlong>::kD, kLeft == kAlong> lane_;
  int first_;
};

// Of the warp, among those of the block.
__device__ __forceinline__ int warp_row() { return own_warp() / 2 * kWarpRows; }
__device__ __forceinline__ int warp_column() { return own_warp() % 2 * kWarpColumns; }

// sums += a b^T of a quarter of the places in a tile.
template <class T, class Left, class Right>
__device__ __forceinline__ void add_quarter(Sums& sums, const Left& left, const Right& right, int quarter) {
  unsigned of_a[kM][4];
  CAIRN_UNROLL
  for (int m = 0; m < kM; ++m) left.load(of_a[m], m, quarter);
  CAIRN_UNROLL
  for (int n = 0; n < kN; n += 2) {
    unsigned of_b[4];
    right.load(of_b, n / 2, quarter);
    CAIRN_UNROLL
    for (int m = 0; m < kM; ++m) {
      mma_16x8x16<T>(sums[m][n], of_a[m], of_b[0], of_b[1]);
      mma_16x8x16<T>(sums[m][n + 1], of_a[m], of_b[2], of_b[3]);
    }
  }
}

// body(row, column, two neighbouring sums) for the lane's sums, in the block's tile.
template <class Body>
__device__ __forceinline__ void each_pair(Sums& sums, const Body& body) {
  const int row = warp_row() + own_lane() / 4, column = warp_column() + own_lane() % 4 * 2;
  CAIRN_UNROLL
  for (int m = 0; m < kM; ++m) {
    CAIRN_UNROLL
    for (int n = 0; n < kN; ++n) {
      CAIRN_UNROLL
      for (int half = 0; half < 2; ++half)
        body(row + m * 16 + half * 8, column + n * 8, sums[m][n][2 * half], sums[m][n][2 * half + 1]);
    }
  }
}

}  // namespace cairn::kernels::cuda::mma_block
