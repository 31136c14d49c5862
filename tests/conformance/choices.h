// Calls of ops on choices among experts, which no graph of a case holds, or not with numbers of this kind.
#pragma once
#include "tests/conformance/compare.h"
#include "tests/conformance/gradient_cases.h"
#include "tests/conformance/updates.h"

namespace cairn::conformance {

// Choices of any number, of rows that are there and others.
inline void add_choices(std::vector<Direct>& to) {
  const auto integers = [](Shape shape) { return TensorDesc{DType::kI32, shape, 0}; };
  for (const int64_t experts : {1, 5, 64, 300})
    for (const auto& [rows, k] : {std::pair<int64_t, int64_t>{1, 1}, {7, 3}, {900, 8}}) {
      const TensorDesc chosen = integers({rows, k});
      const Attrs attrs = with("experts", experts);
      to.push_back({"group_rows",
                    {chosen},
                    {integers({rows * k}), chosen, integers({experts + 1})},
                    attrs,
                    {},
                    experts + 1});
      to.push_back({"count_choices", {chosen}, {{DType::kF32, {experts}, 0}}, attrs, {}, experts + 1});
    }
  for (const DType t : kKernelTypes) {
    const TensorDesc x{t, {7, 33}, 0}, sorted{t, {21, 33}, 0},
        places = integers({7, 3}), order = integers({21}), weights{DType::kF32, {7, 3}, 0};
    to.push_back({"gather_rows", {x, order, places, weights}, {sorted}, {}, {}, 22});
    to.push_back({"combine_rows", {sorted, order, places, weights}, {x}, {}, {}, 22});
    to.push_back({"combine_rows_grad", {x, sorted, places}, {weights}, {}, {}, 22});
  }
}

}  // namespace cairn::conformance
