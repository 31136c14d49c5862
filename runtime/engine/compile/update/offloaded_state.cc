#include "runtime/engine/compile/update/offloaded_state.h"

#include <algorithm>

#include "runtime/base/checked.h"
#include "runtime/costs/model.h"
#include "runtime/engine/compile/cost_query.h"
#include "runtime/engine/compile/homes/homes.h"
#include "runtime/engine/compile/update/streamed.h"
#include "runtime/plan/choices.h"

namespace cairn::engine {
namespace {

using graph::JointOp;

size_t at(int32_t i) { return static_cast<size_t>(i); }

// State that leaves together: that of an update op, or its master weight.
struct Candidate {
  int32_t op;  // index into the update phase
  bool master;
  std::vector<int32_t> values;
  int64_t bytes = 0;
};

// A weight that no op of the micro-batch reads, and the host reads through copies: its packs are what is
// used.
std::vector<bool> read_by_ops(const graph::JointGraph& joint) {
  std::vector<bool> read(joint.values.size());
  for (const JointOp& op : joint.ops())
    for (const auto* list : {&op.in, &op.out})
      for (const int32_t v : *list)
        if (v >= 0) read[at(joint.storage(v))] = true;
  for (size_t v = 0; v < joint.values.size(); ++v)
    if (joint.values[v].alias_of >= 0) read[at(joint.storage(static_cast<int32_t>(v)))] = true;
  return read;
}

// An optimizer without state has nothing to stream; its master weights stay, too.
std::vector<Candidate> candidates(const graph::JointGraph& joint) {
  const std::vector<bool> read = read_by_ops(joint);
  const std::vector<JointOp>& updates = joint.ops(graph::kUpdate);
  std::vector<Candidate> list;
  for (size_t i = 0; i < updates.size(); ++i) {
    const auto op = static_cast<int32_t>(i);
    const int32_t weight = updates[i].out[update_op::kParameter];
    Candidate states{op, false, {}, 0};
    for (const int32_t state : states_of(updates[i])) states.values.push_back(state);
    states.bytes = state_bytes(joint, updates[i]);
    if (states.values.empty()) continue;
    list.push_back(std::move(states));
    if (!read[at(weight)] && !packed_weights_of(joint, weight).empty())
      list.push_back({op, true, {weight}, stored_bytes(joint, weight)});
  }
  return list;
}

class Chooser {
 public:
  Chooser(CompiledPlan& plan, device::Device& device, const PlanOptions& options, plan::SolverCache& cache)
      : plan_(plan),
        cache_(cache),
        joint_(*plan.joint),
        costs_(device.info(), options.costs),
        micro_steps_(std::max<uint32_t>(options.micro_steps, 1)),
        candidates_(candidates(joint_)) {}

  void solve() {
    if (plan_.problem.links.empty() || plan_.problem.budget_bytes <= 0 || candidates_.empty()) {
      plan_.plan = cache_.solve(plan_.problem);
      return;
    }
    const plan::Problem resident = plan_.problem;
    const std::vector<int32_t> resident_value = plan_.problem_value, resident_layout = plan_.layout_value;
    const std::vector<bool> taken = choose(resident, choices(), cache_);
    move_out(taken);
    const double update_seconds = plan_.update_seconds;
    try {
      plan_.plan = cache_.solve(plan_.problem);
    } catch (const Error& error) {
      // What the update needs on the device may be what does not fit: the smallest budget is with all gone.
      if (error.code() != Code::kOverBudget || std::find(taken.begin(), taken.end(), false) == taken.end())
        throw;
      plan_.problem = resident;
      plan_.problem_value = resident_value;
      plan_.layout_value = resident_layout;
      plan_.offloaded.clear();
      move_out(std::vector<bool>(candidates_.size(), true));
      plan_.plan = cache_.solve(plan_.problem);
    }
    plan_.update_seconds = update_seconds + streaming_seconds();
  }

  bool solve_homes(bool overwrites_gradients) {
    take_out(std::vector<bool>(candidates_.size(), true));
    const double alone = streaming_seconds();
    if (!give_homes(plan_, overwrites_gradients)) return false;
    share_out(std::max(0.0, streaming_seconds() - alone) / micro_steps_);
    plan_.plan = cache_.solve(plan_.problem);
    settle_homes(plan_);
    plan_.update_seconds += streaming_seconds();
    return true;
  }

 private:
  // What the update takes longer when all of this leaves, among the values by their bytes.
  void share_out(double seconds) {
    double bytes = 0;
    for (const plan::Value& value : plan_.problem.values)
      if (value.home >= 0) bytes += static_cast<double>(value.bytes);
    for (plan::Value& value : plan_.problem.values)
      if (value.home >= 0) value.home_seconds = seconds * static_cast<double>(value.bytes) / bytes;
  }

  std::vector<plan::Choice> choices() const {
    std::vector<plan::Choice> list;
    for (const Candidate& c : candidates_) {
      const double compute = c.master ? 0 : compute_seconds(c.op);
      list.push_back(
          {c.bytes, std::max(0.0, copy_seconds(plan_.problem.links[0], c.bytes) - compute) / micro_steps_});
    }
    return list;
  }

  double compute_seconds(int32_t op) const {
    return costs_.seconds(query_of(joint_, joint_.ops(graph::kUpdate)[at(op)])).seconds;
  }

  // Of bytes that go in and out again, both at once.
  static double copy_seconds(const plan::Link& link, int64_t bytes) {
    const auto pieces = static_cast<double>((bytes + kPieceBytes - 1) / kPieceBytes);
    const double slower = std::min(link.in_bytes_per_second, link.out_bytes_per_second);
    return pieces * link.latency_seconds + static_cast<double>(bytes) / (slower * link.both_ways_factor);
  }

  // What the update takes longer because of copies: they overlap all of its kernels but the first one's and
  // the last one's.
  double streaming_seconds() const {
    double copies = 0, kernels = 0, ends = 0;
    for (size_t link = 0; link < plan_.link_tier.size(); ++link) {
      const plan::Link& l = plan_.problem.links[link];
      int64_t bytes = 0;
      for (const auto* places : {&plan_.offloaded, &plan_.homes})
        for (const auto& [value, place] : *places)
          if (place.tier == plan_.link_tier[link] && joint_.slices_of(value) == nullptr)
            bytes += stored_bytes(joint_, value);
      if (bytes == 0) continue;
      copies += copy_seconds(l, bytes);
      const auto piece = static_cast<double>(std::max(std::min(bytes, kPieceBytes), least_ring_bytes(plan_)));
      ends = std::max(ends,
                      2 * l.latency_seconds + piece / l.in_bytes_per_second + piece / l.out_bytes_per_second);
    }
    if (copies == 0) return 0;
    for (size_t op = 0; op < joint_.ops(graph::kUpdate).size(); ++op)
      kernels += compute_seconds(static_cast<int32_t>(op));
    return ends + std::max(0.0, copies - kernels);
  }

  // Pieces begin at pages. Those of blocks end anywhere: at worst three of 8320 bytes take seven pages.
  int64_t between_pieces(const Candidate& candidate) const {
    const auto whole_pages = [&](int32_t v) { return format(joint_.values[at(v)].desc.dtype).block == 1; };
    return std::all_of(candidate.values.begin(), candidate.values.end(), whole_pages) ? 0
                                                                                      : candidate.bytes / 6;
  }

  void move_out(const std::vector<bool>& taken) {
    take_out(taken);
    raise_workspace();
  }

  // Gives what is taken the first tier with room, out of which copies of activations lose it.
  void take_out(const std::vector<bool>& taken) {
    for (size_t c = 0; c < candidates_.size(); ++c) {
      const Candidate& candidate = candidates_[c];
      // A master weight is updated where its optimizer state is streamed.
      const bool leaves =
          taken[c] && (!candidate.master || plan_.offloaded.contains(candidates_[c - 1].values[0]));
      if (!leaves) continue;
      for (size_t link = 0; link < plan_.link_tier.size(); ++link) {
        int64_t& capacity = plan_.problem.links[link].capacity_bytes;
        const int64_t needed = candidate.bytes + 2 * kPageBytes + between_pieces(candidate);
        if (capacity < needed) continue;
        capacity -= needed;
        for (const int32_t value : candidate.values) plan_.offloaded[value] = {plan_.link_tier[link], {}};
        break;
      }
    }
    std::vector<bool> gone(plan_.problem.values.size());
    for (const auto& [value, place] : plan_.offloaded) gone[at(plan_.problem_value[at(value)])] = true;
    remove_values(plan_, gone);
  }

  // The update needs room above what persists: see assemble_update(). The first op's workspace stands for it.
  void raise_workspace() {
    if (plan_.offloaded.empty() || plan_.problem.ops.empty()) return;
    int64_t master = 0;
    for (const auto& [value, place] : plan_.offloaded)
      if (joint_.values[at(value)].role == graph::Role::kParameter)
        master = std::max(master, stored_bytes(joint_, value));
    int64_t& workspace = plan_.problem.ops.front().workspace_bytes;
    workspace += master + least_ring_bytes(plan_);
  }

  CompiledPlan& plan_;
  plan::SolverCache& cache_;
  const graph::JointGraph& joint_;
  const costs::Model costs_;
  const double micro_steps_;
  const std::vector<Candidate> candidates_;
};

}  // namespace

void solve_with_offloaded_state(CompiledPlan& plan, device::Device& device, const PlanOptions& options,
                                plan::SolverCache& cache) {
  Chooser(plan, device, options, cache).solve();
}

bool solve_with_homes(CompiledPlan& plan, device::Device& device, const PlanOptions& options) {
  plan::SolverCache cache;
  return Chooser(plan, device, options, cache).solve_homes(options.micro_steps == 1 && !options.fuse_update);
}

void remove_values(CompiledPlan& plan, const std::vector<bool>& gone) {
  std::vector<int32_t> now(gone.size(), -1);
  std::vector<plan::Value> values;
  for (size_t v = 0; v < gone.size(); ++v) {
    if (gone[v]) continue;
    now[v] = static_cast<int32_t>(values.size());
    values.push_back(std::move(plan.problem.values[v]));
  }
  plan.problem.values = std::move(values);
  const auto move = [&](int32_t& v) { v = v < 0 ? v : now[at(v)]; };
  for (int32_t& v : plan.problem_value) move(v);
  for (int32_t& v : plan.layout_value) move(v);
  for (plan::Op& op : plan.problem.ops)
    for (auto* list : {&op.inputs, &op.outputs})
      for (int32_t& v : *list) move(v);
}

}  // namespace cairn::engine
