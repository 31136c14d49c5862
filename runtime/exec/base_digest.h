// What tells one base from another: digests of the frozen parameters, as they are stored.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/tensor.h"

namespace cairn::engine {

struct BaseDigest {
  struct Part {
    std::string name;
    TensorDesc desc;  // as it is saved
    uint64_t low = 0, high = 0;
  };
  std::vector<Part> parts;     // of each frozen parameter, in the graph's order
  uint64_t low = 0, high = 0;  // XXH3-128 of all their bytes, one after the other
  std::string hex() const;     // 32 digits
};

}  // namespace cairn::engine
