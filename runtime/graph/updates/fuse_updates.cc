// Updates fused into backward. A parameter whose gradient one op writes is updated after that op and after
// the last op that may still need the parameter; its gradient does not outlive that.
//
// "May need" includes recomputation: a plan may run a forward op again for any backward op that reads its
// output, directly or through other forward ops that run again, too. Backward ops of such a graph are never
// run again (lower.cc), so the last op that needs a value v is
//   need(v) = max over readers o of v:  o, and need(y) for each output y of o if o is a forward op that may
//   run again.
//
// A parameter that another processor updates keeps its gradient. Its sum of squares follows the gradient's last writer.
#include <algorithm>

#include "runtime/graph/joint_builder.h"

namespace cairn::graph {
namespace {

using ops::OpCode;

class UpdateFuser {
 public:
  UpdateFuser(JointBuilder& builder, const std::set<std::string>& beside_backward)
      : b_(builder), joint_(builder.joint), beside_backward_(beside_backward) {}

  void run() {
    joint_.grad_scale = scalar("optimizer/grad_scale");
    after_.resize(joint_.ops().size());
    find_needs();
    add_gate();
    // Each gradient's sum of squares gets a value of its own. Backward computes them in another order than the one in which
    // the norm adds them up, and the order of that sum must not depend on the plan.
    std::vector<JointOp> norms, updates;
    for (size_t i = 0; i < joint_.ops(kUpdate).size(); ++i) {
      JointOp &norm = joint_.ops(kGradientNorm)[i], &update = joint_.ops(kUpdate)[i];
      ParameterSlot& slot = slot_of(update.out[0]);
      slot.squares = norm.out[0] = scalar(cat(joint_.values[slot.value].name, "/squares"));
      norm.accumulates = norm.first_writer = 0;
      slot.beside_backward = beside_backward_.contains(joint_.values[slot.value].name);
      const int32_t writer = only_writer(slot.gradient);
      slot.fused = !slot.beside_backward && writer >= 0;
      if (slot.fused) {
        fuse(slot, writer, std::move(norm), std::move(update));
      } else if (slot.beside_backward) {
        updates.push_back(reads_scale(slot, std::move(update)));
        norm.backward = true;
        std::vector<JointOp>& behind = after_[last_writer(slot.gradient)];
        behind.insert(behind.begin(),
                      std::move(norm));  // right after the gradient's writer, before what else follows it
      } else {
        norms.push_back(std::move(norm)), updates.push_back(std::move(update));
      }
    }
    joint_.ops(kGradientNorm) = std::move(norms);
    joint_.ops(kUpdate) = std::move(updates);
    b_.insert(std::move(after_));
  }

 private:
  int32_t scalar(std::string name) {
    return b_.add_value(std::move(name), {DType::kF64, Shape{}}, Role::kScratch, kNone, -1);
  }

  ParameterSlot& slot_of(int32_t parameter) {
    for (ParameterSlot& slot : joint_.parameters)
      if (slot.value == parameter) return slot;
    fail(Code::kInternal, "an update of no parameter");
  }

  static bool reruns(const JointOp& op) { return !op.backward && ops::row(op.code).is(ops::RECOMPUTE); }

  void find_needs() {
    need_.assign(joint_.values.size(), -1);
    writers_.assign(joint_.values.size(), 0);
    for (size_t i = joint_.ops().size(); i-- > 0;) {
      const JointOp& op = joint_.ops()[i];
      auto last = static_cast<int32_t>(i);
      for (const int32_t v : op.out) {
        if (v < 0) continue;
        ++writers_[v];
        if (reruns(op) || ops::row(op.code).is(ops::ALIAS)) last = std::max(last, need_[joint_.storage(v)]);
      }
      for (const int32_t v : op.in)
        if (v >= 0) need_[joint_.storage(v)] = std::max(need_[joint_.storage(v)], last);
    }
  }

  // Index of the op; -1: there are several, which add.
  int32_t only_writer(int32_t gradient) const {
    if (writers_[gradient] != 1) return -1;
    for (size_t i = 0; i < joint_.ops().size(); ++i)
      if (std::find(joint_.ops()[i].out.begin(), joint_.ops()[i].out.end(), gradient) !=
          joint_.ops()[i].out.end())
        return static_cast<int32_t>(i);
    return -1;
  }
  size_t last_writer(int32_t gradient) const {
    size_t last = joint_.ops().size();
    while (last-- > 0) {
      const std::vector<int32_t>& out = joint_.ops()[last].out;
      if (std::find(out.begin(), out.end(), gradient) != out.end()) return last;
    }
    fail(Code::kInternal, "a gradient that no op writes");
  }

  // Adds the op that decides whether the step is updated or skipped; it runs as soon as loss and weight are known.
  void add_gate() {
    JointOp op;
    op.code = OpCode::k_grad_scale;
    op.name = "grad scale";
    op.in = {joint_.loss, joint_.weight};
    op.out = {joint_.grad_scale};
    op.backward = true;
    int32_t known = joint_.backward_begin;
    for (size_t i = 0; i < joint_.ops().size(); ++i)
      for (const int32_t v : joint_.ops()[i].out)
        if (v >= 0 && (v == joint_.loss || v == joint_.weight))
          known = std::max(known, static_cast<int32_t>(i));
    grad_scale_ = known;
    after_[known].push_back(std::move(op));
  }

  void fuse(const ParameterSlot& slot, int32_t writer, JointOp norm, JointOp update) {
    JointOp& maker = joint_.ops()[writer];
    for (size_t k = 0; k < maker.out.size(); ++k)
      if (maker.out[k] == slot.gradient) {
        maker.accumulates &= ~(1u << k);
        maker.first_writer &= ~(1u << k);
      }
    joint_.values[slot.gradient].role = Role::kBackward;
    norm.backward = update.backward = true;
    const int32_t at = std::max({writer, need_[slot.value], grad_scale_});
    after_[at].push_back(std::move(norm));
    after_[at].push_back(reads_scale(slot, std::move(update)));
  }

  JointOp reads_scale(const ParameterSlot& slot, JointOp update) const {
    update.in.push_back(slot.squares);
    update.out.resize(update_op::kOutputs, -1);
    update.out[update_op::kGradScale] = joint_.grad_scale;
    return update;
  }

  JointBuilder& b_;
  JointGraph& joint_;
  const std::set<std::string>& beside_backward_;
  std::vector<int32_t> need_, writers_;      // per value: last op in need of it; ops that write it
  std::vector<std::vector<JointOp>> after_;  // per op: what follows it
  int32_t grad_scale_ = 0;
};

}  // namespace

void fuse_updates(JointBuilder& builder, const std::set<std::string>& beside_backward) {
  UpdateFuser(builder, beside_backward).run();
}

}  // namespace cairn::graph
