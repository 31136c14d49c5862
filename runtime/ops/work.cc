// Work of one run of an op, for the analytic cost model. Products count exactly (a multiply-add is two
// operations); everything else is bound by its bytes, so a rough count per element is enough.
#include "runtime/ops/ops.h"

namespace cairn::ops {
namespace {

double elements(std::span<const TensorDesc> list, size_t i) {
  return i < list.size() ? static_cast<double>(list[i].shape.elements()) : 0.0;
}

double last(const TensorDesc& d) { return static_cast<double>(d.shape.last()); }

// Two operations per pair of positions and channel of y, times the number of such products.
double attention_flops(const TensorDesc& y, const Attrs* attrs, double products) {
  const double t = static_cast<double>(y.shape[1]);
  const bool causal = attrs == nullptr || attrs->integer("causal", 1) != 0;
  const double pairs = causal ? t * (t + 1) / 2 : t * t;
  return 2 * products * static_cast<double>(y.shape[0]) * pairs * last(y);
}

using In = std::span<const TensorDesc>;

double flops(const OpRow& row, In in, In out, const Attrs* attrs) {
  switch (row.code) {
    case OpCode::k_linear:
      return 2 * elements(out, 0) * last(in[0]) + 8 * elements(out, 1);
    case OpCode::k_linear_grad_input: {
      const bool slope = in.size() > 2 && in[2].shape.rank > 0;
      return 2 * elements(in, 0) * last(out[0]) + (slope ? 8 * elements(in, 2) : 0);
    }
    case OpCode::k_linear_grad_weight:
      return 2 * elements(in, 0) * last(in[1]) + elements(in, 1);
    case OpCode::k_linear_cross_entropy:
      return 2 * elements(in, 0) * static_cast<double>(in[1].shape[0]);
    case OpCode::k_linear_cross_entropy_grad: {
      const bool weight_gradient = out.size() > 3 && out[3].shape.rank == 2;
      return (weight_gradient ? 6 : 4) * elements(in, 0) * static_cast<double>(in[1].shape[0]);
    }
    case OpCode::k_attention:
      return attention_flops(out[0], attrs, 2);
    // Scores again, dp, dv, dq, dk.
    case OpCode::k_attention_grad:
      return attention_flops(in[0], attrs, 5);
    case OpCode::k_reshape:
      return 0;
    case OpCode::k_adamw:
    case OpCode::k_adamw_gated:
      return 16 * elements(in, 0);
    default:
      break;
  }
  double largest = 0;
  for (size_t i = 0; i < in.size(); ++i) largest = std::max(largest, elements(in, i));
  for (size_t i = 0; i < out.size(); ++i) largest = std::max(largest, elements(out, i));
  const bool exact = row.tolerance == Tolerance::EXACT;  // moves only
  return exact ? 0 : 8 * largest;
}

// Bytes read and written. A lookup reads the rows it takes, not its whole table.
double traffic(const OpRow& row, In in, In out) {
  if (row.is(ALIAS)) return 0;
  double sum = 0;
  const auto add = [&](In list) {
    for (const TensorDesc& d : list) sum += static_cast<double>(d.bytes());
  };
  if (row.code == OpCode::k_embedding) {
    add(in.subspan(1));
    add(out);
    add(out);
    return sum;
  }
  add(in);
  add(out);
  if (row.code == OpCode::k_adamw || row.code == OpCode::k_adamw_gated)
    add(out.first(std::min<size_t>(out.size(), 3)));  // p, m, v are read as well
  return sum;
}

}  // namespace

Work work(const OpRow& row, std::span<const TensorDesc> in, std::span<const TensorDesc> out,
          const Attrs* attrs) {
  return {flops(row, in, out, attrs), traffic(row, in, out)};
}

}  // namespace cairn::ops
