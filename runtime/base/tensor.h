// Element types, shapes and dense row-major tensors: the words that graph, kernels and files share.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/checked.h"

namespace cairn {

// One per row of formats.def; values are part of the ABI and of files. kOpaque: bytes in a layout only the
// backend knows (packed weights).
enum class DType : uint8_t {
#define FORMAT(id, ...) k##id,
#include "runtime/base/formats.def"
#undef FORMAT
};
inline constexpr DType kDTypes[] = {
#define FORMAT(id, ...) DType::k##id,
#include "runtime/base/formats.def"
#undef FORMAT
};
inline constexpr int kDTypeCount = static_cast<int>(std::size(kDTypes));

// A row of formats.def.
struct Format {
  std::string_view name;
  int bits;
  int64_t block, scale_bytes;
  DType computed_as;

  int64_t block_bytes() const { return block * bits / 8 + scale_bytes; }
  // Bytes of a tensor of so many values, in full blocks. kInvalidArgument where they are too many to count.
  int64_t bytes(int64_t values) const {
    return checked_mul(values / block + (values % block != 0 ? 1 : 0), block_bytes());
  }
};
const Format& format(DType);

int64_t dtype_bytes(DType);               // bytes of one element; kInternal of a format with blocks
std::string_view dtype_name(DType);       // "f32", "bf16", ...
DType dtype_from_name(std::string_view);  // kInvalidArgument if unknown
inline bool is_float(DType t) { return t <= DType::kF64; }

inline constexpr int kMaxRank = 8;

struct Shape {
  std::array<int64_t, kMaxRank> dims{};
  int rank = 0;

  Shape() = default;
  Shape(std::initializer_list<int64_t> list);
  explicit Shape(std::span<const int64_t> list);  // kInvalidArgument: rank > 8 or a dimension < 1
  int64_t operator[](int axis) const { return dims[axis < 0 ? rank + axis : axis]; }
  int64_t& operator[](int axis) { return dims[axis < 0 ? rank + axis : axis]; }
  int64_t elements() const;  // checked; 1 for rank 0
  int64_t last() const { return rank == 0 ? 1 : dims[rank - 1]; }
  int64_t rows() const { return elements() / last(); }  // all dimensions but the last, multiplied
  bool operator==(const Shape& other) const;
  std::span<const int64_t> span() const { return {dims.data(), static_cast<size_t>(rank)}; }
};

std::string to_string(const Shape&);  // "[4, 256]"

struct TensorDesc {
  DType dtype = DType::kF32;
  Shape shape;
  int64_t packed_bytes = 0;  // > 0: a backend's packed form of this weight, of so many bytes

  int64_t bytes() const { return packed_bytes ? packed_bytes : format(dtype).bytes(shape.elements()); }
  bool operator==(const TensorDesc&) const = default;
};

std::string to_string(const TensorDesc&);  // "f32[4, 256]"

// A dense row-major tensor somewhere; data is borrowed. data == nullptr: an optional operand left out.
struct Tensor {
  TensorDesc desc;
  void* data = nullptr;

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  explicit operator bool() const { return data != nullptr; }
};

// bfloat16 as stored; conversion rounds to nearest even, NaN remains NaN.
struct bf16 {
  uint16_t bits;
};
inline float to_float(bf16 v) { return __builtin_bit_cast(float, static_cast<uint32_t>(v.bits) << 16); }
constexpr bf16 to_bf16(float f) {
  uint32_t u = __builtin_bit_cast(uint32_t, f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>((u >> 16) | 0x40u)};
  return {static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16)};
}

// IEEE 754 binary16 as stored: 5 bits of exponent, largest finite 65504, denormals down to 2^-24. Conversion
// rounds to nearest even; what is too large becomes infinite, NaN remains NaN.
struct f16 {
  uint16_t bits;
};
inline float to_float(f16 v) {
  const uint32_t sign = static_cast<uint32_t>(v.bits & 0x8000u) << 16, rest = v.bits & 0x7fffu;
  if (rest >= 0x7c00u) return __builtin_bit_cast(float, sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  if (rest >= 0x400u) return __builtin_bit_cast(float, sign | ((rest << 13) + (112u << 23)));
  const float small = static_cast<float>(rest) * 0x1p-24f;
  return sign != 0 ? -small : small;
}
inline f16 to_f16(float f) {
  const uint32_t u = __builtin_bit_cast(uint32_t, f), a = u & 0x7fffffffu;
  const auto sign = static_cast<uint16_t>(u >> 16 & 0x8000u);
  const auto with_sign = [sign](uint32_t bits) { return f16{static_cast<uint16_t>(sign | bits)}; };
  if (a > 0x7f800000u) return with_sign(0x7e00u | (a >> 13 & 0x3ffu));
  if (a >= 0x477ff000u) return with_sign(0x7c00u);  // 65520 and more
  if (a >= 0x38800000u) return with_sign((a + 0xfffu + (a >> 13 & 1u) - (112u << 23)) >> 13);
  // A denormal: next to 0.5 floats lie 2^-24 apart, so this addition rounds as it should.
  const float shifted = __builtin_bit_cast(float, a) + 0.5f;
  return with_sign(__builtin_bit_cast(uint32_t, shifted) - 0x3f000000u);
}

// From float to T, rounded to nearest even.
template <class T>
T round_to(float f);
template <>
inline float round_to<float>(float f) {
  return f;
}
template <>
inline bf16 round_to<bf16>(float f) {
  return to_bf16(f);
}
template <>
inline f16 round_to<f16>(float f) {
  return to_f16(f);
}
inline float to_float(float f) { return f; }

}  // namespace cairn
