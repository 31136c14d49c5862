#include "runtime/compile/update/offloaded_state.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/compile/residency/gradients.h"
#include "runtime/compile/residency/host_adds.h"
#include "runtime/compile/update/chooser.h"
#include "runtime/compile/update/host_updates.h"
#include "runtime/compile/update/streamed.h"

namespace cairn::engine {
namespace {

using graph::JointOp;

// The part of the budget that state on the device may have when staying_share() chooses.
constexpr double kDear = 0.5;
// Shares of the time by which a micro-batch is longer than its ops. Sums on the host are tried with each.
constexpr double kLonger[] = {0.4, 0.7, 1};
// Sums on the host may end after a micro-batch by this part of its seconds.
constexpr double kLate = 0.02;

double seconds(const Planned& plan, const PlanOptions& options) {
  return plan.plan.predicted_seconds + plan.update_seconds / std::max<uint32_t>(options.micro_steps, 1);
}

}  // namespace

Outcome solve_with_offloaded_state(const Lowered& plan, device::Device& device, const PlanOptions& options,
                                   plan::SolverCache& cache, double limit, bool quick) {
  return Chooser(plan, device, options, &cache).solve(limit, quick);
}

std::optional<Lowered> with_state_in_reach(const Lowered& plan, device::Device& device,
                                           const PlanOptions& options, int64_t bytes) {
  return Chooser(plan, device, options, nullptr).move_within_reach(bytes);
}

Outcome solve_with_residencies(const Lowered& plan, device::Device& device, const PlanOptions& options,
                               plan::SolverCache& cache, double limit, bool quick) {
  Lowered persisting = let_gradients_persist(plan);
  const Lowered before =
      plan.host_updated.empty() ? std::move(persisting) : with_states_on_host(std::move(persisting));
  const WithHostAdds adds = with_host_adds(before, device, options, 1);
  const auto solve = [&](const Lowered& from, double below, bool quickly, bool ends_gradients = true) {
    return Chooser(from, device, options, &cache, ends_gradients).solve_residencies(below, quickly);
  };
  Outcome known = solve(adds.plan, limit, quick);
  const auto fits = [&] { return known.solved == Solved::kFits; };
  // True: this plan is faster.
  const auto compare = [&](const Outcome& now) {
    known.least_seconds = std::min(known.least_seconds, now.least_seconds);
    return now.solved == Solved::kFits &&
           !(fits() && seconds(*now.plan, options) >= seconds(*known.plan, options));
  };
  // Gradients that end give the search more room, which does not mean that it finds a faster plan. The other form is
  // searched quickly, and with all effort if that wins.
  for (const bool quickly : {true, false}) {
    if (quick || !fits() || !known.plan->gradients_end) break;
    const Outcome now = solve(before, std::min(limit, seconds(*known.plan, options)), quickly, false);
    if (!compare(now)) break;
    if (!quickly) known.plan = now.plan;
  }
  if (adds.chosen == 0 || options.forced.host_adds == ForcedChoices::When::kAlways) return known;
  const auto again = [&](double stretch) {
    const double below = fits() ? std::min(limit, seconds(*known.plan, options)) : limit;
    const Outcome now = stretch > 0
                            ? solve(with_host_adds(before, device, options, stretch).plan, below, true)
                            : solve(before, below, quick);
    if (!compare(now)) return;
    known.solved = now.solved;
    known.plan = now.plan;
  };
  // If a micro-batch is longer than its ops, the host has time for more sums.
  const double longest = (fits() ? known.plan->plan.predicted_seconds : limit) / before.problem.op_seconds();
  if (!quick && adds.chosen < adds.all && std::isfinite(longest))
    for (const double share : kLonger) again(1 + share * (longest - 1));
  // If the sums end late, a plan without them may be faster.
  if (fits() ? host_add_wait_seconds(*known.plan) > kLate * known.plan->plan.predicted_seconds
             : std::isinf(limit))
    again(0);
  return known;
}

double staying_share(const Lowered& plan) {
  if (plan.joint->grad_scale >= 0) return 0;
  double all = 0;
  for (const JointOp& update : plan.joint->ops(graph::kUpdate))
    all += static_cast<double>(state_bytes(*plan.joint, update));
  const double may = kDear * static_cast<double>(plan.problem.budget_bytes);
  return all > may ? 1 - may / all : 0;
}

std::optional<HostBound> host_bound(const Lowered& plan, device::Device& device, const PlanOptions& options,
                                    bool states_stay, plan::SolverCache& cache) {
  const Lowered from =
      with_host_adds(with_states_on_host(let_gradients_persist(plan)), device, options, 1).plan;
  return Chooser(from, device, options, &cache).bound_with_residencies(states_stay);
}

}  // namespace cairn::engine
