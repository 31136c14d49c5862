#include "runtime/compile/update/offloaded_state.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "runtime/base/checked.h"
#include "runtime/compile/cost_query.h"
#include "runtime/compile/homes/gradients.h"
#include "runtime/compile/homes/homes.h"
#include "runtime/compile/homes/host_adds.h"
#include "runtime/compile/homes/state_candidates.h"
#include "runtime/compile/update/host_seconds.h"
#include "runtime/compile/update/host_updates.h"
#include "runtime/compile/update/streamed.h"
#include "runtime/compile/update/traffic.h"
#include "runtime/costs/model.h"
#include "runtime/plan/choices.h"

namespace cairn::engine {
namespace {

using graph::JointOp;

// Of the budget, that state may take which would be dear in a tier; and that it is to take where its share is chosen.
constexpr double kMostDear = 0.7, kDear = 0.5;
constexpr double kWorthStaying = 0.05;  // of a step: an update that waits less for its state may as well
// Of what a micro-batch is longer than its ops, the shares that sums on the host may have.
constexpr double kLonger[] = {0.4, 0.7, 1};
constexpr double kLate = 0.02;  // of a micro-batch, by which sums on the host may end behind it

class Chooser {
 public:
  // cache: nullptr where nothing is solved. ends_gradients: as of give_homes().
  Chooser(CompiledPlan& plan, device::Device& device, const PlanOptions& options, plan::SolverCache* cache,
          bool ends_gradients = true)
      : plan_(plan),
        cache_(cache),
        joint_(*plan.joint),
        costs_(device.info(), options.costs),
        micro_steps_(std::max<uint32_t>(options.micro_steps, 1)),
        ends_gradients_(ends_gradients),
        chooses_deferred_(options.host_updates == PlanOptions::Defer::kWhereFaster),
        candidates_(state_candidates(joint_, costs_)) {
    if (within_reach()) add_reached(joint_, candidates_);
    std::erase_if(candidates_,
                  [&](const StateCandidate& c) { return plan_.offloaded.contains(c.values[0]); });
  }

  int64_t move_within_reach(int64_t bytes) {
    if (!within_reach()) return 0;
    const int64_t before = plan_.problem.persistent_bytes();
    std::vector<bool> taken(candidates_.size());
    int64_t left = bytes;
    for (size_t c = 0; c < candidates_.size() && left > 0; left -= candidates_[c++].bytes) taken[c] = true;
    take_out(taken, 1);
    return before - plan_.problem.persistent_bytes();
  }

  Outcome solve(double limit, bool quick) {
    quick_ = quick;
    limit_ = limit;
    if (plan_.problem.links.empty() || plan_.problem.budget_bytes <= 0 || candidates_.empty()) return find();
    const plan::Problem resident = plan_.problem;
    const std::vector<int32_t> resident_value = plan_.problem_value, resident_layout = plan_.layout_value;
    const std::map<int32_t, OffloadedPlace> before = plan_.offloaded;
    const double update_seconds = plan_.update_seconds;
    const auto find_without = [&](const std::vector<bool>& taken) {
      move_out(taken);
      plan_.update_seconds = update_seconds + streaming_seconds(plan_, costs_);
      return find();
    };
    const std::vector<bool> taken = choose(resident, choices(), *cache_);
    const Outcome found = find_without(taken);
    // What the update needs on the device may be what does not fit: the smallest budget is with all gone.
    if (found.solved != Solved::kOver || std::find(taken.begin(), taken.end(), false) == taken.end())
      return found;
    plan_.problem = resident;
    plan_.problem_value = resident_value;
    plan_.layout_value = resident_layout;
    plan_.offloaded = before;
    return find_without(std::vector<bool>(candidates_.size(), true));
  }

  // Only below `limit` seconds, as far as that is seen before a search.
  Outcome solve_homes(bool overwrites_gradients, double limit, bool quick) {
    quick_ = quick;
    limit_ = limit;
    const CompiledPlan before = plan_;
    std::vector<bool> leaves(candidates_.size(), true);
    int64_t stays = 0;
    Outcome known = solve_homes(overwrites_gradients, leaves, stays, true);
    if (known.solved == Solved::kOver || candidates_.empty()) return known;
    CompiledPlan best = plan_;
    const bool fits = known.solved == Solved::kFits;
    const auto again = [&](int64_t staying) {
      plan_ = before;
      limit_ = known.solved == Solved::kFits ? std::min(limit, seconds(best)) : limit;
      const Outcome now = solve_homes(overwrites_gradients, leaves, staying, false);
      known.least_seconds = std::min(known.least_seconds, now.least_seconds);
      if (now.solved != Solved::kFits || (known.solved == Solved::kFits && seconds(plan_) >= seconds(best)))
        return;
      best = plan_;
      known.solved = now.solved;
      stays = staying;
    };
    // What stays on the device takes no room in a tier: a slower one may not be needed for so much.
    const bool beyond = fits && beyond_first_link();
    if (beyond && stays > 0) again(stays);
    // Nor for optimizer state, which crosses both ways: it is dear on a slower tier, and where the update waits for it. It has its
    // place on the device first.
    double copies = 0;
    for (const StateCandidate& c : candidates_)
      copies += round_trip_seconds(before.problem.links[0], c.bytes);
    const bool waits = copies > kWorthStaying * micro_steps_ *
                                    (known.solved == Solved::kFits ? std::min(limit, seconds(best)) : limit);
    int64_t dear = 0;
    for (size_t c = 0; c < candidates_.size(); ++c) {
      const auto place = best.offloaded.find(candidates_[c].values[0]);
      leaves[c] = !waits && (place == best.offloaded.end() || place->second.tier == best.link_tier[0]);
      if (!leaves[c]) dear += candidates_[c].bytes;
    }
    if (dear > 0 && is_little(dear)) again(beyond ? std::max<int64_t>(0, stays - dear) : 0);
    plan_ = std::move(best);
    return known;
  }

  std::optional<HostBound> bound_with_homes(bool overwrites_gradients, bool states_stay) {
    if (states_stay && !is_little(all_bytes())) return {};
    const std::optional<Alone> alone =
        move_home(overwrites_gradients, std::vector<bool>(candidates_.size(), !states_stay), 0);
    if (!alone || beyond_first_link()) return {};
    share_out(*alone);
    return bound_under_budget(*alone);
  }

 private:
  // Seconds of a step's update where nothing waits for the host, and of what of it streams beside values with homes.
  struct Alone {
    double update, streaming;
  };
  // Where there are several links, weights and gradients have the first one's room before states, which cross less often, and
  // `stays` bytes more than there are: so much of them has to stay on the device. Nothing: none has a home, or there is no room.
  std::optional<Alone> move_home(bool overwrites_gradients, const std::vector<bool>& leaves, int64_t stays) {
    std::vector<plan::Link>& links = plan_.problem.links;
    std::vector<int64_t> homes(links.size(), 0);
    if (links.size() > 1) {
      links[0].capacity_bytes += stays;
      homes = bytes_with_homes(plan_);
    }
    const auto change = [&](int64_t by) {
      for (size_t link = 0; link < links.size(); ++link) links[link].capacity_bytes += by * homes[link];
    };
    change(-1);
    take_out(leaves);
    change(1);
    const double streaming = streaming_seconds(plan_, costs_);
    if (!give_homes(plan_, overwrites_gradients, ends_gradients_)) return {};
    links[0].capacity_bytes -= stays;
    if (!holds_what_may_not_stay()) return {};
    return Alone{plan_.update_seconds + streaming - device_update_seconds(plan_, costs_), streaming};
  }
  void share_out(const Alone& alone) {
    const double more = streaming_seconds(plan_, costs_) - alone.streaming;
    engine::share_out(plan_, std::max(0.0, more) / micro_steps_);
  }
  // Where a micro-batch takes micro_batch seconds at least, and the first one of a step with all updates `first`: it begins behind
  // the device's, beside those of the host. The others follow.
  // both: that first one where what lives at home makes the device's updates longer.
  HostBound bound(const Alone& alone, double micro_batch, double first, double both = 0) const {
    HostBound known{micro_batch + alone.update / micro_steps_};
    if (plan_.host_updated.empty()) return known;
    const double others = (micro_steps_ - 1) * micro_batch;
    known.host = (first + others) / micro_steps_;
    known.both = (both + others) / micro_steps_;
    return known;
  }
  // Whatever the budget.
  HostBound bound(const Alone& alone) const {
    return bound(alone, plan_.problem.op_seconds(), least_seconds_with_host_updates(plan_));
  }
  // enough: seconds of a micro-batch; a bound of so much is not raised any further.
  HostBound bound_under_budget(const Alone& alone, double enough = std::numeric_limits<double>::infinity()) {
    const int64_t budget = plan_.problem.budget_bytes;
    const double micro_batch = cache_->least_seconds(plan_.problem, budget, enough);
    double first = least_seconds_with_host_updates(plan_), both = 0;
    if (micro_batch < enough && !plan_.host_updated.empty() && !plan_.updates_beside_backward()) {
      std::vector<double> earliest = earliest_with_host_updates(plan_);
      for (double& op : earliest) op -= alone.update;
      const auto behind = [&](bool home_costs) {
        return alone.update + cache_->least_seconds_behind(plan_.problem, budget, earliest, home_costs);
      };
      first = std::max(first, behind(false));
      both = behind(true);
    }
    return bound(alone, micro_batch, first, both);
  }

  // stays: as of move_home(); of a plan, it is then how much does. is_first: of the ways to share out the tiers.
  Outcome solve_homes(bool overwrites_gradients, const std::vector<bool>& leaves, int64_t& stays,
                      bool is_first) {
    const std::optional<Alone> alone = move_home(overwrites_gradients, leaves, stays);
    if (!alone) return {Solved::kNothing};
    // Less of what a slower tier has to hold may do, which is tried next.
    const double below = is_first && beyond_first_link() ? std::numeric_limits<double>::infinity() : limit_;
    const double limit = below - alone->update / micro_steps_;
    if (plan_.problem.op_seconds() >= limit) return {Solved::kNothing};
    if (const double least = bound(*alone).seconds(); least >= below) return {Solved::kSlower, least};
    share_out(*alone);
    std::optional<plan::Plan> found =
        cache_->solve_below(plan_.problem, plan_.problem.budget_bytes, limit, quick_);
    if (!found && std::isinf(limit)) return {Solved::kOver};
    if (!found) return {Solved::kSlower, bound_under_budget(*alone, limit).seconds()};
    const double least = bound_under_budget(*alone).seconds();
    plan_.plan = std::move(*found);
    stays = 0;
    for (size_t v = 0; v < plan_.problem.values.size(); ++v)
      if (plan_.problem.values[v].home >= 0 && plan_.plan.home_offsets[v] < 0)
        stays += plan_.problem.values[v].bytes;
    settle_homes(plan_);
    plan_.update_seconds += streaming_seconds(plan_, costs_) - device_update_seconds(plan_, costs_);
    if (chooses_deferred_) choose_deferred(plan_);
    plan_.host_wait_seconds = std::max(0.0, host_wait_seconds(plan_, plan_.update_seconds)) +
                              (micro_steps_ - 1) * host_add_wait_seconds(plan_);
    plan_.update_seconds += plan_.host_wait_seconds;
    return {Solved::kFits, least};
  }

  Outcome find() {
    const int64_t budget = plan_.problem.budget_bytes;
    const double update = plan_.update_seconds / micro_steps_;
    if (!quick_ && !std::isinf(limit_))
      if (const double least = cache_->least_seconds(plan_.problem, budget) + update; least >= limit_)
        return {Solved::kSlower, least};
    std::optional<plan::Plan> found =
        quick_ ? cache_->solve_quickly(plan_.problem, budget) : cache_->solve_within(plan_.problem, budget);
    if (!found) return {quick_ ? Solved::kNothing : Solved::kOver};
    plan_.plan = std::move(*found);
    return {Solved::kFits, plan_.plan.bound_seconds + update};
  }

  bool holds_what_may_not_stay() const {
    std::vector<int64_t> room;
    for (const plan::Link& link : plan_.problem.links) room.push_back(link.capacity_bytes);
    for (const plan::Value& value : plan_.problem.values)
      if (value.at_home()) room[at(value.home)] -= value.bytes;
    return std::all_of(room.begin(), room.end(), [](int64_t left) { return left >= 0; });
  }

  // Of the budget: so much state may stay where it is dear in a tier.
  bool is_little(int64_t state) const {
    return static_cast<double>(state) <= kMostDear * static_cast<double>(plan_.problem.budget_bytes);
  }
  int64_t all_bytes() const {
    int64_t bytes = 0;
    for (const StateCandidate& c : candidates_) bytes += c.bytes;
    return bytes;
  }
  double seconds(const CompiledPlan& plan) const {
    return plan.plan.predicted_seconds + plan.update_seconds / micro_steps_;
  }
  bool beyond_first_link() const {
    const auto beyond = [&](const auto& place) { return place.second.tier != plan_.link_tier[0]; };
    return std::any_of(plan_.homes.begin(), plan_.homes.end(), beyond) ||
           std::any_of(plan_.offloaded.begin(), plan_.offloaded.end(), beyond);
  }

  // What may leave, as far as there is room, is used where it then lies.
  bool within_reach() const { return !plan_.link_tier.empty() && plan_.reaches(plan_.link_tier[0]); }

  std::vector<plan::Choice> choices() const {
    std::vector<plan::Choice> list;
    for (const StateCandidate& c : candidates_) {
      const double copies = within_reach() ? 0 : round_trip_seconds(plan_.problem.links[0], c.bytes);
      list.push_back({c.bytes, std::max(0.0, copies - c.update_seconds) / micro_steps_});
    }
    return list;
  }

  void move_out(const std::vector<bool>& taken) {
    take_out(taken);
    raise_workspace();
  }

  // Of the first `links`.
  void take_out(const std::vector<bool>& taken, size_t links = kTierCount) {
    give_tiers(plan_, candidates_, taken, links);
    std::vector<bool> gone(plan_.problem.values.size());
    for (const auto& [value, place] : plan_.offloaded)
      if (const int32_t stored = plan_.problem_value[at(value)]; stored >= 0) gone[at(stored)] = true;
    remove_values(plan_, gone);
  }

  // The update needs room above what persists: see assemble_update().
  void raise_workspace() {
    if (!plan_.streams() || plan_.problem.ops.empty()) return;
    int64_t master = 0;
    for (const auto& [value, place] : plan_.offloaded)
      if (joint_.values[at(value)].role == graph::Role::kParameter && !plan_.reaches(place.tier))
        master = std::max(master, stored_bytes(joint_, value));
    op_between_steps(plan_).workspace_bytes += master + least_ring_bytes(plan_);
  }

  CompiledPlan& plan_;
  plan::SolverCache* const cache_;
  const graph::JointGraph& joint_;
  const costs::Model costs_;
  const double micro_steps_;
  const bool ends_gradients_, chooses_deferred_;
  std::vector<StateCandidate> candidates_;
  double limit_ = std::numeric_limits<double>::infinity();
  bool quick_ = false;
};

bool overwrites_gradients(const PlanOptions& options) {
  return options.micro_steps == 1 || options.fuse_update;
}

double seconds(const CompiledPlan& plan, const PlanOptions& options) {
  return plan.plan.predicted_seconds + plan.update_seconds / std::max<uint32_t>(options.micro_steps, 1);
}

}  // namespace

Outcome solve_with_offloaded_state(CompiledPlan& plan, device::Device& device, const PlanOptions& options,
                                   plan::SolverCache& cache, double limit, bool quick) {
  return Chooser(plan, device, options, &cache).solve(limit, quick);
}

int64_t move_within_reach(CompiledPlan& plan, device::Device& device, const PlanOptions& options,
                          int64_t bytes) {
  return Chooser(plan, device, options, nullptr).move_within_reach(bytes);
}

Outcome solve_with_homes(CompiledPlan& plan, device::Device& device, const PlanOptions& options,
                         plan::SolverCache& cache, double limit, bool quick) {
  let_gradients_persist(plan);
  if (!plan.host_updated.empty()) keep_states_off_device(plan);
  const CompiledPlan before = plan;
  const HostAddCount adds = choose_host_adds(plan, device, options, 1);
  const auto solve = [&](CompiledPlan& from, double below, bool quickly) {
    return Chooser(from, device, options, &cache).solve_homes(overwrites_gradients(options), below, quickly);
  };
  Outcome known = solve(plan, limit, quick);
  // That a form has more room does not mean that a search finds a faster plan in it: quickly, and as this one where that wins.
  for (const bool quickly : {true, false}) {
    if (quick || !plan.gradients_end || known.solved != Solved::kFits) break;
    CompiledPlan other = before;
    const double below = std::min(limit, seconds(plan, options));
    const Outcome now = Chooser(other, device, options, &cache, false)
                            .solve_homes(overwrites_gradients(options), below, quickly);
    known.least_seconds = std::min(known.least_seconds, now.least_seconds);
    if (now.solved != Solved::kFits || seconds(other, options) >= seconds(plan, options)) break;
    if (!quickly) plan = std::move(other);
  }
  if (adds.chosen == 0 || options.host_adds == PlanOptions::Defer::kAlways) return known;
  const auto again = [&](double stretch) {
    CompiledPlan other = before;
    if (stretch > 0) choose_host_adds(other, device, options, stretch);
    const bool fits = known.solved == Solved::kFits;
    const double below = fits ? std::min(limit, seconds(plan, options)) : limit;
    const Outcome now = solve(other, below, quick || stretch > 0);
    known.least_seconds = std::min(known.least_seconds, now.least_seconds);
    if (now.solved != Solved::kFits || (fits && seconds(other, options) >= seconds(plan, options))) return;
    known.solved = now.solved;
    plan = std::move(other);
  };
  const bool fits = known.solved == Solved::kFits;
  // Where a micro-batch is longer than its ops, the host has time for more.
  const double longest = (fits ? plan.plan.predicted_seconds : limit) / before.problem.op_seconds();
  if (!quick && adds.chosen < adds.all && std::isfinite(longest))
    for (const double share : kLonger) again(1 + share * (longest - 1));
  // Where it ends late, none may be better.
  if (known.solved == Solved::kFits ? host_add_wait_seconds(plan) > kLate * plan.plan.predicted_seconds
                                    : std::isinf(limit))
    again(0);
  return known;
}

double staying_share(const CompiledPlan& plan) {
  if (plan.joint->grad_scale >= 0) return 0;
  double all = 0;
  for (const JointOp& update : plan.joint->ops(graph::kUpdate))
    all += static_cast<double>(state_bytes(*plan.joint, update));
  const double may = kDear * static_cast<double>(plan.problem.budget_bytes);
  return all > may ? 1 - may / all : 0;
}

std::optional<HostBound> host_bound(CompiledPlan plan, device::Device& device, const PlanOptions& options,
                                    bool states_stay, plan::SolverCache& cache) {
  let_gradients_persist(plan);
  keep_states_off_device(plan);
  choose_host_adds(plan, device, options, 1);
  return Chooser(plan, device, options, &cache).bound_with_homes(overwrites_gradients(options), states_stay);
}

}  // namespace cairn::engine
