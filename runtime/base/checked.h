// 64-bit size arithmetic that fails instead of wrapping. Every size that comes from a caller or a file goes
// through here.
#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/base/error.h"

namespace cairn {

inline int64_t checked_add(int64_t a, int64_t b) {
  int64_t sum;
  require(!__builtin_add_overflow(a, b, &sum), Code::kInvalidArgument, "size overflows 64 bits: ", a, " + ",
          b);
  return sum;
}

inline int64_t checked_mul(int64_t a, int64_t b) {
  int64_t product;
  require(!__builtin_mul_overflow(a, b, &product), Code::kInvalidArgument, "size overflows 64 bits: ", a,
          " * ", b);
  return product;
}

// Ops and values are numbered by int32_t, -1 being none: such a number as an index.
constexpr size_t at(int32_t number) { return static_cast<size_t>(number); }

// Rounds up to a multiple of `unit` (a power of two).
inline int64_t align_up(int64_t bytes, int64_t unit) { return checked_add(bytes, unit - 1) & ~(unit - 1); }

// Every value and workspace starts at a multiple of this, on every tier: a cache line, and an AMX tile row.
inline constexpr int64_t kAlignment = 64;
inline constexpr int64_t kPageBytes = 4096;

}  // namespace cairn
