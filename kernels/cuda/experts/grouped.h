// What the grouped products share: their sizes, and which rows of which expert a block has.
#pragma once
#include <optional>

#include "kernels/cuda/experts/experts.h"
#include "runtime/base/experts.h"

namespace cairn::kernels::cuda {

struct GroupedSizes {
  int rows, experts;
  int inner, outer;  // columns of the input and of the output; of the weights' gradient: its rows and columns

  __host__ __device__ int64_t weights() const { return static_cast<int64_t>(inner) * outer; }
};

// c[rows, outer] = a[rows, inner] w, by expert.
struct GroupedProduct {
  GroupedSizes sizes;
  bool along;  // the weights are w[e, outer, inner], along the sums; else w[e, inner, outer]
  int first;   // the number of the weights' first expert
  int bias;    // the operand; -1: none
  int before;  // the operand that may have the rows of other experts

  const int32_t* starts(const Call& call) const { return input<const int32_t>(call, 2) + first; }
  const float* biases(const Call& call) const {
    const float* of_all = bias < 0 ? nullptr : input<const float>(call, static_cast<size_t>(bias));
    return of_all == nullptr ? nullptr : of_all + static_cast<int64_t>(first) * sizes.outer;
  }
};

// Rows of an expert, as many as a tile has or as are left.
struct RowTile {
  int expert = 0;
  int64_t first = 0;
  int count = 0;  // 0: the tile has none
};

// How many tiles of kEach rows there are at most: a grid is made before `starts` is known.
template <int kEach>
int64_t most_tiles(const GroupedSizes& z) {
  return z.rows / kEach + z.experts;
}

// Expert e has the tiles from number begin / kEach + e on, which are enough for its rows. Called by all threads of a
// block; each warp finds the same.
template <int kEach>
__device__ __forceinline__ RowTile row_tile(const int32_t* starts, const GroupedSizes& z, int64_t tile) {
  const auto first_tile = [&](int e) { return experts::rows_of(starts, e, z.rows).begin / kEach + e; };
  int begun = 0;
  for (int e = static_cast<int>(threadIdx.x) % kWarp; e < z.experts; e += kWarp)
    begun += first_tile(e) <= tile;
  const int expert = warp_sum(begun) - 1;
  if (expert < 0) return {};
  const experts::Rows rows = experts::rows_of(starts, expert, z.rows);
  const int64_t first = rows.begin + (tile - first_tile(expert)) * kEach, left = rows.end - first;
  return {expert, first, static_cast<int>(left <= 0 ? 0 : left < kEach ? left : kEach)};
}

// Of grouped_linear, or (of_input) the gradient of its input. nullopt: operands that no kernel takes.
inline std::optional<GroupedProduct> grouped_product(const Signature& s, bool of_input) {
  const DType t = s.in[0].dtype, w = s.in[1].dtype;
  if (!fast_float(s.in[0]) || (w != t && w != DType::kF32) || s.in[1].packed_bytes != 0) return {};
  if (!plain_i32(s.in[2]) || s.out[0].dtype != t) return {};
  const bool bias = !of_input && s.has_in(3);
  if (bias && !plain_f32(s.in[3])) return {};
  const experts::Grouped z(s, s.in[1]);
  return GroupedProduct{{static_cast<int>(z.rows), static_cast<int>(z.experts),
                         static_cast<int>(of_input ? z.n : z.k), static_cast<int>(of_input ? z.k : z.n)},
                        z.transposed == of_input,
                        static_cast<int>(z.first),
                        bias ? 3 : -1,
                        of_input ? 3 : 4};
}

// Of the gradient of the weights: c[e] of [inner, outer] is a^T b over the rows of expert e; a and b are dy and x.
struct GroupedGradient {
  GroupedSizes sizes;
  size_t a, b;  // which operands
  int first;    // the number of the gradient's first expert
};
inline std::optional<GroupedGradient> grouped_gradient(const Signature& s) {
  if (!fast_float(s.in[0]) || s.in[1].dtype != s.in[0].dtype || !plain_i32(s.in[2])) return {};
  if (!plain_f32(s.out[0]) || (s.has_out(1) && !plain_f32(s.out[1]))) return {};
  const experts::Grouped z(s, s.out[0]);
  const size_t x = 0, dy = 1;
  return GroupedGradient{{static_cast<int>(z.rows), static_cast<int>(z.experts),
                          static_cast<int>(s.out[0].shape[1]), static_cast<int>(s.out[0].shape[2])},
                         z.transposed ? x : dy,
                         z.transposed ? dy : x,
                         static_cast<int>(z.first)};
}

// The call of grouped_linear_grad_weight: db, if that is wanted.
void sum_columns_of_experts(const Call& call, const GroupedGradient& g);
// The rows of other experts than the weights', where these are a part of all: of the operand `before`, where the output may lie, or zero.
void carry_rows(const Call& call, const GroupedProduct& p);

}  // namespace cairn::kernels::cuda
