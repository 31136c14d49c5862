// Elements of files as numbers. Private to runtime/io.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/base/tensor.h"

namespace cairn::io {

// IEEE 754 binary16, exactly.
inline float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = half >> 10 & 0x1Fu, fraction = half & 0x3FFu;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000u | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return sign ? -magnitude : magnitude;
}

// Element `index` of a float tensor whose bytes may lie anywhere (files align nothing).
inline double load_float(const std::byte* data, DType dtype, int64_t index) {
  const std::byte* from = data + index * dtype_bytes(dtype);
  switch (dtype) {
    case DType::kF64: {
      double v;
      std::memcpy(&v, from, 8);
      return v;
    }
    case DType::kF32: {
      float v;
      std::memcpy(&v, from, 4);
      return v;
    }
    default: {
      uint16_t bits;
      std::memcpy(&bits, from, 2);
      return dtype == DType::kBF16 ? to_float(bf16{bits}) : half_to_float(bits);
    }
  }
}

}  // namespace cairn::io
