// Shorthand for descs in tests of the op table.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/ops/ops.h"

namespace cairn::ops {

inline TensorDesc f32(std::initializer_list<int64_t> shape) { return {DType::kF32, Shape(shape), 0}; }
inline TensorDesc bf(std::initializer_list<int64_t> shape) { return {DType::kBF16, Shape(shape), 0}; }
inline TensorDesc f64(std::initializer_list<int64_t> shape) { return {DType::kF64, Shape(shape), 0}; }
inline TensorDesc i32(std::initializer_list<int64_t> shape) { return {DType::kI32, Shape(shape), 0}; }
inline TensorDesc packed(std::initializer_list<int64_t> shape) {
  return {DType::kOpaque, Shape(shape), 4096};
}
// An optional operand left out.
inline TensorDesc none() { return {DType::kU8, Shape{}, 0}; }
inline bool is_none(const TensorDesc& d) { return d.dtype == DType::kU8; }

using List = std::vector<int64_t>;

inline std::vector<TensorDesc> infer(std::string_view op, const std::vector<TensorDesc>& in,
                                     const Attrs& attrs) {
  std::vector<TensorDesc> out;
  uint32_t present = 0;
  for (size_t i = 0; i < in.size(); ++i)
    if (!is_none(in[i])) present |= 1u << i;
  find(op)->shape({op, in, present, &attrs, &out});
  return out;
}

// A call that its shape rule refuses, in these words.
struct Bad {
  const char* op;
  std::vector<TensorDesc> in;
  Attrs attrs;
  const char* message;
};

inline void expect_refused(const std::vector<Bad>& bad) {
  for (const Bad& b : bad) {
    try {
      infer(b.op, b.in, b.attrs);
      ADD_FAILURE() << "accepted: " << b.message;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kInvalidArgument);
      EXPECT_STREQ(e.what(), b.message);
    }
  }
}

}  // namespace cairn::ops
