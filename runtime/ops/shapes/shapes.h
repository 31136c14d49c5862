// What shape rules share: reading operands and attributes with checks whose messages name op, operand and
// both shapes. Internal to runtime/ops.
#pragma once
#include <string>

#include "runtime/ops/ops.h"
#include "runtime/ops/rules.h"

namespace cairn::ops {

// Dtype of what stands in double precision in f64 graphs and in single precision elsewhere: weights, norm
// parameters, statistics, outputs that accumulate.
inline DType wide(DType t) { return t == DType::kF64 ? DType::kF64 : DType::kF32; }

inline TensorDesc desc(DType dtype, const Shape& shape) { return {dtype, shape, 0}; }

Shape with_last(Shape shape, int64_t last);  // the last dimension replaced
Shape without_last(Shape shape);             // the last dimension dropped

class Operands;
// The attributes scale and softcap of the ops that make a vocabulary's logits.
void check_logits(const Operands& o);

// The operands of one call. The constructor checks that the required ones are there.
class Operands {
 public:
  explicit Operands(const ShapeQuery& query);

  const TensorDesc& operator[](int i) const { return q_.in[static_cast<size_t>(i)]; }
  const Shape& shape(int i) const { return (*this)[i].shape; }
  DType dtype(int i) const { return (*this)[i].dtype; }
  bool has(int i) const { return q_.has(static_cast<size_t>(i)); }
  int count() const { return static_cast<int>(q_.in.size()); }
  const Attrs& attrs() const { return *q_.attrs; }
  void put(TensorDesc output) const;  // the next output; its size is checked for overflow

  // "linear: w is f32[10, 7]: <why>"
  template <class... Why>
  void check(bool ok, int i, const Why&... why) const {
    if (!ok) fail_with(cat(is(i), ": ", why...));
  }
  // "linear: w is f32[10, 7], but x is f32[4, 8]: <why>"
  template <class... Why>
  void check_pair(bool ok, int i, int j, const Why&... why) const {
    if (!ok) fail_with(cat(is(i), ", but ", is(j), ": ", why...));
  }
  // "dropout: rate is 1.5: <why>"
  template <class Value, class... Why>
  void check_attr(bool ok, std::string_view name, const Value& value, const Why&... why) const {
    if (!ok) fail_with(cat(name, " is ", value, ": ", why...));
  }

  void floating(int i) const;     // a float dtype, not packed
  void integers(int i) const;     // i32
  void same(int i, int j) const;  // dtype and shape
  void same_shape(int i, int j) const;
  void same_dtype(int i, int j) const;
  void beside(int i, int j) const;  // operand i has operand j's float dtype, or f32 where that has 16 bits
  // `shape`, which operand j has or was broadcast to, and operand i's, broadcast to each other.
  Shape broadcast(int i, const Shape& shape, int j) const;
  // Of the dimensions before the last `but`.
  Shape broadcast_leading(int i, int j, int but) const;
  void parameter(int i, int j) const;               // operand i is f32 (f64 if operand j is)
  void vector(int i, int64_t length, int j) const;  // [length], the last dimension of j
  void rank(int i, int rank) const;
  void rank_at_least(int i, int rank) const;
  // Of a format that is decoded where it is read.
  bool in_blocks(int i) const;
  // w[N, K] with x: it has the dtype of a parameter or of x, is in blocks, or is packed.
  void weight(int i, int j) const;
  void plain_weight(int i, int j) const;    // the same of any rank
  void decoded_weight(int i, int j) const;  // of any rank; neither in blocks nor packed
  // A table [V, C]: the type of the rows that a lookup gives.
  DType looked_up(int i) const;
  // An axis attribute in [-rank, rank), made non-negative.
  int axis(int64_t value, int i, std::string_view name = "axis") const;
  // Distinct axes, sorted; empty or missing: all of them.
  std::vector<int> axes(int i) const;

 private:
  Shape broadcast(int i, const Shape& own, const Shape& with, int j) const;
  std::string name(int i) const;
  std::string is(int i) const;
  [[noreturn]] void fail_with(const std::string& message) const;

  const ShapeQuery& q_;
  const OpRow* row_;
};

}  // namespace cairn::ops
