#include "runtime/ops/shapes/shapes.h"

#include <algorithm>

namespace cairn::ops {

Shape with_last(Shape shape, int64_t last) {
  shape[-1] = last;
  return shape;
}

Shape without_last(Shape shape) {
  shape.dims[shape.rank - 1] = 0;
  --shape.rank;
  return shape;
}

Operands::Operands(const ShapeQuery& query) : q_(query), row_(find(query.op)) {
  q_.out->clear();
  if (row_ == nullptr) fail_with("unknown op");
  if (q_.in.size() > row_->inputs.size())
    fail_with(cat(q_.in.size(), " operands given, it takes at most ", row_->inputs.size()));
  for (size_t i = 0; i < row_->inputs.size(); ++i)
    if (!row_->inputs[i].optional && !q_.has(i))
      fail_with(cat("operand '", row_->inputs[i].name, "' is missing"));
}

void Operands::put(TensorDesc output) const {
  output.bytes();
  q_.out->push_back(output);
}

std::string Operands::name(int i) const { return std::string(row_->inputs[static_cast<size_t>(i)].name); }

std::string Operands::is(int i) const { return cat(name(i), " is ", to_string((*this)[i])); }

void Operands::fail_with(const std::string& message) const {
  fail(Code::kInvalidArgument, q_.op, ": ", message);
}

void Operands::floating(int i) const {
  check(is_float(dtype(i)) && (*this)[i].packed_bytes == 0, i, "it must be of a float type");
}

void Operands::integers(int i) const { check(dtype(i) == DType::kI32, i, "it must be i32"); }

void Operands::same_shape(int i, int j) const { check_pair(shape(i) == shape(j), i, j, "the shapes differ"); }

void Operands::same_dtype(int i, int j) const { check_pair(dtype(i) == dtype(j), i, j, "the dtypes differ"); }

void Operands::same(int i, int j) const {
  same_dtype(i, j);
  same_shape(i, j);
}

void Operands::beside(int i, int j) const {
  floating(i);
  check_pair(dtype(i) == dtype(j) || (dtype(i) == DType::kF32 && wide(dtype(j)) == DType::kF32), i, j,
             "the dtypes do not go together");
}

Shape Operands::broadcast(int i, const Shape& with, int j) const { return broadcast(i, shape(i), with, j); }

Shape Operands::broadcast_leading(int i, int j, int but) const {
  Shape own = shape(i), with = shape(j);
  for (int k = 0; k < but; ++k) own = without_last(own), with = without_last(with);
  return broadcast(i, own, with, j);
}

Shape Operands::broadcast(int i, const Shape& own, const Shape& with, int j) const {
  Shape both = own.rank > with.rank ? own : with;
  for (int axis = 1; axis <= std::min(own.rank, with.rank); ++axis) {
    const int64_t a = own[-axis], b = with[-axis];
    check_pair(a == b || a == 1 || b == 1, i, j,
               "the shapes do not broadcast: sizes must be equal, or one of them 1 (", a, ", ", b, ")");
    both[-axis] = std::max(a, b);
  }
  return both;
}

void Operands::parameter(int i, int j) const {
  const DType want = wide(dtype(j));
  check_pair(dtype(i) == want && (*this)[i].packed_bytes == 0, i, j, "it must be ", dtype_name(want),
             " there");
}

void Operands::vector(int i, int64_t length, int j) const {
  check_pair(shape(i).rank == 1 && shape(i)[0] == length, i, j, "it must be of shape [", length, "]");
}

void Operands::rank(int i, int rank) const { check(shape(i).rank == rank, i, "it must have rank ", rank); }

void Operands::rank_at_least(int i, int rank) const {
  check(shape(i).rank >= rank, i, "it must have at least rank ", rank);
}

bool Operands::in_blocks(int i) const {
  return format(dtype(i)).read == Read::kDequantised && (*this)[i].packed_bytes == 0;
}

void Operands::weight(int i, int j) const {
  rank(i, 2);
  plain_weight(i, j);
}

void Operands::decoded_weight(int i, int j) const {
  if ((*this)[i].packed_bytes > 0 || dtype(i) != dtype(j)) parameter(i, j);
}
void Operands::plain_weight(int i, int j) const {
  if ((*this)[i].packed_bytes > 0 || dtype(i) == dtype(j)) return;
  if (!in_blocks(i) || wide(dtype(j)) == DType::kF64) parameter(i, j);
}

DType Operands::looked_up(int i) const {
  rank(i, 2);
  if (!in_blocks(i)) floating(i);
  const DType table = in_blocks(i) ? DType::kF32 : dtype(i);
  DType type = table;
  if (const std::string word = attrs().word("dtype"); !word.empty()) type = dtype_from_name(word);
  check_attr(is_float(type), "dtype", dtype_name(type), "it must be a float type");
  check(table == wide(type) || table == type, i, "it must be ", dtype_name(wide(type)), " to give ",
        dtype_name(type));
  return type;
}

int Operands::axis(int64_t value, int i, std::string_view attr) const {
  const int n = shape(i).rank;
  if (value < -n || value >= n) fail_with(cat(attr, " is ", value, ", but ", is(i), ": out of range"));
  return static_cast<int>(value < 0 ? value + n : value);
}

std::vector<int> Operands::axes(int i) const {
  std::vector<int> list;
  for (int64_t value : attrs().list("axes")) list.push_back(axis(value, i, "axes"));
  std::sort(list.begin(), list.end());
  if (std::adjacent_find(list.begin(), list.end()) != list.end()) fail_with("axes names an axis twice");
  if (list.empty())
    for (int a = 0; a < shape(i).rank; ++a) list.push_back(a);
  return list;
}

}  // namespace cairn::ops
