// What every CPU kernel file uses besides runtime/base/kernel_closure.h.
#pragma once
#include <string>

#include "runtime/base/checked.h"
#include "runtime/base/kernel_closure.h"
#include "runtime/base/parallel.h"

namespace cairn::kernels::cpu {

// All operands present are of the float type of the first one.
inline bool uniform_fast(const Signature& s) {
  const DType t = s.in.empty() ? s.out[0].dtype : s.in[0].dtype;
  if (!is_fast_float(t)) return false;
  for (size_t i = 0; i < s.in.size(); ++i)
    if (s.has_in(i) && (s.in[i].dtype != t || s.in[i].packed_bytes)) return false;
  for (size_t i = 0; i < s.out.size(); ++i)
    if (s.has_out(i) && s.out[i].dtype != t) return false;
  return true;
}

// Rows or elements a thread must have before a second one is worth waking (about 20 microseconds of work).
inline constexpr int64_t kGrain = 8192;
inline int64_t row_grain(int64_t columns) { return columns >= kGrain ? 1 : kGrain / columns; }

}  // namespace cairn::kernels::cpu
