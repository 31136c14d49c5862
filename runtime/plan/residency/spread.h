// Numbers 0 ... count - 1 so that each beginning of the list is spread evenly over all of it.
#pragma once
#include <cstddef>
#include <vector>

namespace cairn::plan {

inline std::vector<size_t> spread(size_t count) {
  std::vector<size_t> order;
  size_t width = 1;
  while (width < count) width *= 2;
  for (size_t i = 0; i < width; ++i) {
    size_t reversed = 0;
    for (size_t bit = 1, back = width / 2; bit < width; bit *= 2, back /= 2)
      if (i & bit) reversed |= back;
    if (reversed < count) order.push_back(reversed);
  }
  return order;
}

}  // namespace cairn::plan
