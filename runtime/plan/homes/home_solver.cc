#include "runtime/plan/homes/home_solver.h"

#include <algorithm>
#include <array>
#include <limits>

#include "runtime/base/error.h"
#include "runtime/plan/cache.h"
#include "runtime/plan/explain.h"
#include "runtime/plan/homes/stream.h"
#include "runtime/plan/layout/layout.h"
#include "runtime/plan/text.h"

namespace cairn::plan {
namespace {

constexpr size_t kProbes = 3;  // numbers of values that stay, looked at between two others, per round
constexpr int kRounds = 3;
constexpr int kLayouts = 4;  // tries to make what is streamed fit, each with less room for copies
// Shares of what a budget has above its persistent values that are left to copies.
constexpr std::array kRoomForCopies = {0.0, 0.0625, 0.125, 0.25};
// Of the ops' seconds: uses that are so close have the value in between.
constexpr std::array kKeep = {0.0, 0.0625, 1e9};
constexpr double kNothing = 1e-9;

int64_t most_alive(const Problem& resolved, const Plan& plan) {
  std::vector<uint8_t> here(resolved.values.size(), 0);
  int64_t alive = resolved.persistent_bytes(), most = alive;
  const auto take = [&](int32_t v) {
    if (resolved.values[v].persistent || here[v]) return;
    here[v] = 1;
    alive += resolved.values[v].bytes;
  };
  for (const Step& step : plan.steps) {
    int64_t workspace = 0;
    if (step.kind == StepKind::kRun) {
      for (const int32_t v : resolved.ops[step.index].outputs) take(v);
      workspace = resolved.ops[step.index].workspace_bytes;
    } else if (step.kind == StepKind::kIn) {
      take(step.index);
    } else if (step.kind == StepKind::kFree) {
      here[step.index] = 0;
      alive -= resolved.values[step.index].bytes;
    }
    most = std::max(most, alive + workspace);
  }
  return most;
}

// Numbers 0 ... count - 1 so that each beginning of the list is spread evenly over all of it.
std::vector<size_t> spread(size_t count) {
  std::vector<size_t> order;
  size_t width = 1;
  while (width < count) width *= 2;
  for (size_t i = 0; i < width; ++i) {
    size_t reversed = 0;
    for (size_t bit = 1, back = width / 2; bit < width; bit *= 2, back /= 2)
      if (i & bit) reversed |= back;
    if (reversed < count) order.push_back(reversed);
  }
  return order;
}

}  // namespace

struct HomeSolver::Placed {
  Placed(const Problem& p, const std::vector<bool>& away)
      : resolved(resolve_homes(p, away)), index(resolved), without(without_homes(resolved)) {}

  // A plan without homes, none of whose ops reads what was changed.
  std::optional<Plan> plan_without(const Problem& p, int64_t budget) {
    for (;;) {
      std::optional<Plan> plan = cache.solve_within(without, budget);
      if (!plan) return plan;
      const std::vector<int32_t> stale = stale_runs(p, *plan);
      if (stale.empty()) return plan;
      for (const int32_t op : stale) without.ops[static_cast<size_t>(op)].recomputable = false;
    }
  }

  // The copies put in, with offsets, where that fits.
  std::optional<Plan> streamed(const Plan& plan, int64_t budget, double keep) const {
    int64_t capacity = budget;
    for (int round = 0; round < kLayouts; ++round) {
      Plan with = plan;
      Streamed s = stream_homes(resolved, without, plan, {capacity, keep});
      with.steps = std::move(s.steps);
      with.predicted_seconds = s.seconds;
      const bool limited = budget < std::numeric_limits<int64_t>::max();
      assign_offsets(resolved, index, with, limited ? budget : 0);
      if (with.arena_bytes <= budget) return with;
      capacity -= with.arena_bytes - budget;
    }
    return {};
  }

  // Every value comes right before the op that uses it, into the room that the plan has for that.
  Plan stalled(const Plan& plan) const {
    Plan with = plan;
    Streamed s = stream_homes(resolved, without, plan, {0, -1});
    with.steps = std::move(s.steps);
    with.predicted_seconds = s.seconds;
    assign_offsets(resolved, index, with, 0);
    if (with.arena_bytes <= plan.arena_bytes) return with;
    put_into_workspaces(plan, with);
    return with;
  }

  const Problem resolved;
  const Index index;
  Problem without;
  SolverCache cache;

 private:
  // The offsets are those of the plan without homes, whose workspaces have room for what an op uses.
  void put_into_workspaces(const Plan& plan, Plan& with) const {
    const auto uses = home_uses(resolved);
    std::vector<int64_t> place(resolved.values.size(), -1);
    size_t next = 0;  // of the plan's steps
    const auto copies_home = [&](const Step& s) {
      return s.kind != StepKind::kRun && with.home_offsets[s.index] >= 0;
    };
    for (size_t s = 0; s < with.steps.size(); ++s) {
      Step& step = with.steps[s];
      if (copies_home(step)) {
        if (step.kind != StepKind::kIn) continue;
        // The next run is the one that it is for.
        size_t run = next;
        while (plan.steps[run].kind != StepKind::kRun) ++run;
        int64_t offset = plan.steps[run].offset + resolved.ops[plan.steps[run].index].workspace_bytes;
        for (const HomeUse& use : uses[plan.steps[run].index]) {
          place[use.value] = offset;
          offset += resolved.values[use.value].bytes;
        }
        step.offset = place[step.index];
        continue;
      }
      const Step& from = plan.steps[next++];
      if (step.kind != StepKind::kRun) {
        step.offset = from.offset;
        continue;
      }
      step.offset = from.offset;
      int64_t offset = from.offset + resolved.ops[step.index].workspace_bytes;
      for (const HomeUse& use : uses[step.index]) {
        place[use.value] = offset;
        offset += resolved.values[use.value].bytes;
      }
      const std::vector<int32_t>& outputs = resolved.ops[step.index].outputs;
      step.offsets.assign(outputs.size(), -1);
      size_t plain = 0;  // outputs that the plan without homes has, too
      for (size_t k = 0; k < outputs.size(); ++k)
        step.offsets[k] = with.home_offsets[outputs[k]] >= 0 ? place[outputs[k]] : from.offsets[plain++];
    }
    with.arena_bytes = plan.arena_bytes;
    with.peak_step = -1;
    for (size_t s = 0; s < with.steps.size() && with.peak_step < 0; ++s) {
      const Step& step = with.steps[s];
      if (step.kind != StepKind::kRun) continue;
      int64_t end = resolved.ops[step.index].workspace_bytes;
      for (const HomeUse& use : uses[step.index]) end += resolved.values[use.value].bytes;
      if (end > 0 && step.offset + end == with.arena_bytes) with.peak_step = static_cast<int32_t>(s);
      for (size_t k = 0; k < step.offsets.size(); ++k)
        if (step.offsets[k] >= 0 &&
            step.offsets[k] + resolved.values[resolved.ops[step.index].outputs[k]].bytes == with.arena_bytes)
          with.peak_step = static_cast<int32_t>(s);
    }
  }
};

HomeSolver::HomeSolver(const Problem& p) : p_(p) {
  std::vector<int64_t> uses(p.values.size(), 0);
  for (const Op& op : p.ops)
    for (const auto* list : {&op.inputs, &op.outputs})
      for (const int32_t v : *list) ++uses[v];
  std::vector<int64_t> room;
  for (const Link& link : p.links) room.push_back(link.capacity_bytes);
  for (const Value& value : p.values)
    if (value.at_home()) room[value.home] -= value.bytes;
  fits_.assign(p.values.size(), true);
  std::vector<int32_t> may_stay;
  for (size_t v = 0; v < p.values.size(); ++v) {
    const Value& value = p.values[v];
    if (value.home < 0 || !value.persistent) continue;
    fits_[v] = value.bytes <= room[value.home];
    if (!fits_[v]) continue;
    room[value.home] -= value.bytes;
    may_stay.push_back(static_cast<int32_t>(v));
  }
  for (const size_t k : spread(may_stay.size())) order_.push_back(may_stay[k]);
  std::stable_sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) { return uses[a] > uses[b]; });
}

HomeSolver::~HomeSolver() = default;

HomeSolver::Placed& HomeSolver::placed(size_t stay) {
  std::unique_ptr<Placed>& known = placed_[stay];
  if (known == nullptr) {
    std::vector<bool> away = fits_;
    for (size_t k = 0; k < stay; ++k) away[order_[k]] = false;
    known = std::make_unique<Placed>(p_, away);
  }
  return *known;
}

// The fastest plan met with so many values that stay.
std::optional<Plan> HomeSolver::best_of(size_t stay, int64_t budget) {
  Placed& at = placed(stay);
  const int64_t floor = at.without.persistent_bytes();
  const bool limited = budget < std::numeric_limits<int64_t>::max();
  std::optional<Plan> best;
  for (const double share : kRoomForCopies) {
    const int64_t room =
        limited ? static_cast<int64_t>(share * static_cast<double>(budget - floor)) : int64_t{0};
    std::optional<Plan> plan = at.plan_without(p_, limited ? budget - room : 0);
    if (!plan) break;
    const double ideal = plan->predicted_seconds;
    const auto consider = [&](std::optional<Plan> with) {
      if (with && (!best || with->predicted_seconds < best->predicted_seconds * (1 - kNothing)))
        best = std::move(with);
    };
    if (share == 0) consider(at.stalled(*plan));
    for (const double keep : kKeep) consider(at.streamed(*plan, budget, keep * at.index.total_seconds));
    if (best && best->predicted_seconds <= ideal * (1 + kNothing)) break;
    if (!limited || stay == order_.size()) break;
  }
  return best;
}

std::optional<Plan> HomeSolver::solve(int64_t budget_bytes) {
  const int64_t budget = budget_bytes > 0 ? budget_bytes : std::numeric_limits<int64_t>::max();
  std::map<size_t, std::optional<Plan>> met;
  const auto probe = [&](size_t stay) -> const std::optional<Plan>& {
    if (!met.contains(stay)) met[stay] = best_of(stay, budget);
    return met[stay];
  };
  const auto seconds = [&](size_t stay) {
    const std::optional<Plan>& plan = probe(stay);
    return plan ? plan->predicted_seconds : std::numeric_limits<double>::infinity();
  };
  const double once = placed(order_.size()).index.total_seconds;
  const auto done = [&](size_t stay) { return finish(placed(stay), *probe(stay), budget_bytes); };
  if (seconds(order_.size()) <= once * (1 + kNothing) || (order_.empty() && probe(0)))
    return done(order_.size());
  if (!probe(0)) return {};
  size_t low = 0, high = order_.size();
  for (int round = 0; round < kRounds && high - low > 1; ++round) {
    for (size_t k = 1; k <= kProbes; ++k) seconds(low + (high - low) * k / (kProbes + 1));
    auto least = met.begin();
    for (auto it = met.begin(); it != met.end(); ++it)
      if (seconds(it->first) < seconds(least->first)) least = it;
    low = least == met.begin() ? least->first : std::prev(least)->first;
    high = std::next(least) == met.end() ? least->first : std::next(least)->first;
  }
  size_t best = 0;  // of equal ones, the one where most stays
  for (const auto& [stay, plan] : met)
    if (seconds(stay) <= seconds(best) * (1 + kNothing)) best = stay;
  return done(best);
}

Plan HomeSolver::smallest() {
  Placed& at = placed(0);
  // The budget that the search names is the one of the plan without homes, every value fetched for each use.
  int64_t least = 0;
  try {
    Problem p = at.without;
    p.budget_bytes = 1;
    least = at.cache.solve(p).arena_bytes;
  } catch (const Error& error) {
    if (error.fault() == nullptr) throw;
    least = static_cast<int64_t>(error.fault()->smallest_budget_bytes);
  }
  return finish(at, at.stalled(*at.plan_without(p_, least)), least);
}

Plan HomeSolver::finish(const Placed& at, Plan plan, int64_t budget_bytes) const {
  Problem all_away = without_homes(resolve_homes(p_, std::vector<bool>(p_.values.size(), true)));
  all_away.links = p_.links;  // what stays takes no room in a tier
  explain(at.resolved, at.index, Rules(at.resolved, at.index, Intervals(at.resolved, at.index)), plan);
  plan.budget_bytes = budget_bytes;
  plan.device_peak_bytes = most_alive(at.resolved, plan);
  plan.predicted_seconds = simulate(at.resolved, plan).seconds;
  plan.keep_all_seconds = at.index.total_seconds;
  plan.bound_seconds = lower_bound_seconds(all_away, Index(all_away), budget_bytes, home_reads(p_));
  plan.gap = plan.bound_seconds > 0 ? (plan.predicted_seconds - plan.bound_seconds) / plan.bound_seconds : 0;
  for (Step& step : plan.steps) {
    if (step.kind != StepKind::kRun) continue;
    std::vector<int64_t> offsets;  // of what stays, too
    size_t next = 0;
    for (const int32_t v : p_.ops[step.index].outputs)
      offsets.push_back(p_.values[v].home >= 0 && at.resolved.values[v].home < 0 ? -1 : step.offsets[next++]);
    step.offsets = std::move(offsets);
  }
  std::vector<int> fetched(p_.values.size(), 0), sent(p_.values.size(), 0);
  for (const Step& step : plan.steps) {
    if (step.kind == StepKind::kIn) ++fetched[step.index];
    if (step.kind == StepKind::kOut) ++sent[step.index];
  }
  for (size_t v = 0; v < p_.values.size(); ++v) {
    if (!at.resolved.values[v].at_home()) continue;
    const int32_t home = at.resolved.values[v].home;
    ValuePlan& value = plan.values[v];
    value.decision = Decision::kOffload;
    value.tier = home;
    value.offset = -1;
    value.first_step = value.last_step = -1;
    for (int32_t s = 0; s < static_cast<int32_t>(plan.steps.size()); ++s) {
      const Step& step = plan.steps[s];
      if (step.kind == StepKind::kRun || step.index != static_cast<int32_t>(v)) continue;
      if (value.first_step < 0) value.first_step = s;
      value.last_step = s;
      if (step.kind == StepKind::kIn && value.offset < 0) value.offset = step.offset;
    }
    value.reason = cat("lives in the tier '", p_.links[home].tier, "': fetched ", fetched[v],
                       " times, brought back ", sent[v], " times");
    plan.tier_peak_bytes[home] += p_.values[v].bytes;
  }
  return plan;
}

}  // namespace cairn::plan
