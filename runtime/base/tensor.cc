#include "runtime/base/tensor.h"

namespace cairn {
namespace {
struct DTypeRow {
  std::string_view name;
  int64_t bytes;
};
constexpr DTypeRow kDTypes[kDTypeCount] = {{"f32", 4}, {"bf16", 2}, {"f16", 2}, {"f64", 8},
                                           {"i32", 4}, {"i64", 8},  {"u8", 1},  {"opaque", 1}};
}  // namespace

int64_t dtype_bytes(DType t) { return kDTypes[static_cast<int>(t)].bytes; }
std::string_view dtype_name(DType t) { return kDTypes[static_cast<int>(t)].name; }

DType dtype_from_name(std::string_view name) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (kDTypes[i].name == name) return static_cast<DType>(i);
  fail(Code::kInvalidArgument, "unknown dtype '", name, "'");
}

Shape::Shape(std::initializer_list<int64_t> list)
    : Shape(std::span<const int64_t>(list.begin(), list.size())) {}

Shape::Shape(std::span<const int64_t> list) {
  require(list.size() <= kMaxRank, Code::kInvalidArgument, "rank ", list.size(), " is above ", kMaxRank);
  for (int64_t d : list) {
    require(d >= 1, Code::kInvalidArgument, "dimension ", rank, " is ", d, "; it must be at least 1");
    dims[rank++] = d;
  }
  elements();
}

int64_t Shape::elements() const {
  int64_t n = 1;
  for (int i = 0; i < rank; ++i) n = checked_mul(n, dims[i]);
  return n;
}

bool Shape::operator==(const Shape& other) const {
  if (rank != other.rank) return false;
  for (int i = 0; i < rank; ++i)
    if (dims[i] != other.dims[i]) return false;
  return true;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank; ++i) text += (i ? ", " : "") + std::to_string(shape.dims[i]);
  return text + "]";
}

std::string to_string(const TensorDesc& desc) {
  return std::string(dtype_name(desc.dtype)) + to_string(desc.shape);
}

}  // namespace cairn
