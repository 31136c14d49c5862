// What an encoded block depends on. A codec whose blocks depend on more than their own numbers says so by `kScope`; its
// `measure` goes over all numbers of the row or tensor before `encode`, which takes what is known then.
#pragma once
#include <cstdint>

namespace cairn::formats {

enum class Scope : uint8_t { kBlock, kRow, kTensor };

// Of a row or a tensor; what the number is, a codec says.
struct Known {
  double number = 0;
  int64_t count = 0;
};

}  // namespace cairn::formats
