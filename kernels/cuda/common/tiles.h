// Tiles of rows of T, bf16 or f16, in shared memory, for kernels on tensor cores. A row of a tile is kD numbers in
// pieces of 16 bytes; piece c of row r lies at place c ^ (r % 8) of its row, so eight rows at one column, as well as
// the pieces of one row, are in different banks.
#pragma once
#include "kernels/cuda/common/mma.h"

namespace cairn::kernels::cuda {

inline constexpr int kMmaWarps = 4, kMmaThreads = kMmaWarps * kWarp;

__device__ __forceinline__ int own_lane() { return static_cast<int>(threadIdx.x) % kWarp; }
__device__ __forceinline__ int own_warp() { return static_cast<int>(threadIdx.x) / kWarp; }

template <int kD>
struct Tile {
  static constexpr int kPitch = kD * 2;  // bytes
  static constexpr int kPieces = kD / 8;
  __host__ __device__ static constexpr int bytes(int rows) { return rows * kPitch; }
  __device__ __forceinline__ static unsigned at(int row, int piece) {
    return static_cast<unsigned>(row * kPitch + ((piece ^ (row & 7)) << 4));
  }
};

// Starts to copy kRows rows of `dim` numbers; rows from `rows` on, and columns from `dim` on, become zeros.
template <int kD, int kRows, int kThreads = kMmaThreads, class T>
__device__ __forceinline__ void copy_rows(Shared to, const T* from, int ld, int rows, int dim) {
  using In = Tile<kD>;
  constexpr int kStep = kThreads / In::kPieces;
  static_assert(kRows % kStep == 0);
  const int thread = static_cast<int>(threadIdx.x), piece = thread % In::kPieces,
            first = thread / In::kPieces;
  const bool inside = piece * 8 < dim;
  // Not unrolled: what would be kept from one tile to the next is worth more as registers for sums.
  CAIRN_UNROLL_BY(1)
  for (int row = first; row < kRows; row += kStep) {
    const bool there = inside && row < rows;
    cp_async(to + In::at(row, piece), from + (there ? static_cast<int64_t>(row) * ld + piece * 8 : 0), there);
  }
}

// Where a lane's row begins in the 16 rows that ldmatrix reads, and the place of its piece: for operands
// whose second matrix is below the first (kBelow), or to its right.
template <int kD, bool kBelow>
struct LaneAddress {
  Shared row;
  unsigned piece;

  __device__ __forceinline__ explicit LaneAddress(Shared tile) {
    const int lane = thread_anew() % kWarp;
    const int r = kBelow ? lane & 15 : (lane & 7) | (lane >> 1 & 8),
              beside = kBelow ? lane >> 4 : lane >> 3 & 1;
    row = tile + static_cast<unsigned>(r * Tile<kD>::kPitch);
    piece = static_cast<unsigned>((beside ^ (lane & 7)) << 4);
  }
  // Of 16 rows and 16 columns.
  __device__ __forceinline__ Shared at(int row_block, int column_block) const {
    return row + static_cast<unsigned>(row_block * 16 * Tile<kD>::kPitch) +
           (static_cast<unsigned>(column_block * 32) ^ piece);
  }
};

template <int kM, int kN>
__device__ __forceinline__ void clear(float (&acc)[kM][kN][4]) {
  CAIRN_UNROLL
  for (int m = 0; m < kM; ++m) {
    CAIRN_UNROLL
    for (int n = 0; n < kN; ++n) {
      CAIRN_UNROLL
      for (int i = 0; i < 4; ++i) acc[m][n][i] = 0;
    }
  }
}

// Stores a warp's 16 kM rows, scaled: factor[m][0] for row g, [m][1] for row g + 8. They go through `tile`,
// the warp's own rows of a tile that nobody reads any more, so that the memory is written in full lines.
template <int kD, int kM, class T>
__device__ __forceinline__ void store_rows(const float (&acc)[kM][kD / 8][4], const float (&factor)[kM][2],
                                           Shared tile, T* to, int ld, int rows, int dim) {
  using In = Tile<kD>;
  const int lane = own_lane(), g = lane / 4, t = lane % 4;
  __syncwarp();
  CAIRN_UNROLL
  for (int m = 0; m < kM; ++m) {
    CAIRN_UNROLL
    for (int n = 0; n < kD / 8; ++n) {
      CAIRN_UNROLL
      for (int half = 0; half < 2; ++half)
        store_shared(
            tile + In::at(m * 16 + half * 8 + g, n) + static_cast<unsigned>(t * 4),
            pack_pair<T>(acc[m][n][2 * half] * factor[m][half], acc[m][n][2 * half + 1] * factor[m][half]));
    }
  }
  __syncwarp();
  const int piece = lane % In::kPieces;
  for (int row = lane / In::kPieces; row < 16 * kM; row += kWarp / In::kPieces)
    if (row < rows && piece * 8 < dim)
      *reinterpret_cast<uint4*>(to + static_cast<int64_t>(row) * ld + piece * 8) =
          load_shared_16(tile + In::at(row, piece));
}

}  // namespace cairn::kernels::cuda
