#include "runtime/compile/cost_query.h"

#include <set>

#include "runtime/base/checked.h"

namespace cairn::engine {
namespace {

constexpr size_t kMaxSignature = 4096;  // the most that the profile's reader accepts

// What came to the op's row later and is left out has no word, so that profiles from before know the op.
std::string operand_text(const std::vector<TensorDesc>& list, uint32_t present,
                         const std::vector<ops::Operand>& row) {
  std::string text;
  size_t count = list.size();
  while (count > 0 && (present >> (count - 1) & 1u) == 0 && count <= row.size() && row[count - 1].later)
    --count;
  for (size_t i = 0; i < count; ++i) {
    text += i == 0 ? "" : ", ";
    if ((present >> i & 1u) == 0) {
      text += '-';
      continue;
    }
    text += to_string(list[i]);
    if (list[i].packed_bytes > 0) text += cat(" packed ", list[i].packed_bytes);
  }
  return text;
}

struct AttrText {
  std::string& out;
  void operator()(const std::vector<int64_t>& list) const {
    for (size_t i = 0; i < list.size(); ++i) out += cat(i == 0 ? "" : " ", list[i]);
  }
  // What real numbers they are does not change the time.
  void operator()(const std::vector<double>& list) const { out += cat(list.size(), " reals"); }
  template <class T>
  void operator()(const T& value) const {
    append_text(out, value);
  }
};

std::string attr_text(const graph::JointGraph& joint, const Attrs& attrs) {
  std::string out;
  for (const auto& [name, value] : attrs.items()) {
    if (name == "rng" || name == "first") continue;  // the stream of random numbers does not change the time
    out += cat(' ', name, '=');
    if (name == "custom")  // the index is of this graph, and another graph may give it to another op
      out += joint.forward->customs()[static_cast<size_t>(attrs.integer("custom"))].name;
    else
      std::visit(AttrText{out}, value);
  }
  return out;
}

DType arithmetic(const Operands& operands) {
  for (const DType narrow : {DType::kBF16, DType::kF16})
    for (size_t i = 0; i < operands.in.size(); ++i)
      if ((operands.in_present >> i & 1u) != 0 && operands.in[i].dtype == narrow) return narrow;
  return DType::kF32;
}

void add_work(ops::Work& sum, ops::OpCode code, const std::vector<TensorDesc>& in,
              const std::vector<TensorDesc>& out) {
  const ops::Work work = ops::work(ops::row(code), in, out);
  sum.flops += work.flops;
  sum.bytes += work.bytes;
}

}  // namespace

costs::Query query_of(const graph::JointGraph& joint, const graph::JointOp& op) {
  return query_of(joint, op, Operands(joint, op));
}

costs::Query query_of(const graph::JointGraph& joint, const graph::JointOp& op, const Operands& operands) {
  costs::Query query;
  const ops::OpRow& row = ops::row(op.code);
  query.op = ops::name(op.code);
  query.dtype = arithmetic(operands);
  query.work = ops::work(row, operands.in, operands.out, &op.attrs);
  query.signature =
      cat(query.op, '(', operand_text(operands.in, operands.in_present, row.inputs), ") -> (",
          operand_text(operands.out, operands.out_present, row.outputs), ')', attr_text(joint, op.attrs));
  if (query.signature.size() > kMaxSignature) query.signature.resize(kMaxSignature);
  return query;
}

costs::Query optimizer_query(const graph::JointGraph& joint) {
  costs::Query query;
  query.op = costs::kOptimizerOp;
  int64_t tensors = 0, elements = 0;
  const TensorDesc scalar{DType::kF64, Shape{}};
  std::set<std::string> names;
  for (const graph::JointOp& op : joint.ops(graph::kUpdate)) {
    const auto described = [&](const std::vector<int32_t>& values) {
      std::vector<TensorDesc> descs;
      for (const int32_t v : values)
        if (v >= 0) descs.push_back(joint.values[static_cast<size_t>(v)].desc);
      return descs;
    };
    const std::vector<TensorDesc> in = described(op.in), out = described(op.out);
    tensors += 1;
    elements = checked_add(elements, out[update_op::kParameter].shape.elements());
    add_work(query.work, ops::OpCode::k_sum_squares, {in[update_op::kGrad]}, {scalar});
    add_work(query.work, ops::OpCode::k_update, in, out);
    names.insert(std::string(op.attrs.word("optimizer")));
  }
  names.erase("adamw");  // profiles without a name were measured with it
  query.signature = cat(query.op, '(', tensors, " tensors, ", elements, " elements");
  for (const std::string& name : names) query.signature += cat(", ", name);
  query.signature += ')';
  return query;
}

costs::Query host_query(const graph::JointGraph& joint) {
  costs::Query query;
  query.op = costs::kHostOp;
  int64_t inputs = 0, bytes = 0;
  for (const graph::JointValue& value : joint.values) {
    if (value.role != graph::Role::kInput) continue;
    inputs += 1;
    bytes = checked_add(bytes, value.desc.bytes());
  }
  query.work.bytes = 2 * static_cast<double>(bytes);
  query.signature = cat(query.op, '(', inputs, " inputs, ", bytes, " bytes)");
  return query;
}

}  // namespace cairn::engine
