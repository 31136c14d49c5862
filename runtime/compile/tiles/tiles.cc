#include "runtime/compile/tiles/tiles.h"

#include <algorithm>
#include <set>

#include "runtime/base/checked.h"
#include "runtime/compile/tiles/groups.h"
#include "runtime/compile/tiles/launches.h"

namespace cairn::engine {
namespace {

using graph::JointOp;

class Tiler {
 public:
  Tiler(Lowered plan, device::Device& device, const PlanOptions& options)
      : plan_(std::move(plan)), joint_(*plan_.joint), made_(plan_, device, options) {
    for (int32_t o = 0; o < static_cast<int32_t>(plan_.problem.ops.size()); ++o) order_.push_back(o);
  }

  std::optional<Lowered> run(int64_t count) {
    for (const TileGroup& group : tile_groups(plan_)) {
      const std::vector<int32_t> before = order_;
      if (!gather(group.forward) || !gather(group.backward)) {
        order_ = before;
        continue;
      }
      // First the backward part, which still finds the ops that it runs again.
      if (!group.backward.empty()) join(group, group.backward, group.again, count);
      join(group, group.forward, {}, count);
    }
    if (plan_.tiles.empty()) return {};
    plan_.kernels = made_.kernels();
    compact();
    return std::move(plan_);
  }

 private:
  plan::Op& op(int32_t o) { return plan_.problem.ops[at(o)]; }
  const plan::Op& op(int32_t o) const { return plan_.problem.ops[at(o)]; }

  std::set<int32_t> writes(int32_t o) const {
    std::set<int32_t> written(op(o).outputs.begin(), op(o).outputs.end());
    for (const int32_t part : plan_.problem_op[at(o)])
      for (const int32_t v : joint_.ops()[at(part)].out)
        if (v >= 0 && plan_.problem_value[at(joint_.storage(v))] >= 0)
          written.insert(plan_.problem_value[at(joint_.storage(v))]);
    return written;
  }
  bool keeps_order(int32_t o) const {
    return plan_.problem_op[at(o)].empty() ||
           std::any_of(plan_.problem_op[at(o)].begin(), plan_.problem_op[at(o)].end(),
                       [&](int32_t part) { return !ops::row(joint_.ops()[at(part)].code).is(ops::PURE); });
  }
  // Their order matters.
  bool conflict(int32_t a, int32_t b) const {
    const auto meets = [&](int32_t writer, int32_t other) {
      for (const int32_t v : writes(writer))
        if (holds(op(other).inputs, v) || holds(op(other).outputs, v)) return true;
      return false;
    };
    return (keeps_order(a) && keeps_order(b)) || meets(a, b) || meets(b, a);
  }

  // Brings these ops together: those between them move before the first or behind the last. False: some cannot.
  bool gather(const std::vector<int32_t>& ops) {
    if (ops.empty()) return true;
    const auto first = std::find(order_.begin(), order_.end(), ops.front());
    const auto end = std::find(order_.begin(), order_.end(), ops.back()) + 1;
    std::vector<int32_t> passed, before, behind;
    for (auto at = first; at != end; ++at) {
      if (holds(ops, *at)) {
        for (const int32_t other : behind)
          if (conflict(other, *at)) return false;
        passed.push_back(*at);
        continue;
      }
      const auto apart = [&](int32_t other) { return !conflict(other, *at); };
      const bool may_go_before = std::all_of(passed.begin(), passed.end(), apart) &&
                                 std::all_of(behind.begin(), behind.end(), apart);
      (may_go_before ? before : behind).push_back(*at);
    }
    require(before.size() + ops.size() + behind.size() == static_cast<size_t>(end - first), Code::kInternal,
            "ops of a group in tiles are not in order");
    auto to = std::copy(before.begin(), before.end(), first);
    to = std::copy(ops.begin(), ops.end(), to);
    std::copy(behind.begin(), behind.end(), to);
    return true;
  }

  // One op for all of these, which stand together.
  void join(const TileGroup& group, const std::vector<int32_t>& ops, const std::vector<int32_t>& again,
            int64_t count) {
    std::vector<int32_t> sequence = again;
    sequence.insert(sequence.end(), ops.begin(), ops.end());
    plan::Op all;
    all.region = common_region(ops);
    std::vector<int32_t> parts, made;
    for (const int32_t o : sequence) {
      parts.push_back(plan_.problem_op[at(o)].front());
      for (const int32_t v : op(o).inputs)
        if (!holds(made, v)) add(all.inputs, v);
      for (const int32_t v : op(o).outputs) add(made, v);
      all.recomputable = all.recomputable && op(o).recomputable;
    }
    for (const int32_t o : ops)
      for (const int32_t v : op(o).outputs)
        if (read_elsewhere(v, group)) all.outputs.push_back(v);
    const MadeTiles tiles = made_.launches(parts, group, count, [&](int32_t stored) {
      return holds(made, stored) && !holds(all.outputs, stored);
    });
    all.name = cat(op(ops.front()).name, "..", op(ops.back()).name, '*', tiles.tiles->count);
    all.seconds = tiles.seconds;
    all.workspace_bytes = tiles.workspace_bytes;
    // Packing and the optimizer have the workspace of the first op.
    if (ops.front() == 0) all.workspace_bytes = std::max(all.workspace_bytes, op(0).workspace_bytes);
    for (const int32_t v : made)
      if (!read_elsewhere(v, group)) gone_.insert(v);
    plan_.tiles[parts.back()] = tiles.tiles;
    const int32_t place = ops.front();
    op(place) = std::move(all);
    plan_.problem_op[at(place)] = std::move(parts);
    std::erase_if(order_, [&](int32_t o) { return o != place && holds(ops, o); });
  }

  bool read_elsewhere(int32_t value, const TileGroup& group) const {
    if (plan_.problem.values[at(value)].persistent || plan_.problem.values[at(value)].home >= 0) return true;
    const int32_t joined = group.backward.empty() ? -1 : group.backward.front();
    if (joined >= 0 && plan_.problem_op[at(joined)].size() > 1 && holds(op(joined).inputs, value))
      return true;
    return std::any_of(order_.begin(), order_.end(), [&](int32_t o) {
      return holds(op(o).inputs, value) && !holds(group.forward, o) && !holds(group.backward, o);
    });
  }

  int32_t common_region(const std::vector<int32_t>& ops) const {
    const auto above = [&](int32_t r) {
      std::vector<int32_t> path;
      for (; r >= 0; r = plan_.problem.regions[at(r)].parent) path.push_back(r);
      return path;
    };
    std::vector<int32_t> common = above(op(ops.front()).region);
    for (const int32_t o : ops) {
      const std::vector<int32_t> own = above(op(o).region);
      std::erase_if(common, [&](int32_t r) { return !holds(own, r); });
    }
    return common.empty() ? -1 : common.front();
  }

  void compact() {
    plan::Problem& problem = plan_.problem;
    std::vector<int32_t> now(problem.values.size(), -1);
    std::vector<plan::Value> values;
    for (size_t v = 0; v < now.size(); ++v) {
      if (gone_.contains(static_cast<int32_t>(v))) continue;
      now[v] = static_cast<int32_t>(values.size());
      values.push_back(std::move(problem.values[v]));
    }
    problem.values = std::move(values);
    for (auto* list : {&plan_.problem_value, &plan_.layout_value})
      for (int32_t& v : *list)
        if (v >= 0) v = now[at(v)];
    plan_.keep_ops(order_, now);
  }

  Lowered plan_;
  const graph::JointGraph& joint_;
  LaunchMaker made_;
  std::vector<int32_t> order_;  // ops of the problem that remain
  std::set<int32_t> gone_;      // values of the problem that are interior
};

}  // namespace

std::optional<Lowered> with_tiles(Lowered plan, device::Device& device, const PlanOptions& options,
                                  int64_t count) {
  if (plan.registry->tile_rows == nullptr || count < 2) return {};
  return Tiler(std::move(plan), device, options).run(count);
}

int64_t most_tiles(const Lowered& plan) {
  int64_t most = 1;
  for (const auto& [op, tiles] : plan.tiles) most = std::max(most, tiles->count);
  return most;
}

}  // namespace cairn::engine
