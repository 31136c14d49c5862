// Which values are of the effective batch.
#include "runtime/graph/effective/sides.h"

#include <algorithm>

namespace cairn::graph {
namespace {

using ops::OpCode;

class SideFinder {
 public:
  explicit SideFinder(const Graph& graph) : g_(graph), of_(graph.values().size(), Kind::kOpen) {}

  Sides run(ValueId loss, ValueId weight) {
    Sides sides;
    sides.effective.assign(g_.ops().size(), false);
    sides.micro_steps = micro_steps();
    if (!sides.apart()) return sides;
    k_ = sides.micro_steps;
    require(
        loss != kNone, Code::kInvalidArgument, "'", effective_,
        "' is a value of the effective batch, and the graph has no loss, so that there is none: give the op "
        "'effective' micro_steps 1 in graphs that do not train");
    for (const Op& op : g_.ops())
      if (gathers(op)) of_[at(op.out[0])] = Kind::kEffective;
    for (const Op& op : g_.ops())
      if (gathers(op)) settle(op.in[0], Kind::kMicroBatch, op);
    for (const Op& op : g_.ops()) settle(op);
    for (const ValueId scalar : {loss, weight}) {
      if (scalar == kNone) continue;
      Kind& of = of_[at(scalar)];
      require(of != Kind::kMicroBatch, Code::kInvalidArgument, scalar == loss ? "the loss '" : "the weight '",
              g_.values()[at(scalar)].name, "' is of one micro-batch, but '", effective_,
              "' is of the effective batch of ", k_,
              ": compute it of effective values, parameters and inputs of the effective batch alone");
      if (of == Kind::kOpen && g_.values()[at(scalar)].producer >= 0)
        settle(scalar, Kind::kEffective, g_.ops()[at(g_.values()[at(scalar)].producer)]);
    }
    // What neither meets.
    for (const Op& op : g_.ops())
      if (!gathers(op) && kind(op.in) == Kind::kOpen) mark(op.out, Kind::kMicroBatch);
    for (const Op& op : g_.ops())
      if (!gathers(op)) settle(op);
    for (size_t i = 0; i < g_.ops().size(); ++i) {
      const Op& op = g_.ops()[i];
      sides.effective[i] = !gathers(op) && kind(op.out) == Kind::kEffective;
      if (gathers(op) || !sides.effective[i]) check_repeats(op);
    }
    return sides;
  }

 private:
  enum class Kind : uint8_t { kOpen, kMicroBatch, kEffective };

  static size_t at(int32_t id) { return static_cast<size_t>(id); }
  static bool gathers(const Op& op) {
    return op.code == OpCode::k_effective && op.attrs.integer("micro_steps") > 1;
  }

  int64_t micro_steps() {
    int64_t steps = 0;
    for (const Op& op : g_.ops()) {
      if (op.code != OpCode::k_effective) continue;
      const int64_t own = op.attrs.integer("micro_steps");
      require(steps == 0 || steps == own, Code::kInvalidArgument, "'", op.name, "' has micro_steps ", own,
              ", and '", effective_, "' ", steps,
              "; an effective batch of a graph has one number of micro-batches");
      if (steps == 0) effective_ = g_.values()[at(op.out[0])].name;
      steps = own;
    }
    return std::max<int64_t>(steps, 1);
  }

  bool counts(ValueId v) const {  // parameters, statistics and caches are of both kinds
    if (v == kNone) return false;
    const ValueKind kind = g_.values()[at(v)].kind;
    return kind == ValueKind::kInput || kind == ValueKind::kActivation;
  }
  // Of the first that is settled, of an effective one if there is one.
  Kind kind(const std::vector<ValueId>& list) const {
    Kind found = Kind::kOpen;
    for (const ValueId v : list)
      if (counts(v)) found = std::max(found, of_[at(v)]);
    return found;
  }
  void mark(const std::vector<ValueId>& list, Kind kind) {
    for (const ValueId v : list)
      if (v != kNone && of_[at(v)] == Kind::kOpen) of_[at(v)] = kind;
  }

  // The op's values are of the kind of those that are known.
  void settle(const Op& op) {
    if (gathers(op)) return;
    const Kind known = std::max(kind(op.in), kind(op.out));
    if (known == Kind::kOpen) return;
    for (const ValueId v : op.in)
      if (counts(v)) settle(v, known, op);
    for (const ValueId v : op.out)
      if (v != kNone) settle(v, known, op);
  }
  // A value and all that it is made of.
  void settle(ValueId value, Kind kind, const Op& by) {
    std::vector<ValueId> rest = {value};
    while (!rest.empty()) {
      const ValueId v = rest.back();
      rest.pop_back();
      if (!counts(v) || of_[at(v)] == kind) continue;
      if (of_[at(v)] != Kind::kOpen) refuse(v, by);
      of_[at(v)] = kind;
      const int32_t producer = g_.values()[at(v)].producer;
      if (producer < 0) continue;
      const Op& op = g_.ops()[at(producer)];
      for (const auto* list : {&op.in, &op.out})
        for (const ValueId other : *list)
          if (other != kNone) rest.push_back(other);
    }
  }

  [[noreturn]] void refuse(ValueId v, const Op& by) const {
    const std::string& name = g_.values()[at(v)].name;
    if (of_[at(v)] == Kind::kEffective)
      fail(Code::kInvalidArgument, "op '", by.name, "' computes of '", name,
           "', which is of the effective batch of ", k_,
           " micro-batches, and of values of one micro-batch: make these effective, too (op 'effective'); "
           "what "
           "that op reads is of one micro-batch");
    fail(Code::kInvalidArgument, "op '", by.name, "' computes of '", name,
         "', which is of one micro-batch, and of values of the effective batch of ", k_,
         " micro-batches: make '", name, "' effective, too (op 'effective')",
         g_.values()[at(v)].kind == ValueKind::kInput ? ", or give that op an input of its own" : "");
  }

  // An op of a micro-batch runs twice.
  void check_repeats(const Op& op) const {
    const bool cache = ops::row(op.code).operand(ops::OperandRole::kInto) >= 0;
    const bool custom = op.code == OpCode::k_custom &&
                        !g_.customs()[at(static_cast<int32_t>(op.attrs.integer("custom")))].recomputable;
    require(
        !cache && !custom, Code::kUnsupported, "op '", op.name,
        "' must not run twice, but every micro-batch of a graph with values of the effective batch does ('",
        effective_, "')");
  }

  const Graph& g_;
  std::vector<Kind> of_;   // by value
  std::string effective_;  // the first value of the effective batch
  int64_t k_ = 1;
};

}  // namespace

Sides find_sides(const Graph& graph, ValueId loss, ValueId weight) {
  return SideFinder(graph).run(loss, weight);
}

}  // namespace cairn::graph
