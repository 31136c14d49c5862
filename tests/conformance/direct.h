// A call of an op whose operands a test draws.
#pragma once
#include <vector>

#include "tests/conformance/cases.h"

namespace cairn::conformance {

// A single op on operands drawn by the test. An operand of type u8 and rank 0 is left out.
struct Direct {
  const char* op;
  std::vector<TensorDesc> in, out;
  Attrs attrs;
  std::vector<double> hyper = {};  // of an update
  int64_t ids = 0;                 // integer operands are below; 0: the last dimension of operand 0
  double most = 1;                 // numbers are between this and its negative
};
inline const TensorDesc kAbsent{DType::kU8, Shape{}, 0};
inline bool is_there(const TensorDesc& d) { return d.dtype != DType::kU8; }
inline uint32_t present_of(const std::vector<TensorDesc>& list) {
  uint32_t bits = 0;
  for (size_t i = 0; i < list.size(); ++i) bits |= is_there(list[i]) ? 1u << i : 0u;
  return bits;
}

}  // namespace cairn::conformance
