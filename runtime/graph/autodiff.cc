// Reverse-mode differentiation of the joint graph's forward part. Rules come from the op table; this file
// walks ops backwards, sums what meets, and sends parameters' gradients into their accumulators.
#include <algorithm>

#include "runtime/graph/joint_builder.h"
#include "runtime/graph/shapes.h"
#include "runtime/ops/gradients.h"

namespace cairn::graph {
namespace {

using ops::OpCode;

class Autodiff final : public ops::GradientEmitter {
 public:
  explicit Autodiff(JointBuilder& builder) : b_(builder) {}

  void run() {
    JointGraph& joint = b_.joint;
    forward_ = std::move(joint.ops());
    joint.ops().clear();
    for (size_t i = 0; i < forward_.size(); ++i) forward_[i].forward = static_cast<int32_t>(i);
    find_differentiable();
    seed();
    std::vector<bool> replaced(forward_.size());
    for (size_t i = forward_.size(); i-- > 0;) {
      op_ = &forward_[i];
      row_ = &ops::row(op_->code);
      outs_ = op_->out;
      replaces_ = false;
      bool reached = false;
      for (int32_t& out : outs_) reached = reached || (out >= 0 && has_gradient(out));
      bool wanted = false;
      for (int32_t in : op_->in) wanted = wanted || (in >= 0 && differentiable_[in]);
      if (!reached || !wanted) continue;
      check_rule();
      for (int32_t out : outs_)
        if (out >= 0 && !is_seed(out)) sum(out);
      rule_start_ = static_cast<int32_t>(b_.joint.ops().size());
      row_->gradient(*this);
      replaced[i] = replaces_;
    }
    assemble(replaced);
  }

  // ---- ops::GradientEmitter
  ops::Id in(int i) const override { return i < static_cast<int>(op_->in.size()) ? op_->in[i] : ops::kNone; }
  ops::Id out(int i) const override { return i < static_cast<int>(outs_.size()) ? outs_[i] : ops::kNone; }
  const Attrs& attrs() const override { return op_->attrs; }
  const TensorDesc& desc(ops::Id value) const override { return b_.desc(value); }
  ops::Id grad_out(int i) const override {
    const ops::Id value = out(i);
    if (value < 0) return ops::kNone;
    auto it = contributions_.find(value);
    return it == contributions_.end() || it->second.empty() ? ops::kNone : it->second.front();
  }
  bool wants(int i) const override {
    const ops::Id value = in(i);
    return value >= 0 && differentiable_[value];
  }

  std::vector<ops::Id> emit(OpCode code, std::vector<ops::Id> inputs, Attrs op_attrs,
                            uint32_t wanted) override {
    const ops::OpRow& row = ops::row(code);
    JointOp node;
    node.code = code;
    node.name = unique_op(cat(op_->name, ".", row.name == row_->name ? "grad" : row.name));
    node.attrs = std::move(op_attrs);
    node.backward = true;
    node.region = op_->region;
    node.forward = op_->forward;
    node.amp_rule = op_->amp_rule;
    // What is summed up for an effective value is of the effective batch; what its gradient goes into is of a micro-batch.
    node.part = sums_ && op_->code == OpCode::k_effective ? Part::kLoss : op_->part;
    inputs.resize(row.inputs.size(), -1);
    // An operand that was added to the row later ("~") is dropped where it is left out, as in the forward op.
    while (!inputs.empty() && inputs.back() < 0 && is_later(row.inputs[inputs.size() - 1].name))
      inputs.pop_back();
    std::vector<TensorDesc> descs(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      require(inputs[i] >= 0 || row.inputs[i].optional, Code::kInternal, node.name, ": input '",
              row.inputs[i].name, "' is missing");
      if (inputs[i] >= 0) descs[i] = b_.desc(inputs[i]);
    }
    node.in = std::move(inputs);
    const std::vector<TensorDesc> made = infer_shapes(b_.forward, row, node.attrs, node.in, descs);
    node.out.assign(row.outputs.size(), -1);
    // A fused loss computes the forward op's outputs as well and takes its place.
    // But where the loss goes on: what follows needs it before there is a gradient of it.
    const bool replaces = row_->is(ops::FUSED_LOSS) && row.outputs.size() > 2 &&
                          row.outputs[0].name == "loss" && is_seed(op_->out[0]);
    for (size_t i = 0; i < made.size(); ++i) {
      if (const int32_t same = replaces ? made_before(row.outputs[i].name) : -1; same >= 0) {
        node.out[i] = same;
        continue;
      }
      if (row.outputs[i].optional && !(wanted >> i & 1u)) continue;
      node.out[i] = b_.add_value(cat(node.name, ".", row.outputs[i].name), made[i], Role::kBackward, kNone,
                                 op_->region);
      made_by_[node.out[i]] = {static_cast<int32_t>(b_.joint.ops().size()), static_cast<int32_t>(i)};
    }
    while (node.out.back() < 0 && row.outputs[node.out.size() - 1].later) node.out.pop_back();
    replaces_ = replaces_ || replaces;
    if (row.is(ops::ALIAS)) b_.joint.values[node.out[0]].alias_of = node.in[0];
    std::vector<ops::Id> result = node.out;
    result.resize(row.outputs.size(), kNone);
    b_.joint.ops().push_back(std::move(node));
    return result;
  }

  void give(int i, ops::Id grad) override {
    const ops::Id target = in(i);
    if (grad < 0 || target < 0 || !differentiable_[target]) return;
    if (b_.joint.values[target].role == Role::kParameter) {
      accumulate(target, grad);
      return;
    }
    if (b_.desc(grad).dtype != b_.desc(target).dtype)
      grad =
          emit(OpCode::k_cast, {grad}, {{"dtype", std::string(dtype_name(b_.desc(target).dtype))}}, ~0u)[0];
    contributions_[target].push_back(grad);
  }

 private:
  // The value that the forward op whose rule runs makes as its output of this name; kNone: it makes none.
  int32_t made_before(std::string_view name) const {
    for (size_t i = 0; i < op_->out.size(); ++i)
      if (row_->outputs[i].name == name) return op_->out[i];
    return kNone;
  }
  bool is_later(std::string_view operand) const {
    return std::ranges::any_of(row_->inputs,
                               [&](const ops::Operand& o) { return o.later && o.name == operand; });
  }
  bool is_seed(int32_t value) const { return value == seeded_; }
  bool has_gradient(int32_t value) const {
    auto it = contributions_.find(value);
    return is_seed(value) || (it != contributions_.end() && !it->second.empty());
  }

  void find_differentiable() {
    differentiable_.assign(b_.joint.values.size(), false);
    for (size_t v = 0; v < b_.joint.values.size(); ++v)
      differentiable_[v] = b_.trainable(static_cast<int32_t>(v));
    for (const JointOp& op : forward_) {
      bool any = false;
      for (int32_t v : op.in) any = any || (v >= 0 && differentiable_[v]);
      const ops::OpRow& row = ops::row(op.code);
      for (int32_t v : op.out)
        if (v >= 0)
          differentiable_[v] = any && is_float(b_.desc(v).dtype) && !row.is(ops::FLAT) &&
                               !(row.is(ops::LOSS) && v == op.out[1]);  // a denominator
    }
  }

  // Begins backward at the loss, with d loss = 1 or the loss scale. A fused loss has a gradient op that starts from
  // that itself; any other scalar gets it as its gradient.
  void seed() {
    int32_t loss = b_.joint.loss;
    const JointOp* producer = nullptr;
    for (const JointOp& op : forward_)
      if (!op.out.empty() && op.out[0] == loss) producer = &op;
    require(producer != nullptr, Code::kInternal, "the loss has no producer");
    const int32_t scale = b_.joint.loss_scale;
    if (ops::row(producer->code).is(ops::FUSED_LOSS)) {
      seeded_ = loss;
      if (scale >= 0) contributions_[loss] = {scale};
      return;
    }
    op_ = producer;
    row_ = &ops::row(producer->code);
    const TensorDesc desc = b_.desc(loss);
    const Attrs as_loss = {{"dtype", std::string(dtype_name(desc.dtype))}};
    if (scale >= 0) {
      contributions_[loss].push_back(
          desc.dtype == DType::kF64 ? scale : emit(OpCode::k_cast, {scale}, as_loss, ~0u)[0]);
      return;
    }
    std::vector<int64_t> dims(desc.shape.span().begin(), desc.shape.span().end());
    contributions_[loss].push_back(
        emit(OpCode::k_fill, {},
             {{"shape", dims}, {"value", 1.0}, {"dtype", std::string(dtype_name(desc.dtype))}}, ~0u)[0]);
  }

  void check_rule() const {
    require(row_->gradient != nullptr, Code::kUnsupported, "op '", row_->name, "' (", op_->name,
            ") has no gradient, but the loss reaches parameters through it");
    if (op_->code == OpCode::k_custom) {
      const CustomOp& custom = b_.forward.customs()[op_->attrs.integer("custom")];
      require(static_cast<bool>(custom.backward), Code::kUnsupported, "custom op '", custom.name, "' (",
              op_->name, ") has no backward callback, but the loss reaches parameters through it");
    }
    // A sum has a denominator, and nobody but the host knows which one all of them are divided by.
    if (row_->is(ops::FUSED_LOSS))
      require(is_seed(op_->out[0]) || b_.joint.weight >= 0, Code::kUnsupported, "op '", row_->name, "' (",
              op_->name,
              ") goes into the graph's loss, which has no denominator: give freeze the weight that all of "
              "its sums are divided by, such as '",
              op_->name,
              ".weight'; or join the operands with concat into one, "
              "and weigh rows by its weights");
  }

  // Several consumers: their gradients are added, in the order they were found.
  void sum(int32_t value) {
    auto it = contributions_.find(value);
    if (it == contributions_.end() || it->second.size() < 2) return;
    std::vector<int32_t> parts = std::move(it->second);
    int32_t total = parts[0];
    sums_ = true;
    for (size_t i = 1; i < parts.size(); ++i) total = emit(OpCode::k_add, {total, parts[i]}, {}, ~0u)[0];
    sums_ = false;
    contributions_[value] = {total};
  }

  int32_t gradient_of(int32_t parameter) {
    if (auto it = gradients_.find(parameter); it != gradients_.end()) return it->second;
    const JointValue from = b_.joint.values[parameter];
    // As the graph declares it, whatever the parameter is stored as.
    const TensorDesc& desc = b_.forward.values()[from.source].desc;
    const int32_t id = b_.add_value(from.name + "/gradient", desc, Role::kGradient, from.source, from.region);
    return gradients_[parameter] = id;
  }

  // Sends a gradient into the parameter's accumulator: directly, if its maker can add and this rule made it
  // (an older one may have other readers).
  void accumulate(int32_t parameter, int32_t grad) {
    const int32_t into = gradient_of(parameter);
    if (auto it = made_by_.find(grad); it != made_by_.end() && it->second.first >= rule_start_) {
      const auto [op_index, out_index] = it->second;
      JointOp& maker = b_.joint.ops()[op_index];
      if (ops::row(maker.code).outputs[out_index].accumulates && b_.desc(grad) == b_.desc(into)) {
        maker.out[out_index] = into;
        maker.accumulates |= 1u << out_index;
        made_by_.erase(it);
        dead_.push_back(grad);
        return;
      }
    }
    JointOp node;
    node.code = OpCode::k_accumulate;
    node.name = unique_op(b_.joint.values[parameter].name + ".accumulate");
    node.backward = true;
    node.region = op_->region;
    node.forward = op_->forward;
    node.part = op_->part;
    node.in = {grad};
    node.out = {into};
    node.accumulates = 1;
    b_.joint.ops().push_back(std::move(node));
  }

  std::string unique_op(std::string name) {
    const int n = op_names_[name]++;
    return n == 0 ? name : cat(name, "_", n + 1);
  }

  void assemble(const std::vector<bool>& replaced) {
    JointGraph& joint = b_.joint;
    std::vector<JointOp> backward = std::move(joint.ops());
    joint.ops().clear();
    for (size_t i = 0; i < forward_.size(); ++i)
      if (!replaced[i]) joint.ops().push_back(std::move(forward_[i]));
    joint.backward_begin = static_cast<int32_t>(joint.ops().size());
    std::vector<bool> written(joint.values.size());
    for (JointOp& op : backward) {
      for (size_t i = 0; i < op.out.size(); ++i)
        if (op.accumulates >> i & 1u && !written[op.out[i]]) {
          written[op.out[i]] = true;
          op.first_writer |= 1u << i;
        }
      joint.ops().push_back(std::move(op));
    }
    // Values whose place an accumulator took are no more.
    std::vector<bool> dead(joint.values.size());
    for (int32_t v : dead_) dead[v] = true;
    b_.drop_values(dead);
  }

  JointBuilder& b_;
  std::vector<JointOp> forward_;
  const JointOp* op_ = nullptr;
  const ops::OpRow* row_ = nullptr;
  std::vector<int32_t> outs_;
  bool replaces_ = false, sums_ = false;
  int32_t rule_start_ = 0;
  int32_t seeded_ = -1;
  std::vector<bool> differentiable_;
  std::unordered_map<int32_t, std::vector<int32_t>> contributions_;
  std::unordered_map<int32_t, int32_t> gradients_;
  std::unordered_map<int32_t, std::pair<int32_t, int32_t>> made_by_;  // value -> (op, output)
  std::unordered_map<std::string, int> op_names_;
  std::vector<int32_t> dead_;
};

}  // namespace

void add_backward(JointBuilder& builder) { Autodiff(builder).run(); }

}  // namespace cairn::graph
