#include "runtime/engine/compile/offloaded_state.h"

#include <algorithm>

#include "runtime/base/checked.h"
#include "runtime/costs/model.h"
#include "runtime/engine/compile/cost_query.h"
#include "runtime/engine/compile/homes/homes.h"
#include "runtime/plan/choices.h"

namespace cairn::engine {
namespace {

using graph::JointOp;

size_t at(int32_t i) { return static_cast<size_t>(i); }

int64_t bytes_of(const graph::JointGraph& joint, int32_t value) {
  return align_up(joint.values[at(value)].desc.bytes(), kAlignment);
}

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

// By value: may it be cut into parts that come and go one after the other?
std::vector<bool> splitting(const graph::JointGraph& joint) {
  std::vector<bool> splits(joint.values.size());
  for (const graph::State& state : joint.states) splits[at(state.value)] = state.splits;
  return splits;
}

// Of all states of an update op.
int64_t state_bytes(const graph::JointGraph& joint, const JointOp& update) {
  int64_t bytes = 0;
  for (const int32_t state : states_of(update)) bytes += bytes_of(joint, state);
  return bytes;
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
      list.push_back({op, true, {weight}, bytes_of(joint, weight)});
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
    if (!give_homes(plan_, overwrites_gradients)) return false;
    plan_.plan = cache_.solve(plan_.problem);
    settle_homes(plan_);
    plan_.update_seconds += streaming_seconds();
    return true;
  }

 private:
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
          if (place.tier == plan_.link_tier[link]) bytes += bytes_of(joint_, value);
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
        master = std::max(master, bytes_of(joint_, value));
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

// Fills pieces with parts, in order, one open piece per tier.
class Placer {
 public:
  Placer(CompiledPlan& plan, int64_t most, int64_t max_masters)
      : plan_(plan), joint_(*plan.joint), splits_(splitting(joint_)), max_(most), max_masters_(max_masters) {}

  std::vector<Piece> run() {
    const std::vector<JointOp>& updates = joint_.ops(graph::kUpdate);
    for (size_t i = 0; i < updates.size(); ++i)
      if (const OffloadedPlace* place = streamed_from(plan_, updates[i]))
        this->place(static_cast<int32_t>(i), place->tier);
    for (const Tier tier : {Tier::kHost, Tier::kDisk}) close(open_[static_cast<size_t>(tier)]);
    for (const JointOp& op : updates) {
      const auto weight = plan_.offloaded.find(op.out[0]);
      if (weight == plan_.offloaded.end()) continue;
      const int64_t bytes = bytes_of(joint_, op.out[0]);
      // Small neighbours travel as one.
      const int64_t offset =
          take(weight->second.tier, bytes, bytes > kMinPieceBytes ? kPageBytes : kAlignment);
      weight->second.extents = {{0, joint_.values[at(op.out[0])].desc.bytes(), offset}};
    }
    for (int64_t& bytes : plan_.offloaded_bytes) bytes = align_up(bytes, kPageBytes);
    for (auto& [value, place] : plan_.homes)
      place.extents = {{0, joint_.values[at(value)].desc.bytes(),
                        plan_.offloaded_bytes[static_cast<size_t>(place.tier)] +
                            plan_.plan.home_offsets[at(plan_.problem_value[at(value)])]}};
    return std::move(pieces_);
  }

 private:
  struct Open {
    Piece piece;
    int64_t masters = 0;
  };

  void place(int32_t op, Tier tier) {
    Open& open = open_[static_cast<size_t>(tier)];
    Piece& piece = open.piece;
    const JointOp& update = joint_.ops(graph::kUpdate)[at(op)];
    const int32_t weight = update.out[update_op::kParameter];
    const std::span<const int32_t> states = states_of(update);
    const bool parts = streams_in_parts(plan_, update);
    const bool resident = !states.empty() && plan_.away(states[0]) == nullptr;
    if (!parts && (states.empty() || resident || !splits_[at(states[0])])) return place_whole(op, tier);
    const int32_t gradient = update.in[update_op::kGrad];
    std::vector<int32_t> beside, rest;
    for (const int32_t v : {weight, gradient})
      (parts && plan_.away(v) != nullptr ? beside : rest).push_back(v);
    const Cut cut(joint_, states, beside, rest);
    const int64_t master = whole_values(plan_, update).bytes;
    const int64_t elements = joint_.values[at(weight)].desc.shape.elements(), whole = cut.bytes(elements);
    const auto room = [&] { return piece.bytes + piece.beside; };
    if (room() + whole > max_ || open.masters + master > max_masters_) close(open);
    for (int64_t begin = 0; begin < elements;) {
      const int64_t left = elements - begin, count = cut.bytes(left) <= max_ ? left : cut.most(max_);
      if (room() + cut.bytes(count) > max_) close(open);
      piece.tier = tier;
      Part part{op, begin, count, {}};
      for (size_t k = 0; k < states.size(); ++k) {
        part.offsets[k] = piece.bytes;
        piece.bytes += align_up(stored(states[k]).bytes(count), kAlignment);
      }
      for (const int32_t v : beside) {
        (v == weight ? part.weight : part.gradient) = piece.beside;
        piece.beside += align_up(stored(v).bytes(count), kAlignment);
      }
      piece.parts.push_back(part);
      begin += count;
    }
    open.masters += master;
    if (master > 0 && whole > max_) close(open);
  }

  // Its states one after the other; they may be of other shapes than the parameter.
  void place_whole(int32_t op, Tier tier) {
    Open& open = open_[static_cast<size_t>(tier)];
    Piece& piece = open.piece;
    const JointOp& update = joint_.ops(graph::kUpdate)[at(op)];
    const int32_t weight = update.out[update_op::kParameter];
    const int64_t master = whole_values(plan_, update).bytes;
    const std::span<const int32_t> states = states_of(update);
    const bool away = !states.empty() && plan_.away(states[0]) != nullptr;
    const int64_t whole = away ? state_bytes(joint_, update) : 0;
    if (piece.bytes + piece.beside + whole > max_ || open.masters + master > max_masters_) close(open);
    piece.tier = tier;
    Part part{op, 0, joint_.values[at(weight)].desc.shape.elements(), {}};
    for (size_t k = 0; away && k < states.size(); ++k) {
      part.offsets[k] = piece.bytes;
      piece.bytes += bytes_of(joint_, states[k]);
    }
    piece.parts.push_back(part);
    open.masters += master;
    if (whole > max_) close(open);
  }

  void close(Open& open) {
    Piece& piece = open.piece;
    if (piece.parts.empty()) return;
    if (piece.bytes > 0) piece.tier_offset = take(piece.tier, piece.bytes, kPageBytes);
    for (Part& part : piece.parts) {
      for (int64_t* beside : {&part.weight, &part.gradient})
        if (*beside >= 0) *beside += piece.bytes;
      const std::span<const int32_t> states = states_of(joint_.ops(graph::kUpdate)[at(part.op)]);
      if (states.empty() || plan_.away(states[0]) == nullptr) continue;
      for (size_t k = 0; k < states.size(); ++k) {
        const TensorDesc& desc = joint_.values[at(states[k])].desc;
        const Format& f = format(desc.dtype);
        const int64_t place = piece.tier_offset + part.offsets[k];
        plan_.offloaded.at(states[k]).extents.push_back(
            splits_[at(states[k])] ? OffloadedPlace::Extent{f.bytes(part.begin), f.bytes(part.count), place}
                                   : OffloadedPlace::Extent{0, desc.bytes(), place});
      }
    }
    pieces_.push_back(std::exchange(piece, {}));
    open.masters = 0;
  }

  const Format& stored(int32_t value) const { return format(joint_.values[at(value)].desc.dtype); }

  int64_t take(Tier tier, int64_t bytes, int64_t alignment) {
    int64_t& used = plan_.offloaded_bytes[static_cast<size_t>(tier)];
    const int64_t offset = align_up(used, alignment);
    used = offset + bytes;
    return offset;
  }

  CompiledPlan& plan_;
  const graph::JointGraph& joint_;
  const std::vector<bool> splits_;
  const int64_t max_, max_masters_;
  std::array<Open, kTierCount> open_;
  std::vector<Piece> pieces_;
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

std::vector<Piece> place_offloaded_state(CompiledPlan& plan, int64_t most, int64_t max_masters) {
  for (auto* places : {&plan.offloaded, &plan.homes})
    for (auto& [value, place] : *places) place.extents.clear();
  plan.offloaded_bytes = {};
  return Placer(plan, most, max_masters).run();
}

int64_t least_ring_bytes(const CompiledPlan& plan) {
  const graph::JointGraph& joint = *plan.joint;
  const std::vector<bool> splits = splitting(joint);
  int64_t states = 0, largest = 0;
  for (const JointOp& update : joint.ops(graph::kUpdate)) {
    if (streams_in_parts(plan, update))
      for (const int32_t v : {update.out[update_op::kParameter], update.in[update_op::kGrad]})
        if (plan.away(v) != nullptr) states += bytes_of(joint, v);
    const std::span<const int32_t> own = states_of(update);
    if (own.empty() || !plan.offloaded.contains(own[0])) continue;
    const int64_t bytes = state_bytes(joint, update);
    states += bytes;
    if (!splits[at(own[0])]) largest = std::max(largest, bytes);
  }
  return std::max(std::min(states, kSlots * kMinPieceBytes), largest);
}

const OffloadedPlace* streamed_from(const CompiledPlan& plan, const JointOp& update) {
  const std::span<const int32_t> states = states_of(update);
  if (!states.empty() && plan.away(states[0]) != nullptr) return plan.away(states[0]);
  const WholeValues whole = whole_values(plan, update);
  for (const auto* list : {&whole.fetched, &whole.made})
    if (!list->empty()) return plan.away(list->front());
  if (!streams_in_parts(plan, update)) return nullptr;
  const OffloadedPlace* weight = plan.away(update.out[update_op::kParameter]);
  return weight != nullptr ? weight : plan.away(update.in[update_op::kGrad]);
}

std::span<const int32_t> states_of(const JointOp& update) {
  const size_t end = std::min(update.out.size(), static_cast<size_t>(update_op::kPacked));
  size_t count = update_op::kFirstState;
  while (count < end && update.out[count] >= 0) ++count;
  return std::span(update.out).subspan(update_op::kFirstState, count - update_op::kFirstState);
}

std::vector<int32_t> packed_weights_of(const graph::JointGraph& joint, int32_t weight) {
  std::vector<int32_t> packed_weights;
  for (size_t i = 0; i < joint.ops(graph::kRepack).size(); ++i)
    if (joint.ops(graph::kRepack)[i].in[0] == weight) packed_weights.push_back(static_cast<int32_t>(i));
  return packed_weights;
}

}  // namespace cairn::engine
