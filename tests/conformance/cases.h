// The ops under test as rows: op, operands, attributes. One row serves the gradient check in float64 and the
// comparison of every backend's kernels in f32 and bf16.
#pragma once
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "runtime/formats/codecs.h"
#include "tests/conformance/interpreter.h"

namespace cairn::conformance {

// kind: T activation (in the dtype under test), P weight or norm parameter (f32, or f64), I integers in [lo,
// hi), W row weights (never differentiated), '-' left out.
struct Operand {
  char kind = '-';
  std::vector<int64_t> shape;
  double lo = -1, hi = 1;
  bool apart = false;  // at least 0.1 away from zero: for functions with a kink there
  bool whole = false;  // -1, 0 or 1: sums of products are exact in every type, and many are equal
  bool samples =
      false;  // integers: samples that lie one after the other in the last axis, with `lo` at its end
  std::vector<int32_t> given = {};  // integers: these
};

struct Case {
  std::string op;
  std::vector<Operand> in;
  Attrs attrs;
  std::string name() const;
};

inline Operand T(std::vector<int64_t> shape, double lo = -1, double hi = 1) {
  return {'T', std::move(shape), lo, hi};
}
inline Operand P(std::vector<int64_t> shape, double lo = -1, double hi = 1) {
  return {'P', std::move(shape), lo, hi};
}
inline Operand W(std::vector<int64_t> shape) { return {'W', std::move(shape), 0, 2}; }
inline Operand I(std::vector<int64_t> shape, int64_t classes) {
  return {'I', std::move(shape), 0, static_cast<double>(classes)};
}
inline Operand apart(Operand o) {
  o.apart = true;
  return o;
}
inline Operand whole(Operand o) {
  o.whole = true;
  return o;
}
inline const Operand kNoOperand;

inline std::string Case::name() const {
  std::string text = op + "(";
  for (size_t i = 0; i < in.size(); ++i) {
    text += i ? ", " : "";
    text += in[i].kind;
    for (int64_t d : in[i].shape) text += cat(' ', d);
  }
  for (const auto& [key, value] : attrs.items()) {
    text += cat("; ", key, "=");
    std::visit(
        [&](const auto& item) {
          using Item = std::decay_t<decltype(item)>;
          if constexpr (std::is_arithmetic_v<Item> || std::is_same_v<Item, std::string>)
            text += cat(item);
          else
            for (const auto n : item) text += cat(n, ' ');
        },
        value);
  }
  return text + ")";
}

// Uniform numbers named by (tensor, element): the same in every run.
inline double draw(uint64_t tensor, int64_t element, const Operand& o) {
  RandomKey key;
  key.seed = 7;
  key.step = tensor;
  thread_local uint64_t made[2] = {~0ull, ~0ull};  // of which tensor and four elements the block is
  thread_local PhiloxBlock block;
  if (const auto fourth = static_cast<uint64_t>(element) / 4; made[0] != tensor || made[1] != fourth) {
    block = random_block(key, fourth);
    made[0] = tensor;
    made[1] = fourth;
  }
  const double u = block[element % 4] * 0x1p-32;
  if (!o.given.empty()) return o.given[static_cast<size_t>(element)];
  if (o.samples) {
    const int64_t length = o.shape.back(), at = element % length;
    return at == length - 1 ? o.lo : std::floor(static_cast<double>(at) * o.hi / static_cast<double>(length));
  }
  // Where a range begins below zero, what it holds for (ignored, outside) must come up.
  if (o.kind == 'I' && o.lo < 0 && element % 5 == 1) return o.lo;
  if (o.kind == 'I') return std::floor(o.lo + u * (o.hi - o.lo));
  if (o.whole) return std::floor(3 * u) - 1;
  const double v = o.lo + u * (o.hi - o.lo);
  return o.apart ? v + (v < 0 ? -0.1 : 0.1) : v;
}
inline void fill(const Tensor& t, uint64_t tensor, const Operand& o) {
  const int64_t elements = t.desc.shape.elements();
  if (format(t.desc.dtype).block > 1) {  // a block's scale follows from all of its numbers
    std::vector<float> numbers;
    for (int64_t i = 0; i < elements; ++i) numbers.push_back(static_cast<float>(draw(tensor, i, o)));
    formats::codec(t.desc.dtype).encode(numbers.data(), elements, t.data);
    return;
  }
  for (int64_t i = 0; i < elements; ++i) set(t, i, draw(tensor, i, o));
}

inline DType wide(DType t) { return t == DType::kF64 ? DType::kF64 : DType::kF32; }

// A graph around one op: every T and P operand chosen by `trained` (bit per operand) is a trainable
// parameter, the others are inputs; operands of 16 bits come from f32 through a cast. An output that is no loss is
// compared with random targets by mse, so that all of it matters.
struct Built {
  std::shared_ptr<const graph::JointGraph> joint;
  std::vector<Operand> operands;  // in the order of the graph's parameters and inputs
  std::vector<std::string> names;
};

// parts: of weights that may be in parts and have enough rows; aligned: each begins at a multiple of 64 bytes of float32,
// as operands of a plan do.
inline Built build(const Case& c, DType dtype, uint32_t trained, int64_t parts = 1, bool aligned = false) {
  using graph::ValueId;
  auto g = std::make_shared<graph::Graph>();
  Built built;
  const auto leaf = [&](const std::string& name, const Operand& o, DType type, bool train) {
    const TensorDesc desc{type, Shape(std::span<const int64_t>(o.shape)), 0};
    built.operands.push_back(o);
    built.names.push_back(name);
    return train ? g->parameter(name, desc, {}) : g->input(name, desc);
  };
  std::vector<ValueId> in;
  for (size_t i = 0; i < c.in.size(); ++i) {
    const Operand& o = c.in[i];
    if (o.kind == '-') {
      in.push_back(graph::kNone);
      continue;
    }
    const bool train = (o.kind == 'T' || o.kind == 'P') && (trained >> i & 1u);
    const DType type = o.kind == 'I' ? DType::kI32 : wide(dtype);
    ValueId v = leaf(cat("operand", i), o, type, train);
    if (o.kind == 'T' && dtype != type)
      v = g->op("cast", {v}, {{"dtype", std::string(dtype_name(dtype))}})[0];
    in.push_back(v);
  }
  const std::vector<ValueId> out = g->op(c.op, in, c.attrs);
  ValueId loss = out[0];
  if (!ops::find(c.op)->is(ops::LOSS)) {
    ValueId y = out[0];
    const Shape& shape = g->values()[static_cast<size_t>(y)].desc.shape;
    std::vector<int64_t> dims(shape.span().begin(), shape.span().end());
    if (dims.empty()) {
      dims = {1};
      y = g->op("reshape", {y}, {{"shape", dims}})[0];
    }
    loss = g->op("mse", {y, leaf("target", T(dims), wide(dtype), false)})[0];
  }
  g->freeze(loss, graph::kNone, {});
  graph::JointOptions options;
  options.optimizer.name = "";
  for (size_t i = 0; parts > 1 && i < built.names.size(); ++i) {
    const std::vector<int64_t>& shape = built.operands[i].shape;
    if (shape.size() < 2) continue;
    int64_t row = 1;
    for (size_t axis = 1; axis < shape.size(); ++axis) row *= shape[axis];
    const int64_t rows = shape[0], unit = aligned ? 16 / std::gcd<int64_t>(16, row) : 1;
    if (rows < parts) continue;
    std::vector<int64_t> firsts = {0};
    for (int64_t k = 1; k < parts; ++k)
      if (const int64_t at = k * rows / parts / unit * unit; at > firsts.back()) firsts.push_back(at);
    if (firsts.size() > 1) options.parts[built.names[i]] = firsts;
  }
  built.joint = graph::derive(g, options);
  return built;
}

inline void fill_leaves(Interpreter& interpreter, const Built& built) {
  for (size_t i = 0; i < built.names.size(); ++i) {
    const int32_t value = interpreter.joint().find(built.names[i]);
    if (value >= 0) fill(interpreter.tensor(value), i + 1, built.operands[i]);
  }
}

// Bits of the operands that can be trained.
inline uint32_t trainable(const Case& c) {
  uint32_t bits = 0;
  for (size_t i = 0; i < c.in.size(); ++i)
    if (c.in[i].kind == 'T' || c.in[i].kind == 'P') bits |= 1u << i;
  if (c.op == "embedding") bits &= 1u;
  if (c.op == "where") bits &= ~1u;
  if (c.op == "normalize") bits &= ~6u;  // statistics
  return bits;
}

}  // namespace cairn::conformance
