#include "runtime/compile/variants.h"

#include <algorithm>
#include <limits>

#include "runtime/base/os/clock.h"
#include "runtime/compile/in_place.h"
#include "runtime/compile/packed_weights_choice.h"
#include "runtime/compile/update/host_forms.h"
#include "runtime/compile/update/host_seconds.h"
#include "runtime/compile/update/host_updates.h"
#include "runtime/compile/update/offloaded_state.h"
#include "runtime/compile/update/traffic.h"
#include "runtime/compile/update/update_forms.h"
#include "runtime/plan/index.h"

namespace cairn::engine {
namespace {

constexpr double kNothing = 1e-9;  // of a plan's seconds: below, two are the same
constexpr size_t kFewOps = 450;    // of which searches are short
constexpr double kSlow = 0.003;    // of keeping everything: above, weights and gradients may leave as well

class Variants {
 public:
  Variants(const Relower& again, const FindParts& parts, const graph::JointOptions& joint,
           device::Device& device, const PlanOptions& options, plan::SolverCache& cache)
      : again_(again),
        parts_(parts),
        joint_(joint),
        device_(device),
        options_(options),
        model_(device.info(), options.costs),
        micro_steps_(std::max<int64_t>(1, options.micro_steps)),
        forms_([this](const graph::JointOptions& other) { return lowered(other); }, joint, device, options),
        cache_(cache) {}

  std::shared_ptr<CompiledPlan> run(std::shared_ptr<CompiledPlan> first) {
    const double began = now();
    if (options_.vocabulary_parts > 1) {
      split(*first);
    } else if (options_.defer_updates == PlanOptions::Defer::kAlways && may_defer(*first, options_) &&
               attempt(forms_.deferred(*first), State::kHomes)) {
    } else if (options_.host_updates == PlanOptions::Defer::kAlways && update_on_host_always(*first)) {
    } else {
      const std::shared_ptr<CompiledPlan> whole = first;
      search(Ways(std::move(first)));
      move_state();
      if (best_ == nullptr)
        for (const auto& plan : std::exchange(refused_, {})) attempt(plan, State::kResident, Effort::kWhole);
      else if (quick_)
        attempt(std::make_shared<CompiledPlan>(*best_), State::kResident, Effort::kWhole);
      if (best_ == nullptr && options_.vocabulary_parts == 0) split(*whole);
    }
    if (best_ == nullptr) {
      refuse();
      throw *over_;
    }
    if (best_->problem.budget_bytes > 0) certify(*best_);
    best_->plan.solve_seconds = now() - began;
    return best_;
  }

 private:
  double once_per_step(const CompiledPlan& plan) const {
    return plan.update_seconds / static_cast<double>(micro_steps_);
  }
  // Per micro-batch, with what is done once per step.
  double seconds(const CompiledPlan& plan) const { return plan.plan.predicted_seconds + once_per_step(plan); }
  // No plan of any variant that was tried is faster than this. Where the host updates, that may be more than the problem's bound.
  void certify(CompiledPlan& best) const {
    plan::Plan& plan = best.plan;
    const double most = best.host_updated.empty() ? plan.bound_seconds : plan.predicted_seconds;
    plan.bound_seconds = std::clamp(bound_ - once_per_step(best), 0.0, most);
    plan.gap =
        plan.bound_seconds > 0 ? (plan.predicted_seconds - plan.bound_seconds) / plan.bound_seconds : 0;
  }
  // Without a budget there is nothing to be gained but memory. Packed weights cost nothing where there is
  // room for them.
  bool better(const CompiledPlan& plan, const CompiledPlan& than) const {
    if (plan.problem.budget_bytes == 0) return plan.plan.arena_bytes < than.plan.arena_bytes;
    const double mine = seconds(plan), other = seconds(than), same = kNothing * other;
    return mine < other - same || (mine <= other + same && packed_bytes(plan) > packed_bytes(than));
  }
  // One lowering, as it is and with ops in place (nullptr if none can be).
  struct Ways {
    explicit Ways(std::shared_ptr<CompiledPlan> lowered) : apart(std::move(lowered)) {
      auto pairs = std::make_shared<CompiledPlan>(*apart);
      if (make_in_place(*pairs) > 0) in_place = std::move(pairs);
    }
    std::shared_ptr<CompiledPlan> apart, in_place;
  };

  void search(const Ways& packed) {
    if (packed.apart->problem.budget_bytes == 0) {
      attempt(packed.apart);
      attempt(packed.in_place);
      const auto& other = best_ == packed.in_place ? packed.apart : packed.in_place;
      if (other != nullptr) best_->other_form = std::make_shared<const plan::Problem>(other->problem);
      return;
    }
    if (attempt_whole(packed) || attempt_within_reach(packed)) return;
    if (within_reach_) return search_rest(Ways(moved(packed.apart, INT64_MAX)));
    search_rest(packed);
  }

  void search_rest(const Ways& packed) {
    const PackedWeightChoices packed_weights = packed_weight_choices(*packed.apart, model_, micro_steps_);
    if (packed_weights.choices.empty()) {
      attempt(packed.apart);
      attempt(packed.in_place);
    } else {
      give_up(packed_weights, packed);
    }
  }

  // All packed weights first: that is the least memory there is, and where it does not fit, no choice does.
  // Then those that the bytes are better without.
  void give_up(const PackedWeightChoices& packed_weights, const Ways& packed) {
    const std::vector<bool> all(packed_weights.choices.size(), true);
    const Ways plain(without(packed_weights, all));
    attempt(plain.apart);
    attempt(plain.in_place);
    if (best_ == nullptr) return;
    attempt(packed.apart);
    attempt(packed.in_place);
    const bool in_place = best_->in_place_ops > 0;
    const CompiledPlan& like = in_place && packed.in_place != nullptr ? *packed.in_place : *packed.apart;
    const std::vector<bool> taken = plan::choose(like.problem, packed_weights.choices, cache_);
    if (taken == all || std::find(taken.begin(), taken.end(), true) == taken.end()) return;
    auto some = without(packed_weights, taken);
    if (in_place) make_in_place(*some);
    attempt(std::move(some));
  }

  // Takes the first way that fits its budget with everything kept: cheap to see, and nothing is faster but updates on the host.
  bool attempt_whole(const Ways& ways) {
    for (const auto& way : {ways.apart, ways.in_place}) {
      if (way == nullptr) continue;
      plan::Problem free = way->problem;
      free.budget_bytes = 0;
      const plan::Plan whole = cache_.solve(free);
      if (whole.arena_bytes > way->problem.budget_bytes ||
          whole.predicted_seconds > free.op_seconds() * (1 + kNothing))
        continue;
      attempt(way);
      return true;
    }
    return false;
  }

  // What kernels use where it lives in a tier may live there for nothing: as much of it as lets all else be kept. Where that
  // is not enough, all of it leaves before anything is given up that costs seconds.
  bool attempt_within_reach(const Ways& ways) {
    for (const auto& way : {ways.apart, ways.in_place}) {
      if (way == nullptr) continue;
      plan::Problem free = way->problem;
      free.budget_bytes = 0;
      const int64_t over = cache_.solve(free).arena_bytes - way->problem.budget_bytes;
      if (over <= 0) {  // what policies say costs seconds, not the budget
        within_reach_ = false;
        return false;
      }
      const std::shared_ptr<CompiledPlan> some = moved(way, over);
      if (some == nullptr) return false;
      within_reach_ = true;
      if (way->problem.persistent_bytes() - some->problem.persistent_bytes() < over) continue;
      attempt(some);
      if (best_ != nullptr) return true;
    }
    return false;
  }
  // nullptr: nothing is within reach.
  std::shared_ptr<CompiledPlan> moved(const std::shared_ptr<CompiledPlan>& from, int64_t bytes) const {
    auto plan = std::make_shared<CompiledPlan>(*from);
    return move_within_reach(*plan, device_, options_, bytes) > 0 ? plan : nullptr;
  }
  std::shared_ptr<CompiledPlan> lowered(const graph::JointOptions& joint) const {
    std::shared_ptr<CompiledPlan> plan = again_(joint);
    if (within_reach_) move_within_reach(*plan, device_, options_, INT64_MAX);
    return plan;
  }

  // Of the best variant, or, where none fits, of the one that comes closest.
  void move_state() {
    const std::shared_ptr<CompiledPlan> from = best_ != nullptr ? best_ : closest();
    if (from->problem.links.empty() || from->problem.budget_bytes <= 0) return;
    const bool may_update_on_host =
        options_.host_updates == PlanOptions::Defer::kWhereFaster && host_memory_rate(device_, options_) > 0;
    if (best_ != nullptr && best_->plan.predicted_seconds <= best_->problem.op_seconds() * (1 + kNothing)) {
      if (may_update_on_host) update_on_host(*from);
      return;
    }
    if (within_reach_) attempt(std::make_shared<CompiledPlan>(*from), State::kResident, Effort::kWhole);
    // Weights and gradients in a tier, too: where it has to be, or the plans found are slow, updates included.
    const double slow = (from->problem.op_seconds() + once_per_step(*from)) * (1 + kSlow);
    // Quickly. The one that wins is tried once more with all effort: state alone is then searched for as a whole, a form with homes only
    // where a quick search finds something faster, or nothing at all.
    struct {
      std::shared_ptr<CompiledPlan> before, found;  // any search
      State state = State::kHomes;
    } winner;
    const auto attempt_quickly = [&](std::shared_ptr<CompiledPlan> plan, State state) {
      if (plan == nullptr) return false;  // there is nothing of the kind
      auto before = std::make_shared<CompiledPlan>(*plan);
      const bool fits = attempt(plan, state, Effort::kQuick);
      if (best_ == plan) winner = {std::move(before), std::move(plan), state};
      return fits;
    };
    const auto search_winner = [&] {
      if (winner.found != nullptr && winner.found == best_) attempt(winner.before, winner.state);
    };
    // State alone first where that may not be slow, or of few ops, where it is soon found: what is slower is left out then. Else last, as
    // it seldom is the fastest. Each time quickly; what that finds nothing for is searched for as a whole behind all else, as that
    // takes long.
    const bool state_may_leave = !within_reach_ || from->problem.links.size() > 1;
    bool state_alone_tried = false, state_alone_found = false;
    const auto move_state_alone = [&](double below, bool quick = true) {
      const bool goes_on = quick ? !state_alone_tried : !state_alone_found;
      if (!goes_on || !state_may_leave || !offloaded_state_may_pay(*from, model_, micro_steps_, below))
        return;
      auto plan = std::make_shared<CompiledPlan>(*from);
      state_alone_tried = true;
      state_alone_found = quick ? attempt_quickly(std::move(plan), State::kOffloaded)
                                : attempt(std::move(plan), State::kOffloaded, Effort::kWhole);
    };
    const bool few = from->problem.ops.size() <= kFewOps;
    move_state_alone(few ? std::numeric_limits<double>::infinity() : slow);
    // First, as what is slower than that need not be searched for.
    if (may_update_on_host) update_on_host(*from);
    if (fastest() <= slow) return search_winner();
    if (!squares_pay(*from, model_, micro_steps_) ||
        !attempt_quickly(forms_.with_squares(*from), State::kHomes))
      attempt_quickly(std::make_shared<CompiledPlan>(*from), State::kHomes);
    // The next forward part has ops to hide behind what the update waits for; from's has nothing to wait for.
    if (best_ != nullptr && may_defer(*from, options_))
      attempt_quickly(forms_.deferred(*from), State::kHomes);
    move_state_alone(fastest());
    search_winner();
    move_state_alone(fastest(), false);  // what only just fits is found by no quick search
  }

  void update_on_host(const CompiledPlan& from) {
    try_host_forms({[&](const HostForm& form) { return forms_.on_host(from, form); },
                    [&](const CompiledPlan& plan, bool states_stay) {
                      return host_bound(plan, device_, options_, states_stay, cache_);
                    },
                    [&](const HostBound& bound) { bound_ = std::min(bound_, bound.seconds()); },
                    [&](const std::shared_ptr<CompiledPlan>& plan, bool quick) {
                      return attempt(plan, State::kHomes, quick ? Effort::kQuick : Effort::kWhole);
                    },
                    [&](const CompiledPlan& plan) { return seconds(plan); }, staying_share(from), best_});
  }
  bool update_on_host_always(const CompiledPlan& from) {
    for (const bool disk : {true, false})
      for (const bool packed : {true, false})
        if (attempt(forms_.on_host(from, {options_.host_update_share, packed, disk}), State::kHomes))
          return true;
    return false;
  }
  // Of those that did not fit, the one whose largest op needs least.
  std::shared_ptr<CompiledPlan> closest() const {
    const auto least = [](const std::shared_ptr<CompiledPlan>& plan) {
      return plan::least_bytes(plan->problem, plan::Index(plan->problem));
    };
    return *std::min_element(refused_.begin(), refused_.end(),
                             [&](const auto& a, const auto& b) { return least(a) < least(b); });
  }

  // Weights of a vocabulary in parts, which live in a tier like everything else that may; `whole` has them in one piece.
  void split(const CompiledPlan& whole) {
    if (whole.problem.links.empty()) return;
    graph::JointOptions joint = forms_.without_packed_weights(whole);
    const PartUnits units = parts_(joint);
    require(!units.empty() || options_.vocabulary_parts <= 1, Code::kUnsupported,
            "no weight goes in parts: lookups and the fused loss would have to be all that uses it, on a "
            "backend that makes the same bits of its parts, and in a vocabulary large enough for two");
    const int64_t given = options_.vocabulary_parts;
    joint.parts = given > 1 ? choose_parts(whole, units, given)
                            : choose_parts(std::bind_front(&Variants::lowered, this), joint, units);
    if (joint.parts.empty()) return;
    const Ways ways(lowered(joint));
    refuse();
    const uint64_t before = over_ ? over_->fault()->smallest_budget_bytes : 0;
    attempt(ways.apart, State::kHomes);
    attempt(ways.in_place, State::kHomes);
    if (best_ != nullptr) return;
    refuse();
    if (!over_ || over_->fault()->smallest_budget_bytes == before) return;
    std::string text = over_->what();
    for (const auto& [name, firsts] : joint.parts)
      text += cat("; '", name, "' is in ", firsts.size(), " parts there");
    over_ = Error(over_->code(), text, *over_->fault());
  }

  enum class State { kResident, kOffloaded, kHomes };
  enum class Effort { kQuick, kWhole };
  double fastest() const {
    return best_ != nullptr ? seconds(*best_) : std::numeric_limits<double>::infinity();
  }
  // Quickly, to see which variant is the best; what only just fits is not found then.
  // False: it does not fit, not that quickly, or is not faster where weights and gradients leave.
  bool attempt(std::shared_ptr<CompiledPlan> plan, State state = State::kResident) {
    return attempt(std::move(plan), state, state == State::kResident ? Effort::kQuick : Effort::kWhole);
  }
  // The best plan takes no more than this one's ops alone.
  bool leads_nowhere(const CompiledPlan& plan) const {
    if (best_ == nullptr || plan.problem.budget_bytes == 0) return false;
    const double least = plan.problem.op_seconds() + once_per_step(plan);
    return seconds(*best_) <= least * (1 + kNothing) && packed_bytes(plan) <= packed_bytes(*best_);
  }
  bool attempt(std::shared_ptr<CompiledPlan> plan, State state, Effort effort) {
    if (plan == nullptr) return false;
    const plan::Problem& problem = plan->problem;
    const bool quick = state == State::kResident && effort == Effort::kQuick && problem.budget_bytes > 0;
    Outcome outcome{Solved::kOver};
    if (state == State::kHomes) {
      outcome = solve_with_homes(*plan, device_, options_, cache_, fastest(), effort == Effort::kQuick);
    } else if (state == State::kOffloaded) {
      outcome =
          solve_with_offloaded_state(*plan, device_, options_, cache_, fastest(), effort == Effort::kQuick);
    } else if (leads_nowhere(*plan)) {
      return true;
    } else if (problem.budget_bytes == 0 || problem.budget_bytes >= plan::least_budget(problem)) {
      // Small problems are searched for all budgets at once, so that more memory is never slower.
      std::optional<plan::Plan> found = !quick || problem.ops.size() <= plan::kSmallProblem
                                            ? cache_.solve_within(problem, problem.budget_bytes)
                                            : cache_.solve_quickly(problem, problem.budget_bytes);
      if (found) {
        plan->plan = std::move(*found);
        plan->plan.bound_seconds = cache_.least_seconds(problem, problem.budget_bytes);
        outcome.solved = Solved::kFits;
      }
    }
    const Solved solved = outcome.solved;
    if (solved == Solved::kOver) (quick ? refused_ : over_budget_).push_back(std::move(plan));
    if (solved == Solved::kNothing || solved == Solved::kOver) return false;
    bound_ = std::min(bound_, state != State::kResident ? outcome.least_seconds
                                                        : plan->plan.bound_seconds + once_per_step(*plan));
    if (solved == Solved::kSlower) return false;
    if (best_ != nullptr && !better(*plan, *best_)) return true;
    best_ = std::move(plan);
    quick_ = quick;
    return true;
  }

  // Names the smallest budget of all that nothing fits. Exact, but only for what a bound does not show to take as much.
  void refuse() {
    std::vector<std::pair<int64_t, std::shared_ptr<CompiledPlan>>> plans;
    for (auto& plan : std::exchange(over_budget_, {}))
      plans.emplace_back(plan::least_budget(plan->problem), std::move(plan));
    std::stable_sort(plans.begin(), plans.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [least, plan] : plans) {
      const auto named = [&] { return static_cast<int64_t>(over_->fault()->smallest_budget_bytes); };
      if (over_ && least >= named()) continue;
      try {
        cache_.refuse(plan->problem);
      } catch (const Error& error) {
        if (error.code() != Code::kOverBudget || error.fault() == nullptr) throw;
        if (!over_ || static_cast<int64_t>(error.fault()->smallest_budget_bytes) < named()) over_ = error;
      }
    }
  }

  std::shared_ptr<CompiledPlan> without(const PackedWeightChoices& packed_weights,
                                        const std::vector<bool>& taken) const {
    graph::JointOptions joint = joint_;
    leave_out(packed_weights, taken, joint);
    return lowered(joint);
  }

  const Relower& again_;
  const FindParts& parts_;
  const graph::JointOptions& joint_;
  device::Device& device_;
  const PlanOptions& options_;
  const costs::Model model_;
  const int64_t micro_steps_;
  const UpdateForms forms_;
  plan::SolverCache& cache_;
  std::shared_ptr<CompiledPlan> best_;                  // of those that fit
  bool quick_ = false;                                  // it was found by a quick search
  bool within_reach_ = false;                           // all that kernels reach in the tier is there
  std::vector<std::shared_ptr<CompiledPlan>> refused_;  // that quick searches found nothing for
  double bound_ = std::numeric_limits<double>::infinity();
  std::vector<std::shared_ptr<CompiledPlan>> over_budget_;  // nothing fits; their least is not known
  std::optional<Error> over_;                               // names the least of what is, while none fits
};

}  // namespace

std::shared_ptr<CompiledPlan> solve_variants(std::shared_ptr<CompiledPlan> lowered, const Relower& again,
                                             const FindParts& parts, const graph::JointOptions& joint,
                                             device::Device& device, const PlanOptions& options,
                                             plan::SolverCache& cache) {
  return Variants(again, parts, joint, device, options, cache).run(std::move(lowered));
}

}  // namespace cairn::engine
