#include "runtime/compile/in_place.h"

#include <algorithm>
#include <functional>

#include "runtime/base/checked.h"

namespace cairn::engine {
namespace {

using graph::JointOp;

class Pairs {
 public:
  explicit Pairs(Lowered plan) : plan_(std::move(plan)), problem_(plan_.problem), joint_(*plan_.joint) {
    const size_t values = problem_.values.size();
    maker_.assign(values, -1);
    readers_.resize(values);
    stand_in_.assign(values, -1);
    gone_.assign(problem_.ops.size(), false);
    for (int32_t o = 0; o < count(); ++o) {
      for (const int32_t v : op(o).inputs) readers_[at(v)].push_back(o);
      for (const int32_t v : op(o).outputs) maker_[at(v)] = o;
    }
  }

  std::optional<Lowered> run() {
    int64_t pairs = 0;
    for (int32_t b = 0; b < count(); ++b) pairs += joins(b) ? 1 : 0;
    if (pairs == 0) return {};
    compact();
    plan_.in_place_ops += pairs;
    return std::move(plan_);
  }

 private:
  int32_t count() const { return static_cast<int32_t>(problem_.ops.size()); }
  plan::Op& op(int32_t o) { return problem_.ops[at(o)]; }
  const plan::Op& op(int32_t o) const { return problem_.ops[at(o)]; }
  bool persistent(int32_t v) const {
    return problem_.values[at(v)].persistent || problem_.values[at(v)].home >= 0;
  }
  graph::Role role(int32_t joint_value) const { return joint_.values[at(joint_.storage(joint_value))].role; }
  int32_t stored(int32_t joint_value) const { return plan_.problem_value[at(joint_.storage(joint_value))]; }
  const TensorDesc& desc(int32_t joint_value) const { return joint_.values[at(joint_value)].desc; }

  // Joins op b, which is still a single joint op, to the op that makes an input which b can overwrite.
  bool joins(int32_t b) {
    if (plan_.problem_op[at(b)].empty()) return false;  // the op that stands for norm and update
    if (plan_.tiles_of(b) != nullptr) return false;
    const JointOp& node = joint_.ops()[at(plan_.problem_op[at(b)].front())];
    const ops::OpRow& row = ops::row(node.code);
    std::vector<int32_t> candidates;  // the one made last comes first: fewer ops lie between
    for (size_t i = 0; i < node.in.size() && i < row.inputs.size(); ++i)
      if (row.inputs[i].in_place && node.in[i] >= 0) add(candidates, stored(node.in[i]));
    std::stable_sort(candidates.begin(), candidates.end(),
                     [&](int32_t x, int32_t y) { return maker_[at(x)] > maker_[at(y)]; });
    return std::any_of(candidates.begin(), candidates.end(), [&](int32_t d) {
      return may_replace(d, b, node, row) && join(maker_[at(d)], b, d, stored(node.out[0]));
    });
  }

  // Only b reads d, element by element where it writes.
  bool may_replace(int32_t d, int32_t b, const JointOp& node, const ops::OpRow& row) const {
    if (node.out.empty() || node.out[0] < 0) return false;
    const int32_t made = stored(node.out[0]);
    if (persistent(d) || persistent(made) || !holds(op(b).outputs, made) || maker_[at(d)] < 0 ||
        plan_.tiles_of(maker_[at(d)]) != nullptr)
      return false;
    if (readers_[at(d)] != std::vector<int32_t>{b} ||
        problem_.values[at(d)].bytes != problem_.values[at(made)].bytes)
      return false;
    const TensorDesc& to = desc(node.out[0]);
    for (size_t i = 0; i < node.in.size(); ++i) {
      if (node.in[i] < 0 || stored(node.in[i]) != d) continue;
      const TensorDesc& from = desc(node.in[i]);
      if (!row.inputs[i].in_place || from.shape.elements() != to.shape.elements() ||
          from.bytes() != to.bytes())
        return false;
    }
    return true;
  }

  bool join(int32_t a, int32_t b, int32_t d, int32_t made) {
    const bool same_part = (a < problem_.backward_begin) == (b < problem_.backward_begin);
    if (!same_part || op(a).region != op(b).region || op(a).recomputable != op(b).recomputable) return false;
    if (!saves(a, b, d)) return false;
    if (down_to(a, b, d))
      merge(a, b, d, made, b);
    else if (up_to(a, b))
      merge(a, b, d, made, a);
    else
      return false;
    return true;
  }

  // Whether the pair needs no more memory than the larger of its halves alone.
  bool saves(int32_t a, int32_t b, int32_t d) const {
    const plan::Op &first = op(a), &second = op(b);
    std::vector<int32_t> pair;
    const auto join = [&](const std::vector<int32_t>& list) {
      for (const int32_t v : list)
        if (v != d) add(pair, v);
    };
    for (const auto* list : {&first.inputs, &first.outputs, &second.inputs, &second.outputs}) join(*list);
    const int64_t together = bytes(pair) + std::max(first.workspace_bytes, second.workspace_bytes);
    return together <= std::max(bytes(first.inputs) + bytes(first.outputs) + first.workspace_bytes,
                                bytes(second.inputs) + bytes(second.outputs) + second.workspace_bytes);
  }
  int64_t bytes(const std::vector<int32_t>& list) const {
    int64_t sum = 0;
    for (const int32_t v : list) sum += persistent(v) ? 0 : problem_.values[at(v)].bytes;
    return sum;
  }

  // Visits the values that an op writes and that other ops may write, or the host read: gradients and outputs.
  void each_written(int32_t o, const std::function<void(int32_t)>& take) const {
    for (const int32_t part : plan_.problem_op[at(o)])
      for (const int32_t v : joint_.ops()[at(part)].out)
        if (v >= 0 && (persistent(stored(v)) || role(v) == graph::Role::kGradient)) take(stored(v));
  }
  bool keep_apart(int32_t x, int32_t y) const {  // their order matters to a persistent value
    bool minds = false;
    each_written(x, [&](int32_t v) { minds = minds || holds(op(y).inputs, v) || holds(op(y).outputs, v); });
    each_written(y, [&](int32_t v) { minds = minds || holds(op(x).inputs, v) || holds(op(x).outputs, v); });
    return minds;
  }
  // Ops with effects other than their values keep their order.
  bool keeps_order(int32_t o) const {
    const auto& parts = plan_.problem_op[at(o)];
    return std::any_of(parts.begin(), parts.end(), [&](int32_t part) {
      const ops::OpCode code = joint_.ops()[at(part)].code;
      return ops::row(code).is(ops::EFFECT) || code == ops::OpCode::k_custom ||
             code == ops::OpCode::k_custom_grad;
    });
  }

  // a may run right before b. Its inputs then live longer, but not with more bytes than d, which lives shorter.
  bool down_to(int32_t a, int32_t b, int32_t d) const {
    bool between = false;
    for (int32_t k = a + 1; k < b; ++k) {
      if (gone_[at(k)]) continue;
      between = true;
      if (keep_apart(a, k)) return false;
      for (const int32_t v : op(a).outputs)
        if (holds(op(k).inputs, v)) return false;
    }
    if (!between) return true;
    if (keeps_order(a)) return false;
    int64_t longer = 0;
    for (const int32_t v : op(a).inputs) {
      if (persistent(v)) continue;
      int32_t last = -1;
      for (const int32_t reader : readers_[at(v)]) last = std::max(last, reader);
      if (last < b) longer += problem_.values[at(v)].bytes;
    }
    return longer <= problem_.values[at(d)].bytes;
  }

  // b may run right after a: no op between makes an input of b.
  bool up_to(int32_t a, int32_t b) const {
    if (keeps_order(b)) return false;
    for (int32_t k = a + 1; k < b; ++k) {
      if (gone_[at(k)]) continue;
      if (keep_apart(b, k)) return false;
      for (const int32_t v : op(k).outputs)
        if (holds(op(b).inputs, v)) return false;
    }
    return true;
  }

  void merge(int32_t a, int32_t b, int32_t d, int32_t made, int32_t place) {
    plan::Op pair = op(a);
    pair.name = cat(op(a).name, "+", op(b).name);
    pair.seconds += op(b).seconds;
    pair.workspace_bytes = std::max(pair.workspace_bytes, op(b).workspace_bytes);
    pair.outputs.erase(std::find(pair.outputs.begin(), pair.outputs.end(), d));
    for (const int32_t v : op(b).outputs) add(pair.outputs, v);
    for (const int32_t v : op(b).inputs)
      if (v != d && !holds(pair.outputs, v)) add(pair.inputs, v);
    std::vector<int32_t> parts = plan_.problem_op[at(a)];
    parts.insert(parts.end(), plan_.problem_op[at(b)].begin(), plan_.problem_op[at(b)].end());
    for (const int32_t old : {a, b})
      for (const int32_t v : op(old).inputs) std::erase(readers_[at(v)], old);
    for (const int32_t v : pair.inputs) readers_[at(v)].push_back(place);
    for (const int32_t v : pair.outputs) maker_[at(v)] = place;
    stand_in_[at(d)] = made;
    gone_[at(place == a ? b : a)] = true;
    op(place) = std::move(pair);
    plan_.problem_op[at(place)] = std::move(parts);
  }

  void compact() {
    std::vector<int32_t> now(problem_.values.size(), -1);
    std::vector<plan::Value> values;
    for (size_t v = 0; v < now.size(); ++v) {
      if (stand_in_[v] >= 0) continue;
      now[v] = static_cast<int32_t>(values.size());
      values.push_back(std::move(problem_.values[v]));
    }
    for (size_t v = 0; v < now.size(); ++v) {
      int32_t last = static_cast<int32_t>(v);
      while (stand_in_[at(last)] >= 0) last = stand_in_[at(last)];
      now[v] = now[at(last)];
    }
    problem_.values = std::move(values);
    for (int32_t& v : plan_.problem_value)
      if (v >= 0) v = now[at(v)];
    std::vector<int32_t> order;
    for (int32_t o = 0; o < count(); ++o)
      if (!gone_[at(o)]) order.push_back(o);
    plan_.keep_ops(order, now);
  }

  Lowered plan_;
  plan::Problem& problem_;
  const graph::JointGraph& joint_;
  std::vector<int32_t> maker_;  // value -> the op that makes it; -1: it is there from the start
  std::vector<std::vector<int32_t>> readers_;  // value -> the ops that read it
  std::vector<int32_t> stand_in_;              // value -> the value that replaces it; -1: none
  std::vector<bool> gone_;                     // op -> it was joined to another
};

}  // namespace

std::optional<Lowered> with_in_place(Lowered plan) { return Pairs(std::move(plan)).run(); }

}  // namespace cairn::engine
