// A weight that lookups and fused losses use, or products of experts, in parts: each of these ops becomes one for every part, in the
// order of the rows (experts).
// The host, the optimizer and checkpoints still see one parameter.
#include <algorithm>

#include "runtime/graph/joint_builder.h"

namespace cairn::graph {
namespace {

using ops::OpCode;

// Where such an op has the weight and its gradient; -1: it has none.
struct Use {
  OpCode code;
  int weight, gradient;
};
constexpr Use kUses[] = {{OpCode::k_embedding, 0, -1},
                         {OpCode::k_embedding_grad, -1, 0},
                         {OpCode::k_linear_cross_entropy, 1, -1},
                         {OpCode::k_linear_cross_entropy_grad, 1, 3},
                         {OpCode::k_grouped_linear, 1, -1},
                         {OpCode::k_grouped_linear_grad_input, 1, -1},
                         {OpCode::k_grouped_linear_grad_weight, -1, 0}};
// Positions of operands and outputs of the two loss ops.
constexpr size_t kX = 0, kTargets = 2, kWeights = 3, kScale = 5, kDx = 2, kDw = 3;
constexpr int kClassWeights = 4, kClassWeightsOfGrad = 6;

int32_t at(const std::vector<int32_t>& list, int i) {
  return i >= 0 && static_cast<size_t>(i) < list.size() ? list[static_cast<size_t>(i)] : -1;
}

// A loss that cannot be computed in parts of the vocabulary: with smoothing it needs the mean of a row's logits, or it has
// weights of classes, and a part sees neither.
bool needs_all_classes(const JointOp& op) {
  if (op.code == OpCode::k_linear_cross_entropy && at(op.in, kClassWeights) >= 0) return true;
  if (op.code == OpCode::k_linear_cross_entropy_grad && at(op.in, kClassWeightsOfGrad) >= 0) return true;
  return op.attrs.real("smoothing") != 0;
}

const Use* use_of(const JointOp& op, int32_t weight, int32_t gradient) {
  for (const Use& use : kUses) {
    if (use.code != op.code) continue;
    const bool reads = at(op.in, use.weight) == weight;
    const bool makes = gradient >= 0 && at(op.out, use.gradient) == gradient;
    if (reads || makes) return &use;
  }
  return nullptr;
}

class Slicer {
 public:
  Slicer(JointBuilder& builder, const ParameterSlot& slot, const std::vector<int64_t>& firsts)
      : b_(builder),
        joint_(builder.joint),
        weight_(slot.value),
        gradient_(slot.gradient),
        vocab_(b_.desc(weight_).shape[0]),
        firsts_(firsts) {
    weights_ = parts_of(weight_);
    if (gradient_ >= 0) gradients_ = parts_of(gradient_);
  }

  void run() {
    joint_.slices.push_back({weight_, weights_});
    if (gradient_ >= 0) joint_.slices.push_back({gradient_, gradients_});
    std::vector<JointOp> before = std::move(joint_.ops());
    joint_.ops().clear();
    int32_t backward = -1;
    for (size_t i = 0; i < before.size(); ++i) {
      if (static_cast<int32_t>(i) == joint_.backward_begin)
        backward = static_cast<int32_t>(joint_.ops().size());
      const JointOp& op = before[i];
      const Use* const use = use_of(op, weight_, gradient_);
      if (use == nullptr)
        joint_.ops().push_back(op);
      else if (use->code == OpCode::k_embedding)
        lookup(op);
      else if (use->code == OpCode::k_embedding_grad)
        lookup_gradient(op);
      else if (use->code == OpCode::k_grouped_linear)
        product(op, OpCode::k_grouped_linear_part, 4);
      else if (use->code == OpCode::k_grouped_linear_grad_input)
        product(op, use->code, 3);
      else if (use->code == OpCode::k_grouped_linear_grad_weight)
        product_gradient(op);
      else
        loss(op, use->code == OpCode::k_linear_cross_entropy_grad);
    }
    joint_.backward_begin = backward >= 0 ? backward : static_cast<int32_t>(joint_.ops().size());
  }

 private:
  int64_t rows(size_t k) const { return (k + 1 < firsts_.size() ? firsts_[k + 1] : vocab_) - firsts_[k]; }
  std::string range(size_t k) const { return cat('[', firsts_[k], ':', firsts_[k] + rows(k), ']'); }
  bool last(size_t k) const { return k + 1 == firsts_.size(); }

  std::vector<int32_t> parts_of(int32_t whole) {
    std::vector<int32_t> parts;
    for (size_t k = 0; k < firsts_.size(); ++k) {
      const JointValue of = joint_.values[static_cast<size_t>(whole)];
      TensorDesc desc = of.desc;
      desc.shape[0] = rows(k);
      parts.push_back(b_.add_value(cat(of.name, range(k)), desc, of.role, of.source, of.region));
    }
    return parts;
  }

  int32_t value(const JointOp& op, std::string_view name, const TensorDesc& desc) {
    return b_.add_value(cat(op.name, '/', name), desc, op.backward ? Role::kBackward : Role::kActivation,
                        kNone, op.region);
  }
  // names: of the attributes that go along.
  JointOp& add(const JointOp& op, OpCode code, const std::string& suffix,
               std::initializer_list<std::string_view> names, std::vector<int32_t> in,
               std::vector<int32_t> out) {
    JointOp part;
    part.code = code;
    part.name = cat(op.name, suffix);
    for (const std::string_view name : names)
      if (const AttrValue* given = op.attrs.find(name)) part.attrs.set(std::string(name), *given);
    part.in = std::move(in);
    part.out = std::move(out);
    part.backward = op.backward;
    part.part = op.part;
    part.region = op.region;
    part.amp_rule = op.amp_rule;
    joint_.ops().push_back(std::move(part));
    return joint_.ops().back();
  }
  void place(JointOp& part, size_t k) {
    part.attrs.set("first", firsts_[k]);
    part.attrs.set("vocab", vocab_);
  }

  void lookup(const JointOp& op) {
    int32_t y = -1;
    for (size_t k = 0; k < firsts_.size(); ++k) {
      const int32_t z = last(k) ? op.out[0] : value(op, range(k), b_.desc(op.out[0]));
      place(add(op, OpCode::k_embedding_part, range(k), {"dtype"}, {weights_[k], op.in[1], y}, {z}), k);
      y = z;
    }
  }

  void lookup_gradient(const JointOp& op) {
    for (size_t k = 0; k < firsts_.size(); ++k) {
      JointOp& part =
          add(op, OpCode::k_embedding_part_grad, range(k), {}, {op.in[0], op.in[1]}, {gradients_[k]});
      part.attrs.set("first", firsts_[k]);
      part.attrs.set("rows", rows(k));
      part.accumulates = op.accumulates;
      part.first_writer = op.first_writer;
    }
  }

  // Of experts. before: the operand that has the rows of the parts before.
  void product(const JointOp& op, OpCode code, size_t before) {
    int32_t y = -1;
    for (size_t k = 0; k < firsts_.size(); ++k) {
      const int32_t z = last(k) ? op.out[0] : value(op, range(k), b_.desc(op.out[0]));
      std::vector<int32_t> in = op.in;
      in.resize(before, -1);
      in[1] = weights_[k];
      in.push_back(y);
      add(op, code, range(k), {"transposed"}, std::move(in), {z}).attrs.set("first", firsts_[k]);
      y = z;
    }
  }

  // The first part begins the sums of the biases' gradient, which is in one piece.
  void product_gradient(const JointOp& op) {
    for (size_t k = 0; k < firsts_.size(); ++k) {
      JointOp& part = add(op, op.code, range(k), {"transposed"}, op.in, {gradients_[k], at(op.out, 1)});
      part.attrs.set("first", firsts_[k]);
      part.attrs.set("experts", rows(k));
      part.accumulates = op.accumulates | (k > 0 && at(op.out, 1) >= 0 ? 2u : 0u);
      part.first_writer = k == 0 ? op.first_writer : op.first_writer & ~2u;
    }
  }

  void loss(const JointOp& op, bool gradient) {
    const int32_t x = op.in[kX], targets = op.in[kTargets], weights = at(op.in, kWeights);
    const int64_t count = b_.desc(x).shape.rows();
    const TensorDesc sums{DType::kF64, Shape{count}}, open{DType::kF32, Shape{count, 64}};
    const DType type = b_.desc(x).dtype == DType::kF64 ? DType::kF64 : DType::kF32;
    int32_t seen = -1, sum = -1, rest = -1;
    for (size_t k = 0; k < firsts_.size(); ++k) {
      const int32_t now = value(op, cat("seen", range(k)), {type, Shape{count, 4}});
      place(add(op, OpCode::k_linear_cross_entropy_max, cat("/max", range(k)),
                {"ignore_index", "chunk", "accuracy", "scale", "softcap"}, {x, weights_[k], targets, seen},
                {now}),
            k);
      seen = now;
    }
    for (size_t k = 0; k < firsts_.size(); ++k) {
      const int32_t total = value(op, cat("sum", range(k)), sums);
      const int32_t left = last(k) ? -1 : value(op, cat("open", range(k)), open);
      place(add(op, OpCode::k_linear_cross_entropy_sum, cat("/sum", range(k)), {"chunk", "scale", "softcap"},
                {x, weights_[k], seen, sum, rest}, {total, left}),
            k);
      sum = total;
      rest = left;
    }
    const int hits = gradient ? 4 : 2;
    add(op, OpCode::k_linear_cross_entropy_loss, "/loss", {"ignore_index", "accuracy"},
        {seen, sum, targets, weights}, {op.out[0], at(op.out, 1), at(op.out, hits), at(op.out, hits + 1)})
        .attrs.set("vocab", vocab_);
    if (gradient) gradients(op, {x, targets, weights, seen, sum, at(op.in, kScale)});
  }

  struct Handed {
    int32_t x, targets, weights, seen, sum, scale;
  };
  void gradients(const JointOp& op, const Handed& h) {
    const int32_t dx = at(op.out, kDx), dw = at(op.out, kDw);
    TensorDesc wide = b_.desc(h.x);
    if (wide.dtype != DType::kF64) wide.dtype = DType::kF32;
    const bool narrow = dx >= 0 && b_.desc(dx) != wide;
    int32_t before = -1;
    for (size_t k = 0; k < firsts_.size(); ++k) {
      const int32_t now = dx < 0 ? -1 : last(k) && !narrow ? dx : value(op, cat("dx", range(k)), wide);
      JointOp& part = add(op, OpCode::k_linear_cross_entropy_part, range(k),
                          {"ignore_index", "chunk", "scale", "softcap"},
                          {h.x, weights_[k], h.targets, h.weights, h.seen, h.sum, h.scale, before},
                          {now, dw >= 0 ? gradients_[k] : -1});
      place(part, k);
      part.accumulates = (op.accumulates >> kDw & 1u) << 1;
      part.first_writer = (op.first_writer >> kDw & 1u) << 1;
      before = now;
    }
    if (narrow)
      add(op, OpCode::k_cast, "/dx", {}, {before}, {dx})
          .attrs.set("dtype", std::string(dtype_name(b_.desc(dx).dtype)));
  }

  JointBuilder& b_;
  JointGraph& joint_;
  const int32_t weight_, gradient_;
  const int64_t vocab_;
  const std::vector<int64_t> firsts_;
  std::vector<int32_t> weights_, gradients_;
};

}  // namespace

bool slices_by_rows(const JointGraph& joint, const ParameterSlot& slot) {
  if (slot.fused) return false;
  if (format(joint.values[static_cast<size_t>(slot.value)].desc.dtype).read == Read::kDequantised)
    return false;
  for (const JointValue& value : joint.values)
    if (value.alias_of >= 0 && (value.alias_of == slot.value || value.alias_of == slot.gradient))
      return false;
  bool any = false;
  for (const JointOp& op : joint.ops()) {
    const auto uses = [&](const std::vector<int32_t>& list, int32_t v) {
      return v < 0 ? 0 : std::count(list.begin(), list.end(), v);
    };
    const auto all = uses(op.in, slot.value) + uses(op.out, slot.value) + uses(op.in, slot.gradient) +
                     uses(op.out, slot.gradient);
    if (all == 0) continue;
    const Use* const use = use_of(op, slot.value, slot.gradient);
    if (use == nullptr || needs_all_classes(op)) return false;
    // Parts add to the gradient of a bias one after the other, which they can to a parameter's alone.
    if (op.code == OpCode::k_grouped_linear_grad_weight && at(op.out, 1) >= 0 && (op.accumulates & 2u) == 0)
      return false;
    const bool weight = at(op.in, use->weight) == slot.value;
    const bool gradient = slot.gradient >= 0 && at(op.out, use->gradient) == slot.gradient;
    if (all != (weight ? 1 : 0) + (gradient ? 1 : 0)) return false;
    // A gradient that is a value of its own would have to be put together again.
    if (!gradient && at(op.out, use->gradient) >= 0) return false;
    if (gradient && use->weight >= 0 && !weight) return false;
    any = true;
  }
  return any;
}

void slice_parameters(JointBuilder& builder, const PartRows& parts) {
  const std::vector<ParameterSlot> slots = builder.joint.parameters;
  for (const ParameterSlot& slot : slots) {
    const auto wanted = parts.find(builder.joint.values[static_cast<size_t>(slot.value)].name);
    if (wanted != parts.end() && wanted->second.size() > 1 && slices_by_rows(builder.joint, slot))
      Slicer(builder, slot, wanted->second).run();
  }
}

}  // namespace cairn::graph
