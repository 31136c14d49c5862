#include "runtime/compile/tiles/groups.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "runtime/base/checked.h"
#include "runtime/compile/kernel_maker.h"

namespace cairn::engine {
namespace {

using graph::JointOp;
using graph::Role;

class Finder {
 public:
  explicit Finder(const Lowered& plan)
      : plan_(plan),
        joint_(*plan.joint),
        without_rows_(values_without_rows(plan)),
        readers_(joint_.values.size()),
        maker_(joint_.values.size(), -1) {
    for (int32_t o = 0; o < count(); ++o) {
      const auto& parts = plan_.problem_op[at(o)];
      for (const int32_t part : parts) {
        for (const int32_t v : joint_.ops()[at(part)].in)
          if (v >= 0) readers_[at(joint_.storage(v))].insert(o);
        for (const int32_t v : joint_.ops()[at(part)].out)
          if (v >= 0) maker_[at(joint_.storage(v))] = o;
      }
      if (parts.size() == 1 && node(o).backward && node(o).forward >= 0)
        backward_of_[node(o).forward].push_back(o);
    }
    std::set<int32_t> several;  // forward ops of which a backward op is not a single joint op
    for (int32_t o = 0; o < count(); ++o)
      if (plan_.problem_op[at(o)].size() > 1)
        for (const int32_t part : plan_.problem_op[at(o)]) several.insert(joint_.ops()[at(part)].forward);
    joined_ = std::move(several);
  }

  std::vector<TileGroup> run() {
    const int32_t end = std::min(plan_.problem.backward_begin, count());
    std::vector<int32_t> ops;
    int64_t rows = 0;
    for (int32_t o = 0; o <= end; ++o) {
      if (o < end && !plan_.problem_op[at(o)].empty() && makes_no_rows(o)) continue;
      if (o < end && !ops.empty() && goes_by_rows(o, rows)) {
        ops.push_back(o);
        continue;
      }
      end_run(ops, rows);
      ops.clear();
      if (o == end || plan_.problem_op[at(o)].size() != 1 || node(o).out.empty() || node(o).out[0] < 0)
        continue;
      rows = joint_.values[at(node(o).out[0])].desc.shape.rows();
      if (goes_by_rows(o, rows)) ops.push_back(o);
    }
    return std::move(groups_);
  }

 private:
  int32_t count() const { return static_cast<int32_t>(plan_.problem.ops.size()); }
  const JointOp& node(int32_t o) const { return joint_.ops()[at(plan_.problem_op[at(o)].front())]; }
  const TensorDesc& desc(int32_t value) const { return joint_.values[at(value)].desc; }
  int64_t bytes(int32_t value) const { return desc(value).bytes(); }

  // Visits the storage of what an op reads or makes by rows.
  template <class Visit>
  void each_read(int32_t o, const Visit& visit) const {
    for (const int32_t v : node(o).in)
      if (v >= 0 && !without_rows_[at(joint_.storage(v))]) visit(joint_.storage(v));
  }
  template <class Visit>
  void each_made(int32_t o, const Visit& visit) const {
    const ops::OpRow& row = ops::row(node(o).code);
    for (size_t k = 0; k < node(o).out.size(); ++k)
      if (node(o).out[k] >= 0 && !row.outputs[k].accumulates) visit(joint_.storage(node(o).out[k]));
  }

  bool makes_no_rows(int32_t o) const {
    const auto& made = node(o).out;
    return !made.empty() && std::all_of(made.begin(), made.end(), [&](int32_t v) {
      return v < 0 || without_rows_[at(joint_.storage(v))];
    });
  }

  bool planner_decides(int32_t o) const {
    for (int32_t r = plan_.problem.ops[at(o)].region; r >= 0; r = plan_.problem.regions[at(r)].parent)
      if (plan_.problem.regions[at(r)].policy != Policy::kPlannerDecides) return false;
    return true;
  }

  // The op's tiles make its bits, and so do those of its gradient's ops.
  bool goes_by_rows(int32_t o, int64_t rows) {
    if (!by_rows_alone(o, rows) || node(o).backward || joined_.contains(node(o).forward)) return false;
    const auto found = backward_of_.find(node(o).forward);
    return node(o).forward < 0 || found == backward_of_.end() ||
           std::all_of(found->second.begin(), found->second.end(),
                       [&](int32_t b) { return by_rows_alone(b, rows); });
  }
  bool by_rows_alone(int32_t o, int64_t rows) {
    if (plan_.problem_op[at(o)].size() != 1 || !planner_decides(o) || node(o).deferred) return false;
    const JointOp& op = node(o);
    const ops::OpRow& row = ops::row(op.code);
    bool any = false;
    for (size_t i = 0; i < op.in.size(); ++i) {
      if (op.in[i] < 0) continue;
      if (without_rows_[at(joint_.storage(op.in[i]))]) {
        // One row must not be wider than what it is combined with.
        const ops::Operand& operand = row.inputs[i];
        if (operand.pack.empty() && operand.role != ops::OperandRole::kWeight &&
            desc(op.in[i]).shape.rank > 1)
          return false;
        continue;
      }
      if (!TileRows::row_of(desc(op.in[i]), rows)) return false;
      any = true;
    }
    for (size_t k = 0; k < op.out.size(); ++k)
      if (op.out[k] >= 0 && !row.outputs[k].accumulates && !TileRows::row_of(desc(op.out[k]), rows))
        return false;
    return any && unit(o) > 0;
  }
  int64_t unit(int32_t o) const {
    const Operands operands(joint_, node(o));
    return plan_.registry->tile_rows(signature_of(node(o), operands, plan_.threads));
  }

  // What passes between two ops of a run, of what the rest of the run reads.
  std::vector<std::set<int32_t>> passing(const std::vector<int32_t>& ops) const {
    std::vector<std::set<int32_t>> between(ops.size() + 1);
    std::set<int32_t> now;
    for (size_t p = ops.size(); p-- > 0;) {
      each_made(ops[p], [&](int32_t v) { now.erase(v); });
      each_read(ops[p], [&](int32_t v) { now.insert(v); });
      between[p] = now;
    }
    for (const int32_t o : ops)
      each_made(o, [&](int32_t v) {
        if (read_outside(v, ops)) between.back().insert(v);
      });
    return between;
  }
  bool read_outside(int32_t value, const std::vector<int32_t>& ops) const {
    return std::any_of(readers_[at(value)].begin(), readers_[at(value)].end(), [&](int32_t o) {
      return o < plan_.problem.backward_begin && std::find(ops.begin(), ops.end(), o) == ops.end();
    });
  }

  void end_run(const std::vector<int32_t>& ops, int64_t rows) {
    if (ops.size() < 2) return;
    const std::vector<std::set<int32_t>> between = passing(ops);
    const auto width = [&](size_t p) { return between[p].size() == 1 ? bytes(*between[p].begin()) : -1; };
    const auto narrower = [&](size_t p, size_t from, size_t to) {
      for (size_t q = from; q < to; ++q)
        if (width(q) >= 0 && width(q) < width(p)) return true;
      return false;
    };
    size_t begin = 0;
    for (size_t p = 1; p <= ops.size(); ++p) {
      const bool cut =
          p == ops.size() || (width(p) >= 0 && !(narrower(p, 0, p) && narrower(p, p + 1, between.size())));
      if (!cut) continue;
      add_group({ops.begin() + static_cast<int64_t>(begin), ops.begin() + static_cast<int64_t>(p)}, rows);
      begin = p;
    }
  }

  void add_group(std::vector<int32_t> ops, int64_t rows) {
    if (ops.size() < 2) return;
    TileGroup group{std::move(ops), {}, {}, rows, 1};
    for (const int32_t o : group.forward)
      if (const auto found = backward_of_.find(node(o).forward);
          node(o).forward >= 0 && found != backward_of_.end())
        group.backward.insert(group.backward.end(), found->second.begin(), found->second.end());
    std::sort(group.backward.begin(), group.backward.end());
    // The ops that make again what the backward group reads and nobody else keeps.
    const auto interior = [&](int32_t v) {
      return !kind(joint_.values[at(v)].role).is(graph::PERSISTS) &&
             std::all_of(readers_[at(v)].begin(), readers_[at(v)].end(),
                         [&](int32_t o) { return holds(group.forward, o) || holds(group.backward, o); });
    };
    std::set<int32_t> again;
    const auto need = [&](const auto& self, int32_t v) -> void {
      const int32_t maker = maker_[at(v)];
      if (!holds(group.forward, maker) || !interior(v) || !again.insert(maker).second) return;
      each_read(maker, [&](int32_t read) { self(self, read); });
    };
    for (const int32_t o : group.backward) each_read(o, [&](int32_t v) { need(need, v); });
    group.again.assign(again.begin(), again.end());
    const auto pays = [&](const std::vector<int32_t>& first, const std::vector<int32_t>& rest) {
      std::set<int32_t> made, read;
      int64_t widest = 0, outside = 0;
      for (const auto* list : {&first, &rest})
        for (const int32_t o : *list) {
          std::set<int32_t> own;
          each_read(o, [&](int32_t v) { own.insert(v), read.insert(v); });
          each_made(o, [&](int32_t v) { own.insert(v), made.insert(v); });
          int64_t sum = plan_.problem.ops[at(o)].workspace_bytes;
          for (const int32_t v : own) sum += bytes(v);
          widest = std::max(widest, sum);
        }
      for (const int32_t v : read) outside += made.contains(v) ? 0 : bytes(v);
      for (const int32_t v : made)
        outside += std::all_of(readers_[at(v)].begin(), readers_[at(v)].end(),
                               [&](int32_t o) { return holds(group.forward, o) || holds(group.backward, o); })
                       ? 0
                       : bytes(v);
      return widest > outside;
    };
    if (!pays(group.forward, {}) || (!group.backward.empty() && !pays(group.again, group.backward))) return;
    // Sums over rows end where the kernel's blocks do, and so do blocks of random numbers. Other ops need enough
    // rows.
    int64_t least = 1;
    for (const auto* list : {&group.forward, &group.backward})
      for (const int32_t o : *list) {
        const ops::OpRow& row = ops::row(node(o).code);
        const bool whole_blocks =
            row.is(ops::RNG) || std::any_of(row.outputs.begin(), row.outputs.end(),
                                            [](const ops::Operand& out) { return out.accumulates; });
        if (whole_blocks)
          group.unit = std::lcm(group.unit, unit(o));
        else
          least = std::max(least, unit(o));
        // Tiles begin at aligned places.
        const auto aligned = [&](int32_t v) {
          group.unit = std::lcm(group.unit, kAlignment / std::gcd(kAlignment, bytes(v) / rows));
        };
        each_read(o, aligned);
        each_made(o, aligned);
      }
    group.unit *= (least + group.unit - 1) / group.unit;
    if (2 * group.unit <= rows) groups_.push_back(std::move(group));
  }

  const Lowered& plan_;
  const graph::JointGraph& joint_;
  const std::vector<bool> without_rows_;                 // by joint value
  std::vector<std::set<int32_t>> readers_;               // joint value -> ops of the problem
  std::vector<int32_t> maker_;                           // joint value -> op of the problem
  std::map<int32_t, std::vector<int32_t>> backward_of_;  // JointOp::forward -> backward ops of the problem
  std::set<int32_t> joined_;  // JointOp::forward of ops that the problem has joined to others
  std::vector<TileGroup> groups_;
};

}  // namespace

std::vector<TileGroup> tile_groups(const Lowered& plan) { return Finder(plan).run(); }

std::optional<Shape> TileRows::row_of(const TensorDesc& desc, int64_t rows) {
  int64_t product = 1;
  for (int axis = 0; axis < desc.shape.rank; ++axis) {
    product *= desc.shape[axis];
    if (product != rows) continue;
    return Shape(desc.shape.span().subspan(static_cast<size_t>(axis) + 1));
  }
  return std::nullopt;
}

std::vector<bool> values_without_rows(const Lowered& plan) {
  const graph::JointGraph& joint = *plan.joint;
  std::vector<bool> none(joint.values.size());
  for (size_t v = 0; v < none.size(); ++v) {
    const Role role = joint.values[v].role;
    none[v] = role == Role::kParameter || role == Role::kPacked || role == Role::kDecoded;
  }
  for (const JointOp& op : joint.ops()) {
    const ops::OpRow& row = ops::row(op.code);
    if (!row.is(ops::PURE) || row.is(ops::RNG) || op.in.empty()) continue;
    const bool all = std::all_of(op.in.begin(), op.in.end(),
                                 [&](int32_t v) { return v < 0 || none[at(joint.storage(v))]; });
    for (const int32_t v : op.out)
      if (v >= 0 && all && joint.values[at(v)].role == Role::kActivation) none[at(joint.storage(v))] = true;
  }
  return none;
}

}  // namespace cairn::engine
