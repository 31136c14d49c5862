// Element types, shapes and dense row-major tensors: the words that graph, kernels and files share.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/checked.h"
#include "runtime/formats/dtype.h"
#include "runtime/formats/half.h"

namespace cairn {

// A row of formats.def.
struct Format {
  std::string_view name;
  int bits;
  int64_t block, row, scale_bytes;
  DType computed_as;
  Read read;
  bool trains;

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

}  // namespace cairn
