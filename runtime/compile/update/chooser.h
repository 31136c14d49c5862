// Chooses what is offloaded before and while a problem is solved: which tiers take optimizer state, master weights,
// weights and gradients. Internal to offloaded_state.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "runtime/base/checked.h"
#include "runtime/compile/cost_query.h"
#include "runtime/compile/residency/homes.h"
#include "runtime/compile/residency/host_adds.h"
#include "runtime/compile/residency/state_candidates.h"
#include "runtime/compile/update/host_seconds.h"
#include "runtime/compile/update/host_updates.h"
#include "runtime/compile/update/offloaded_state.h"
#include "runtime/compile/update/streamed.h"
#include "runtime/compile/update/traffic.h"
#include "runtime/costs/model.h"
#include "runtime/plan/choices.h"

namespace cairn::engine {

// State may be kept on the device, where its copies take long, if it takes at most this part of the budget.
inline constexpr double kMostDear = 0.7;
// An update may wait for its state if that takes less than this part of a step.
inline constexpr double kWorthStaying = 0.05;

class Chooser {
 public:
  // cache: nullptr if nothing is solved. ends_gradients: as for with_residencies().
  Chooser(const Lowered& from, device::Device& device, const PlanOptions& options, plan::SolverCache* cache,
          bool ends_gradients = true)
      : from_(from),
        cache_(cache),
        joint_(*from.joint),
        costs_(device.info(), options.costs),
        micro_steps_(std::max<uint32_t>(options.micro_steps, 1)),
        overwrites_gradients_(options.micro_steps == 1 || options.fuse_update),
        ends_gradients_(ends_gradients),
        chooses_deferred_(options.forced.host_updates == ForcedChoices::When::kWhereFaster),
        candidates_(state_candidates(joint_, costs_)) {
    if (within_reach()) add_reached(joint_, candidates_);
    std::erase_if(candidates_,
                  [&](const StateCandidate& c) { return from_.offloaded.contains(c.values[0]); });
  }

  std::optional<Lowered> move_within_reach(int64_t bytes) const {
    if (!within_reach()) return {};
    std::vector<bool> taken(candidates_.size());
    int64_t left = bytes;
    for (size_t c = 0; c < candidates_.size() && left > 0; left -= candidates_[c++].bytes) taken[c] = true;
    Lowered moved = without_state(from_, taken, 1);
    if (moved.problem.persistent_bytes() == from_.problem.persistent_bytes()) return {};
    return moved;
  }

  Outcome solve(double limit, bool quick) const {
    if (from_.problem.links.empty() || from_.problem.budget_bytes <= 0 || candidates_.empty())
      return find(from_, limit, quick);
    const auto find_without = [&](const std::vector<bool>& taken) {
      Lowered plan = with_ring_room(without_state(from_, taken));
      plan.update_seconds += streaming_seconds(plan, costs_);
      return find(std::move(plan), limit, quick);
    };
    const std::vector<bool> taken = choose(from_.problem, choices(), *cache_);
    Outcome found = find_without(taken);
    // The update's room on the device may be what does not fit. The smallest budget is with all state offloaded.
    if (found.solved != Solved::kOver || std::find(taken.begin(), taken.end(), false) == taken.end())
      return found;
    return find_without(std::vector<bool>(candidates_.size(), true));
  }

  // Looks for plans below `limit` seconds, as far as bounds show that before a search.
  Outcome solve_residencies(double limit, bool quick) const {
    std::vector<bool> leaves(candidates_.size(), true);
    const Sharing first = share_tiers(leaves, 0, true, limit, quick);
    if (first.outcome.solved == Solved::kOver || candidates_.empty()) return first.outcome;
    Outcome known = first.outcome;
    int64_t stays = first.stays;
    std::map<int32_t, OffloadedPlace> offloaded = first.offloaded;
    const auto fits = [&] { return known.solved == Solved::kFits; };
    const auto again = [&](int64_t staying) {
      const double below = fits() ? std::min(limit, seconds(*known.plan)) : limit;
      const Sharing now = share_tiers(leaves, staying, false, below, quick);
      known.least_seconds = std::min(known.least_seconds, now.outcome.least_seconds);
      if (now.outcome.solved != Solved::kFits ||
          (fits() && seconds(*now.outcome.plan) >= seconds(*known.plan)))
        return;
      known.plan = now.outcome.plan;
      known.solved = now.outcome.solved;
      stays = staying;
      offloaded = now.offloaded;
    };
    // A value on the device takes no room in a tier: a slower tier may not be needed for so many bytes.
    const bool beyond = fits() && beyond_first_link(*known.plan);
    if (beyond && stays > 0) again(stays);
    // The same holds for optimizer state. It crosses the link both ways. That takes long on a slow tier, and where
    // the update waits for it. So the device's room goes to it first.
    double copies = 0;
    for (const StateCandidate& c : candidates_) copies += round_trip_seconds(from_.problem.links[0], c.bytes);
    const bool waits =
        copies > kWorthStaying * micro_steps_ * (fits() ? std::min(limit, seconds(*known.plan)) : limit);
    int64_t dear = 0;
    for (size_t c = 0; c < candidates_.size(); ++c) {
      const auto place = offloaded.find(candidates_[c].values[0]);
      leaves[c] = !waits && (place == offloaded.end() || place->second.tier == from_.link_tier[0]);
      if (!leaves[c]) dear += candidates_[c].bytes;
    }
    if (dear > 0 && is_little(dear)) again(beyond ? std::max<int64_t>(0, stays - dear) : 0);
    return known;
  }

  std::optional<HostBound> bound_with_residencies(bool states_stay) const {
    if (states_stay && !is_little(all_bytes())) return {};
    const std::optional<Posed> posed = pose(without(std::vector<bool>(candidates_.size(), !states_stay), 0));
    if (!posed || beyond_first_link(posed->plan)) return {};
    return bound_under_budget(shared_out(*posed));
  }

 private:
  // A problem with values that may live in a tier, before it is solved. update: seconds of a step's update if nothing
  // waits for the host. streaming: of these, the seconds without such values.
  struct Posed {
    Lowered plan;
    double update, streaming;
  };
  // One way to share out the tiers, as it was solved. stays: bytes with a residency that the plan keeps on the
  // device.
  struct Sharing {
    Outcome outcome;
    std::map<int32_t, OffloadedPlace> offloaded;
    int64_t stays = 0;
  };

  // The problem without the state that is offloaded. With several links, weights and gradients get the first one's
  // room before states, which cross less often. They are also offered `stays` bytes more than there are: so many have
  // to be kept on the device.
  struct Without {
    Lowered plan;
    int64_t stays;
  };
  Without without(const std::vector<bool>& leaves, int64_t stays) const {
    Lowered plan = from_;
    std::vector<int64_t> homes(plan.problem.links.size(), 0);
    if (homes.size() > 1) {
      plan.problem.links[0].capacity_bytes += stays;
      homes = residency_bytes(plan);
    }
    const auto change = [&](int64_t by) {
      for (size_t link = 0; link < homes.size(); ++link)
        plan.problem.links[link].capacity_bytes += by * homes[link];
    };
    change(-1);
    plan = without_state(std::move(plan), leaves);
    change(1);
    return {std::move(plan), stays};
  }
  // Nothing: no value may live in a tier, or there is no room for what has to.
  std::optional<Posed> pose(Without from) const {
    const double streaming = streaming_seconds(from.plan, costs_);
    std::optional<Lowered> plan =
        with_residencies(std::move(from.plan), overwrites_gradients_, ends_gradients_);
    if (!plan) return {};
    plan->problem.links[0].capacity_bytes -= from.stays;
    if (!holds_what_may_not_stay(*plan)) return {};
    const double update = plan->update_seconds + streaming - device_update_seconds(*plan, costs_);
    return Posed{std::move(*plan), update, streaming};
  }
  Posed shared_out(Posed posed) const {
    const double more = streaming_seconds(posed.plan, costs_) - posed.streaming;
    posed.plan = with_seconds_shared_out(std::move(posed.plan), std::max(0.0, more) / micro_steps_);
    return posed;
  }
  // A micro-batch takes at least micro_batch seconds, and the first one of a step with all updates `first`: it begins
  // after the device's updates and runs concurrently with the host's. both: the same if values in tiers make the
  // device's updates longer.
  HostBound bound(const Posed& posed, double micro_batch, double first, double both = 0) const {
    HostBound known{micro_batch + posed.update / micro_steps_};
    if (posed.plan.host_updated.empty()) return known;
    const double others = (micro_steps_ - 1) * micro_batch;
    known.host = (first + others) / micro_steps_;
    known.both = (both + others) / micro_steps_;
    return known;
  }
  // The bound for any budget.
  HostBound bound(const Posed& posed) const {
    return bound(posed, posed.plan.problem.op_seconds(), least_seconds_with_host_updates(posed.plan));
  }
  // enough: seconds of a micro-batch; a bound of so much is not raised any further.
  HostBound bound_under_budget(const Posed& posed,
                               double enough = std::numeric_limits<double>::infinity()) const {
    const plan::Problem& problem = posed.plan.problem;
    const double micro_batch = cache_->least_seconds(problem, problem.budget_bytes, enough);
    double first = least_seconds_with_host_updates(posed.plan), both = 0;
    if (micro_batch < enough && !posed.plan.host_updated.empty() && !posed.plan.updates_beside_backward()) {
      std::vector<double> earliest = earliest_with_host_updates(posed.plan);
      for (double& op : earliest) op -= posed.update;
      const auto after = [&](bool home_costs) {
        return posed.update +
               cache_->least_seconds_behind(problem, problem.budget_bytes, earliest, home_costs);
      };
      first = std::max(first, after(false));
      both = after(true);
    }
    return bound(posed, micro_batch, first, both);
  }

  // stays: as for without(). is_first: the first of the ways to share out the tiers.
  Sharing share_tiers(const std::vector<bool>& leaves, int64_t stays, bool is_first, double limit,
                      bool quick) const {
    Without rest = without(leaves, stays);
    Sharing now{{Solved::kNothing}, rest.plan.offloaded, stays};
    std::optional<Posed> posed = pose(std::move(rest));
    if (!posed) return now;
    // A plan with less on the slower tier may be faster. It is tried next.
    const double below =
        is_first && beyond_first_link(posed->plan) ? std::numeric_limits<double>::infinity() : limit;
    const double within = below - posed->update / micro_steps_;
    if (posed->plan.problem.op_seconds() >= within) return now;
    if (const double least = bound(*posed).seconds(); least >= below) {
      now.outcome = {Solved::kSlower, least};
      return now;
    }
    posed = shared_out(std::move(*posed));
    const plan::Problem& problem = posed->plan.problem;
    std::optional<plan::Plan> found = cache_->solve_below(problem, problem.budget_bytes, within, quick);
    if (!found && std::isinf(within)) {
      now.outcome.solved = Solved::kOver;
      now.outcome.plan = std::make_shared<const Planned>(std::move(posed->plan));
      return now;
    }
    if (!found) {
      now.outcome = {Solved::kSlower, bound_under_budget(*posed, within).seconds()};
      return now;
    }
    const double least = bound_under_budget(*posed).seconds();
    now.stays = 0;
    for (size_t v = 0; v < problem.values.size(); ++v)
      if (problem.values[v].home >= 0 && found->home_offsets[v] < 0) now.stays += problem.values[v].bytes;
    now.outcome = {Solved::kFits, least, planned(std::move(posed->plan), std::move(*found))};
    return now;
  }

  std::shared_ptr<const Planned> planned(Lowered posed, plan::Plan solved) const {
    Planned plan = with_solved_residencies(std::move(posed), std::move(solved));
    plan.update_seconds += streaming_seconds(plan, costs_) - device_update_seconds(plan, costs_);
    if (chooses_deferred_) plan.host_deferred = choose_deferred(plan);
    plan.host_wait_seconds = std::max(0.0, host_wait_seconds(plan, plan.update_seconds)) +
                             (micro_steps_ - 1) * host_add_wait_seconds(plan);
    plan.update_seconds += plan.host_wait_seconds;
    return std::make_shared<const Planned>(std::move(plan));
  }

  Outcome find(Lowered plan, double limit, bool quick) const {
    const int64_t budget = plan.problem.budget_bytes;
    const double update = plan.update_seconds / micro_steps_;
    if (!quick && !std::isinf(limit))
      if (const double least = cache_->least_seconds(plan.problem, budget) + update; least >= limit)
        return {Solved::kSlower, least};
    std::optional<plan::Plan> found =
        quick ? cache_->solve_quickly(plan.problem, budget) : cache_->solve_within(plan.problem, budget);
    if (!found && quick) return {};
    if (!found)
      return {Solved::kOver, std::numeric_limits<double>::infinity(),
              std::make_shared<const Planned>(std::move(plan))};
    const double least = found->bound_seconds + update;
    return {Solved::kFits, least, std::make_shared<const Planned>(std::move(plan), std::move(*found))};
  }

  static bool holds_what_may_not_stay(const Lowered& plan) {
    std::vector<int64_t> room;
    for (const plan::Link& link : plan.problem.links) room.push_back(link.capacity_bytes);
    for (const plan::Value& value : plan.problem.values)
      if (value.at_home()) room[at(value.home)] -= value.bytes;
    return std::all_of(room.begin(), room.end(), [](int64_t left) { return left >= 0; });
  }

  // Whether so many bytes of state may be kept on the device where their copies take long.
  bool is_little(int64_t state) const {
    return static_cast<double>(state) <= kMostDear * static_cast<double>(from_.problem.budget_bytes);
  }
  int64_t all_bytes() const {
    int64_t bytes = 0;
    for (const StateCandidate& c : candidates_) bytes += c.bytes;
    return bytes;
  }
  double seconds(const Planned& plan) const {
    return plan.plan.predicted_seconds + plan.update_seconds / micro_steps_;
  }
  static bool beyond_first_link(const Lowered& plan) {
    const auto beyond = [&](const auto& place) { return place.second.tier != plan.link_tier[0]; };
    return std::any_of(plan.homes.begin(), plan.homes.end(), beyond) ||
           std::any_of(plan.offloaded.begin(), plan.offloaded.end(), beyond);
  }

  // Values in the first tier are used in place.
  bool within_reach() const { return !from_.link_tier.empty() && from_.reaches(from_.link_tier[0]); }

  std::vector<plan::Choice> choices() const {
    std::vector<plan::Choice> list;
    for (const StateCandidate& c : candidates_) {
      const double copies = within_reach() ? 0 : round_trip_seconds(from_.problem.links[0], c.bytes);
      list.push_back({c.bytes, std::max(0.0, copies - c.update_seconds) / micro_steps_});
    }
    return list;
  }

  // links: only so many of the first links may take it.
  Lowered without_state(Lowered plan, const std::vector<bool>& taken, size_t links = kTierCount) const {
    plan = with_tiers(std::move(plan), candidates_, taken, links);
    std::vector<bool> gone(plan.problem.values.size());
    for (const auto& [value, place] : plan.offloaded)
      if (const int32_t stored = plan.problem_value[at(value)]; stored >= 0) gone[at(stored)] = true;
    return without_values(std::move(plan), gone);
  }

  // The update needs room above the persistent values: see update/room.h.
  Lowered with_ring_room(Lowered plan) const {
    if (!plan.streams() || plan.problem.ops.empty()) return plan;
    int64_t master = 0;
    for (const auto& [value, place] : plan.offloaded)
      if (joint_.values[at(value)].role == graph::Role::kParameter && !plan.reaches(place.tier))
        master = std::max(master, stored_bytes(joint_, value));
    std::vector<plan::Op>& ops = plan.problem.ops;
    (plan.gradients_end ? ops.back() : ops.front()).workspace_bytes += master + least_ring_bytes(plan);
    return plan;
  }

  const Lowered& from_;
  plan::SolverCache* const cache_;
  const graph::JointGraph& joint_;
  const costs::Model costs_;
  const double micro_steps_;
  const bool overwrites_gradients_, ends_gradients_, chooses_deferred_;
  std::vector<StateCandidate> candidates_;
};

}  // namespace cairn::engine
