// Operands that are repeated along axes of a result, by NumPy's rules: shapes are aligned at the last axis, and an axis of
// 1, or one that is missing, is repeated. What kernels of every backend walk by, and the rows of arithmetic.def.
#pragma once
#include <limits>
#include <span>
#include <string_view>

#include "runtime/base/attrs.h"
#include "runtime/base/tensor.h"

namespace cairn {

inline constexpr int kMostOperands = 3;

// Of every axis of the result, outermost first: its size and each operand's stride, 0 where that is repeated. At least one
// axis; on the last one strides are 0 or 1.
struct Broadcast {
  int rank = 0;
  int64_t sizes[kMaxRank] = {}, strides[kMostOperands][kMaxRank] = {};
};

// Axes of size 1 are removed; neighbouring axes that can be merged in every operand become one.
inline Broadcast make_broadcast(const Shape& result, std::span<const TensorDesc> operands) {
  Broadcast all, made;
  for (size_t o = 0; o < operands.size(); ++o) {
    const Shape& own = operands[o].shape;
    int64_t stride = 1;
    for (int axis = 1; axis <= own.rank; ++axis) {
      all.strides[o][result.rank - axis] = own[-axis] == 1 ? 0 : stride;
      stride *= own[-axis];
    }
  }
  for (int axis = 0; axis < result.rank; ++axis) {
    if (result[axis] == 1) continue;
    const int last = made.rank - 1;
    bool same = last >= 0;
    for (size_t o = 0; same && o < operands.size(); ++o)
      same = made.strides[o][last] == all.strides[o][axis] * result[axis];
    const int to = same ? last : made.rank++;
    made.sizes[to] = (same ? made.sizes[to] : 1) * result[axis];
    for (size_t o = 0; o < operands.size(); ++o) made.strides[o][to] = all.strides[o][axis];
  }
  if (made.rank == 0) made.sizes[made.rank++] = 1;
  return made;
}

// Where element i of the result lies in an operand.
inline int64_t place(const Broadcast& walk, int operand, int64_t i) {
  int64_t at = 0;
  for (int axis = walk.rank - 1; axis >= 0; --axis) {
    at += i % walk.sizes[axis] * walk.strides[operand][axis];
    i /= walk.sizes[axis];
  }
  return at;
}

// Is every operand but the first a suffix of it?
inline bool are_suffixes(std::span<const TensorDesc> operands) {
  const Shape& first = operands[0].shape;
  for (const TensorDesc& other : operands) {
    const Shape& own = other.shape;
    if (own.rank > first.rank) return false;
    for (int axis = 1; axis <= own.rank; ++axis)
      if (own[-axis] != first[-axis]) return false;
  }
  return true;
}

// A row of arithmetic.def.
struct ArithmeticRow {
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  struct Parameter {
    std::string_view attribute = {};
    double otherwise = 0;
    double in(const Attrs* attrs) const {
      return attrs == nullptr || attribute.empty() ? otherwise : attrs->real(attribute, otherwise);
    }
  };
  std::string_view op;
  int operands;
  Parameter p = {}, q = {};
};

}  // namespace cairn
