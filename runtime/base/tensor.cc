#include "runtime/base/tensor.h"

#include <algorithm>
#include <iterator>

namespace cairn {
namespace {
constexpr Format kFormats[] = {
#define FORMAT(id, name, bits, block, row, scale_bytes, computed_as, codec, read, trains) \
  {name, bits, block, row, scale_bytes, DType::k##computed_as, Read::k##read, trains != 0},
#include "runtime/formats/formats.def"
#undef FORMAT
};
static_assert(std::size(kFormats) == kDTypeCount);
// Elements are addressed one by one all over the kernels.
static_assert(std::all_of(std::begin(kFormats), std::end(kFormats),
                          [](const Format& f) { return f.block > 1 || f.bits % 8 == 0; }));
}  // namespace

const Format& format(DType t) { return kFormats[static_cast<int>(t)]; }
int64_t dtype_bytes(DType t) {
  const Format& f = format(t);
  require(f.block == 1, Code::kInternal, f.name, " has blocks of ", f.block, " values, no bytes of one");
  return f.block_bytes();
}
std::string_view dtype_name(DType t) { return kFormats[static_cast<int>(t)].name; }

DType dtype_from_name(std::string_view name) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (kFormats[i].name == name) return static_cast<DType>(i);
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
