#include "runtime/plan/residency/placement.h"

#include <algorithm>
#include <limits>

#include "runtime/plan/bound/bound.h"
#include "runtime/plan/layout/layout.h"
#include "runtime/plan/residency/overflow.h"
#include "runtime/plan/residency/traffic.h"

namespace cairn::plan {
namespace {

// Per link: most bytes of copies held at once, without those of tier-resident values.
std::vector<int64_t> tier_peaks(const Problem& p, const std::vector<Step>& steps) {
  std::vector<int64_t> bytes(p.links.size(), 0), most(p.links.size(), 0);
  for (const Step& step : steps) {
    if (step.kind != StepKind::kOut && step.kind != StepKind::kDrop) continue;
    const auto v = static_cast<size_t>(step.index), tier = static_cast<size_t>(step.tier);
    if (p.values[v].at_home()) continue;
    bytes[tier] += step.kind == StepKind::kOut ? p.values[v].bytes : -p.values[v].bytes;
    most[tier] = std::max(most[tier], bytes[tier]);
  }
  return most;
}

constexpr double kAtTheBound = 1e-3;    // gaps to the bound that no search would close
constexpr double kNearTheBound = 1e-2;  // of many ops: gaps of which long searches close little
constexpr int kStreamLayouts = 4;       // attempts to make the copies fit, each with less room for them
constexpr int kSmallLayouts = 16;       // the same for few ops, where an attempt takes little
constexpr int64_t kStreamLayoutPart = 128;
constexpr int kCloseLayouts = 2;  // the first attempts, which leave room only where something does not fit

}  // namespace

Placement::Placement(const Problem& p, const std::vector<bool>& away, int threads)
    : p_(p),
      resolved_(resolve_homes(p, away)),
      index_(resolved_),
      without_(without_homes(resolved_)),
      links_(without_.links),
      index_without_(without_),
      solvers_(threads),
      least_bytes_(plan::least_bytes(without_, index_without_)),
      link_seconds_(least_link_seconds(resolved_, 0, {})) {
  without_.links = links_beside_homes(resolved_, index_, links_);
  for (const Value& value : resolved_.values)
    if (value.at_home()) home_seconds_ += value.home_seconds;
}

// With the full rates of the links, as if no tier-resident value used them.
double Placement::least_seconds(int64_t budget_bytes) {
  std::swap(without_.links, links_);
  const double bound = rough_bound_seconds(without_, index_without_, budget_bytes);
  std::swap(without_.links, links_);
  return std::max(bound, link_seconds_);
}

// If a plan runs an op again that reads a changed value, that op may not run again in the next attempt. That holds
// for this question only: the plans of other questions may never run it again.
template <class Ask>
std::optional<Plan> Placement::without_stale_runs(Ask ask) {
  std::optional<Problem> forbidding;
  for (;;) {
    std::optional<Plan> plan = ask(forbidding ? *forbidding : without_);
    if (!plan) return plan;
    const std::vector<int32_t> stale = stale_runs(p_, *plan);
    if (stale.empty()) return plan;
    if (!forbidding) forbidding = without_;
    for (const int32_t op : stale) forbidding->ops[static_cast<size_t>(op)].recomputable = false;
  }
}

std::optional<Plan> Placement::plan_without(int64_t budget_bytes, Effort effort) {
  const auto with = [&](Effort how) {
    return without_stale_runs([&](const Problem& p) {
      return solvers_.ask(p, [&](Solver& solver) { return solver.solve(budget_bytes, how); });
    });
  };
  if (effort == Effort::kQuick) return with(Effort::kQuick);
  const bool tiny = without_.ops.size() <= kTinyProblem;  // the limit that Trials uses, too
  std::optional<Plan> plan = with(tiny ? Effort::kQuick : Effort::kRough);
  if (effort == Effort::kRough || (plan && plan->gap <= (tiny ? kAtTheBound : kNearTheBound))) return plan;
  if ((plan = with(Effort::kWhole))) return plan;
  // A policy may want such ops to run again. Without these runs a plan may need less memory than the question above
  // assumed.
  Plan least = smallest_without();
  if (budget_bytes == 0 || least.arena_bytes <= budget_bytes) plan = std::move(least);
  return plan;
}

Plan Placement::smallest_without() {
  return *without_stale_runs([&](const Problem& p) {
    return solvers_.ask(p, [](Solver& solver) { return std::optional(solver.smallest()); });
  });
}

Streamed Placement::stream(const Plan& plan, int64_t budget, double keep, const Streamed* less) const {
  return stream_homes(resolved_, plan, {budget, keep}, less);
}

Placement::Copies Placement::streamed(const Plan& plan, int64_t budget, double keep, double limit,
                                      int64_t layout_effort) const {
  return fitted(plan, stream(plan, budget, keep), budget, keep, limit, layout_effort);
}

Placement::Copies Placement::fitted(const Plan& plan, Streamed s, int64_t budget, double keep, double limit,
                                    int64_t layout_effort) const {
  Streaming how{budget, keep, {}};
  const int close = layout_effort > 0 ? kCloseLayouts : 0;
  const int rounds = close + (resolved_.ops.size() <= kSmallProblem ? kSmallLayouts : kStreamLayouts);
  for (int round = 0; round < rounds; ++round) {
    if (round > 0) s = stream_homes(resolved_, plan, how);
    if (s.seconds >= limit) return {s.seconds, {}};
    Plan with = plan;
    with.steps = std::move(s.steps);
    with.predicted_seconds = s.seconds;
    with.tier_peak_bytes = tier_peaks(resolved_, with.steps);
    const bool limited = budget < std::numeric_limits<int64_t>::max();
    assign_offsets(resolved_, index_, with, limited ? budget : 0, layout_effort);
    if (with.arena_bytes <= budget) return {s.seconds, std::move(with)};
    if (round < close) {
      how.reserved_bytes.resize(plan.steps.size(), 0);
      reserve_overflow(resolved_, with, s.from, budget, how.reserved_bytes);
      continue;
    }
    // A small reduction may change nothing where a larger one does.
    how.capacity_bytes -= with.arena_bytes - budget + (round - close) * (budget / kStreamLayoutPart);
  }
  return {};
}

double Placement::stalled_seconds(const Plan& plan) const {
  return stream_homes(resolved_, plan, {0, -1}).seconds;
}

Plan Placement::stalled(const Plan& plan) const {
  Plan with = plan;
  Streamed s = stream_homes(resolved_, plan, {0, -1});
  with.steps = std::move(s.steps);
  with.predicted_seconds = s.seconds;
  with.tier_peak_bytes = tier_peaks(resolved_, with.steps);
  assign_offsets(resolved_, index_, with, 0);
  if (with.arena_bytes <= plan.arena_bytes) return with;
  put_into_workspaces(plan, with);
  return with;
}

// The offsets are those of the plan without values that live in tiers, whose workspaces have room for what an op uses.
void Placement::put_into_workspaces(const Plan& plan, Plan& with) const {
  const auto uses = home_uses(resolved_);
  std::vector<int64_t> place(resolved_.values.size(), -1);
  size_t next = 0;  // the next step of the plan
  const auto copies_home = [&](const Step& s) {
    return s.kind != StepKind::kRun && with.home_offsets[s.index] >= 0;
  };
  for (size_t s = 0; s < with.steps.size(); ++s) {
    Step& step = with.steps[s];
    if (copies_home(step)) {
      if (step.kind != StepKind::kIn) continue;
      // The next run of the plan is the one that the copy is for.
      size_t run = next;
      while (plan.steps[run].kind != StepKind::kRun) ++run;
      int64_t offset = plan.steps[run].offset + resolved_.ops[plan.steps[run].index].workspace_bytes;
      for (const HomeUse& use : uses[plan.steps[run].index]) {
        place[use.value] = offset;
        offset += resolved_.values[use.value].bytes;
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
    int64_t offset = from.offset + resolved_.ops[step.index].workspace_bytes;
    for (const HomeUse& use : uses[step.index]) {
      place[use.value] = offset;
      offset += resolved_.values[use.value].bytes;
    }
    const std::vector<int32_t>& outputs = resolved_.ops[step.index].outputs;
    step.offsets.assign(outputs.size(), -1);
    size_t plain = 0;  // position among the outputs without those that live in tiers
    for (size_t k = 0; k < outputs.size(); ++k)
      step.offsets[k] = with.home_offsets[outputs[k]] >= 0 ? place[outputs[k]] : from.offsets[plain++];
  }
  with.arena_bytes = plan.arena_bytes;
  with.peak_step = -1;
  for (size_t s = 0; s < with.steps.size() && with.peak_step < 0; ++s) {
    const Step& step = with.steps[s];
    if (step.kind != StepKind::kRun) continue;
    int64_t end = resolved_.ops[step.index].workspace_bytes;
    for (const HomeUse& use : uses[step.index]) end += resolved_.values[use.value].bytes;
    if (end > 0 && step.offset + end == with.arena_bytes) with.peak_step = static_cast<int32_t>(s);
    for (size_t k = 0; k < step.offsets.size(); ++k)
      if (step.offsets[k] >= 0 &&
          step.offsets[k] + resolved_.values[resolved_.ops[step.index].outputs[k]].bytes == with.arena_bytes)
        with.peak_step = static_cast<int32_t>(s);
  }
}

}  // namespace cairn::plan
