// Work of one run of an op, for the analytic cost model. Products count exactly (a multiply-add is two
// operations); everything else is bound by its bytes, so a rough count per element is enough.
#include "runtime/ops/work.h"

#include <algorithm>

namespace cairn::ops {
namespace {

constexpr double kPerElement = 8;   // operations, of an op that is not a product
constexpr double kPerUpdated = 16;  // of an optimizer
// Of a value of a weight in blocks, which a product decodes on the way. Measured on the AMX tiles it is more, with AVX2 less.
constexpr double kPerDecoded = 32;

double elements(Descs list, size_t i) {
  return i < list.size() ? static_cast<double>(list[i].shape.elements()) : 0.0;
}

double last(const TensorDesc& d) { return static_cast<double>(d.shape.last()); }

double bytes(Descs list) {
  double sum = 0;
  for (const TensorDesc& d : list) sum += static_cast<double>(d.bytes());
  return sum;
}

// Every operand once; what is updated in place is read as well as written.
double traffic(const OpRow& row, Descs in, Descs out) {
  if (row.is(ALIAS)) return 0;
  double sum = bytes(in) + bytes(out);
  for (size_t i = 0; i < out.size(); ++i)
    if (row.outputs[i].role == OperandRole::kState && out[i].shape.rank > 0) sum += bytes(out.subspan(i, 1));
  return sum;
}

// What a product adds that reads weight `i` in blocks.
double decoding(Descs in, size_t i) {
  const bool blocks = in[i].packed_bytes == 0 && format(in[i].dtype).read == Read::kDequantised;
  return blocks ? kPerDecoded * elements(in, i) : 0;
}

// Rows and keys that meet: what sequences, lengths and a position say is not known, and counts as if all met.
double attention_pairs(double rows, double keys, const Attrs* attrs) {
  const bool causal = attrs == nullptr || attrs->integer("causal", 1) != 0;
  const double all = causal && keys == rows ? rows * (rows + 1) / 2 : rows * keys;
  if (attrs == nullptr || !attrs->has("window")) return all;
  const double w = std::min(std::max(rows, keys), static_cast<double>(attrs->integer("window")));
  if (keys != rows) return std::min(all, rows * (causal ? w : 2 * w - 1));
  return causal ? rows * w - w * (w - 1) / 2 : rows * (2 * w - 1) - w * (w - 1);
}

// Of attention, whose q is operand `q`: two operations per pair and channel of y, times the number of such products.
// Operands that a call leaves out take no bytes, but for those that the row has had from the beginning.
Work attention_work(const OpRow& row, Descs in, Descs out, const Attrs* attrs, size_t q, double products) {
  const TensorDesc& y = q == 0 ? out[0] : in[0];
  const bool packed = q + 1 >= in.size() || in[q + 1].shape.rank != 3;
  const auto rows = static_cast<double>(y.shape[1]);
  const double keys = packed ? rows : static_cast<double>(in[q + 1].shape[1]);
  const size_t early_in = q == 0 ? 3 : 6, early_out = 3;
  double moved =
      traffic(row, in.first(std::min(in.size(), early_in)), out.first(std::min(out.size(), early_out)));
  const auto add = [&](Descs list, size_t from) {
    for (size_t i = from; i < list.size(); ++i)
      if (list[i].shape.rank > 0) moved += static_cast<double>(list[i].bytes());
  };
  add(in, early_in);
  add(out, early_out);
  const double flops =
      2 * products * static_cast<double>(y.shape[0]) * attention_pairs(rows, keys, attrs) * last(y);
  return {flops, moved};
}

}  // namespace

// A lookup reads the rows it takes, not all of its table.
Work work_lookup(const OpRow&, Descs in, Descs out, const Attrs*) {
  return {0, bytes(in.subspan(1)) + 2 * bytes(out)};
}

// The rows alone, whatever the length of the cache.
Work work_append(const OpRow&, Descs in, Descs, const Attrs*) { return {0, 2 * bytes(in.subspan(1))}; }

Work work_linear(const OpRow& row, Descs in, Descs out, const Attrs*) {
  return {2 * elements(out, 0) * last(in[0]) + kPerElement * elements(out, 1) + decoding(in, 1),
          traffic(row, in, out)};
}

Work work_matmul(const OpRow& row, Descs in, Descs out, const Attrs* attrs) {
  const bool transposed = attrs != nullptr && attrs->integer("transpose_a") != 0;
  const double k = static_cast<double>(in[0].shape[transposed ? -2 : -1]);
  return {2 * elements(out, 0) * k, traffic(row, in, out)};
}

Work work_linear_grad_input(const OpRow& row, Descs in, Descs out, const Attrs*) {
  const bool derivative = in.size() > 2 && in[2].shape.rank > 0;
  return {
      2 * elements(in, 0) * last(out[0]) + (derivative ? kPerElement * elements(in, 2) : 0) + decoding(in, 1),
      traffic(row, in, out)};
}

Work work_linear_grad_weight(const OpRow& row, Descs in, Descs out, const Attrs*) {
  return {2 * elements(in, 0) * last(in[1]) + elements(in, 1), traffic(row, in, out)};
}

Work work_head(const OpRow& row, Descs in, Descs out, const Attrs*) {
  return {2 * elements(in, 0) * static_cast<double>(in[1].shape[0]) + decoding(in, 1), traffic(row, in, out)};
}

Work work_head_grad(const OpRow& row, Descs in, Descs out, const Attrs*) {
  const bool weight_gradient = out.size() > 3 && out[3].shape.rank == 2;
  return {
      (weight_gradient ? 6 : 4) * elements(in, 0) * static_cast<double>(in[1].shape[0]) + 2 * decoding(in, 1),
      traffic(row, in, out)};
}

Work work_head_part(const OpRow& row, Descs in, Descs out, const Attrs*) {
  const bool weight_gradient = out.size() > 1 && out[1].shape.rank == 2;
  return {
      (weight_gradient ? 6 : 4) * elements(in, 0) * static_cast<double>(in[1].shape[0]) + 2 * decoding(in, 1),
      traffic(row, in, out)};
}

Work work_attention(const OpRow& row, Descs in, Descs out, const Attrs* attrs) {
  return attention_work(row, in, out, attrs, 0, 2);
}

// Scores again, dp, dv, dq, dk.
Work work_attention_grad(const OpRow& row, Descs in, Descs out, const Attrs* attrs) {
  return attention_work(row, in, out, attrs, 1, 5);
}

// Every number that a convolution makes is a product with the weights of its output.
Work work_conv(const OpRow& row, Descs in, Descs out, const Attrs*) {
  const auto outputs = static_cast<double>(in[1].shape[0]);
  return {2 * elements(out, 0) * elements(in, 1) / outputs, traffic(row, in, out)};
}

Work work_conv_transpose(const OpRow& row, Descs in, Descs out, const Attrs*) {
  const auto outputs = static_cast<double>(in[1].shape[0]);
  return {2 * elements(in, 0) * elements(in, 1) / outputs, traffic(row, in, out)};
}

Work work_conv_grad_weight(const OpRow& row, Descs in, Descs out, const Attrs*) {
  return {2 * elements(in, 1) * elements(out, 0) / last(in[1]), traffic(row, in, out)};
}

// A product of H steps for each gate, of lstm, gru and their gradients, whose first outputs say how many there are.
Work work_recurrent(const OpRow& row, Descs in, Descs out, const Attrs*) {
  double gates = 0, weight = 1;
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i].shape.rank == 3) gates = std::max(gates, elements(in, i));
    if (row.inputs[i].role == OperandRole::kWeight) weight = last(in[i]);
  }
  return {(2 * weight + kPerElement) * gates, traffic(row, in, out)};
}

Work work_pair_loss(const OpRow& row, Descs in, Descs out, const Attrs*) {
  const auto rows = static_cast<double>(in[0].shape[0]);
  return {2 * elements(in, 0) * rows + kPerElement * rows * rows, traffic(row, in, out)};
}

Work work_pair_loss_grad(const OpRow& row, Descs in, Descs out, const Attrs*) {
  const auto rows = static_cast<double>(in[0].shape[0]);
  return {6 * elements(in, 0) * rows + kPerElement * rows * rows, traffic(row, in, out)};
}

// Newton-Schulz steps are three products each, on the smaller side of a matrix.
Work work_update(const OpRow& row, Descs in, Descs out, const Attrs* attrs) {
  const double steps = attrs == nullptr ? 0 : static_cast<double>(attrs->integer("ns_steps"));
  const double columns = last(in[0]), side = std::min(columns, elements(in, 0) / columns);
  const double products = 4 * side * elements(in, 0) + 2 * side * side * side;
  return {kPerUpdated * elements(in, 0) + steps * products, traffic(row, in, out)};
}

Work work(const OpRow& row, Descs in, Descs out, const Attrs* attrs) {
  if (row.work != nullptr) return row.work(row, in, out, attrs);
  if (row.tolerance == Tolerance::EXACT) return {0, traffic(row, in, out)};  // moves only
  double largest = 0;
  for (size_t i = 0; i < in.size(); ++i) largest = std::max(largest, elements(in, i));
  for (size_t i = 0; i < out.size(); ++i) largest = std::max(largest, elements(out, i));
  return {kPerElement * largest, traffic(row, in, out)};
}

}  // namespace cairn::ops
