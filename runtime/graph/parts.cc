// Where values of the effective batch cut the micro-batch into parts.
#include <algorithm>

#include "runtime/graph/joint_builder.h"

namespace cairn::graph {
namespace {

using ops::OpCode;

// The micro-batch in parts. Forward ops that effective values need are there twice.
class Splitter {
 public:
  explicit Splitter(JointBuilder& builder) : b_(builder), joint_(builder.joint) {}

  void run() {
    const auto begin = joint_.ops().begin(), middle = begin + joint_.backward_begin, end = joint_.ops().end();
    const std::vector<JointOp> forward(begin, middle), backward(middle, end);
    keep_gradients(backward);
    gather(forward);
    take(forward, Part::kLoss);
    take(backward, Part::kLoss);
    take(forward, Part::kMicroBatch);
    joint_.backward_begin = static_cast<int32_t>(ops_.size());
    take(backward, Part::kMicroBatch);
    joint_.ops() = std::move(ops_);
    first_writers();
  }

 private:
  static bool gathers(const JointOp& op) { return op.code == OpCode::k_effective; }

  // They are read in a later part than the one that makes them.
  void keep_gradients(const std::vector<JointOp>& backward) {
    for (const JointOp& op : backward) {
      if (op.code != OpCode::k_effective_rows) continue;
      JointValue& dy = joint_.values[at(joint_.storage(op.in[0]))];
      if (!kind(dy.role).is(PERSISTS)) dy.role = Role::kEffective;
    }
  }

  void gather(const std::vector<JointOp>& forward) {
    std::vector<bool> needed(joint_.values.size());
    std::vector<size_t> chosen;
    for (size_t i = forward.size(); i-- > 0;) {
      const JointOp& op = forward[i];
      const bool wanted = std::ranges::any_of(op.out, [&](int32_t v) { return v >= 0 && needed[at(v)]; });
      if (op.part != Part::kMicroBatch || !(wanted || gathers(op)) || derives(op)) continue;
      chosen.push_back(i);
      for (const int32_t v : op.in)
        if (v >= 0) needed[at(v)] = true;
    }
    std::vector<int32_t> now(joint_.values.size(), -1);
    for (auto i = chosen.rbegin(); i != chosen.rend(); ++i) {
      JointOp copy = forward[*i];
      copy.part = Part::kGather;
      for (int32_t& v : copy.in)
        if (v >= 0 && now[at(v)] >= 0) v = now[at(v)];
      if (!gathers(copy)) {
        copy.name += ".gather";
        copy.forward = -1;  // no backward op belongs to it
        for (int32_t& v : copy.out) {
          if (v < 0) continue;
          JointValue made = joint_.values[at(v)];
          const int32_t alias =
              made.alias_of < 0 || now[at(made.alias_of)] < 0 ? made.alias_of : now[at(made.alias_of)];
          const int32_t own =
              b_.add_value(made.name + ".gather", made.desc, Role::kActivation, made.source, made.region);
          joint_.values[at(own)].alias_of = alias;
          now[at(v)] = own;
          v = own;
        }
      }
      ops_.push_back(std::move(copy));
    }
    // Decoded weights become residents, which all parts read (derived_weights.cc).
    for (const JointOp& op : forward)
      if (derives(op)) ops_.push_back(op);
  }
  bool derives(const JointOp& op) const {
    return ops::row(op.code).is(ops::DERIVES) && joint_.values[at(op.in[0])].role == Role::kParameter;
  }

  void take(const std::vector<JointOp>& ops, Part part) {
    for (const JointOp& op : ops)
      if (op.part == part && !gathers(op) && !derives(op)) ops_.push_back(op);
  }

  // In the order of the parts another op may come first.
  void first_writers() {
    std::vector<bool> written(joint_.values.size());
    for (JointOp& op : joint_.ops())
      for (size_t i = 0; i < op.out.size(); ++i)
        if (op.accumulates >> i & 1u) {
          const bool first = !written[at(op.out[i])];
          written[at(op.out[i])] = true;
          op.first_writer = (op.first_writer & ~(1u << i)) | (first ? 1u << i : 0);
        }
  }

  static size_t at(int32_t id) { return static_cast<size_t>(id); }

  JointBuilder& b_;
  JointGraph& joint_;
  std::vector<JointOp> ops_;
};

}  // namespace

void split_parts(JointBuilder& builder) {
  if (builder.joint.in_parts()) Splitter(builder).run();
}

}  // namespace cairn::graph
