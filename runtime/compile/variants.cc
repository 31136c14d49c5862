#include "runtime/compile/variants.h"

#include <algorithm>
#include <limits>

#include "runtime/compile/derived_weights.h"
#include "runtime/compile/in_place.h"
#include "runtime/compile/update/host_forms.h"
#include "runtime/compile/update/host_seconds.h"
#include "runtime/compile/update/host_updates.h"
#include "runtime/compile/update/offloaded_state.h"
#include "runtime/compile/update/traffic.h"
#include "runtime/compile/update/update_forms.h"
#include "runtime/plan/index.h"

namespace cairn::engine {
namespace {

constexpr double kNothing = 1e-9;  // plans whose seconds differ by a smaller share are equally fast
constexpr size_t kFewOps = 450;    // problems with no more ops are searched in little time
constexpr double kSlow = 0.003;    // a plan is slow if it takes longer than keeping everything by this share

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

  Planned run(const std::shared_ptr<const Lowered>& first) {
    if (options_.forced.vocabulary_parts > 1) {
      split(*first);
    } else if (options_.forced.defer_updates == ForcedChoices::When::kAlways && may_defer(*first, options_) &&
               attempt(forms_.deferred(*first), State::kHomes)) {
    } else if (options_.forced.host_updates == ForcedChoices::When::kAlways &&
               update_on_host_always(*first)) {
    } else {
      search(Ways(first));
      move_state();
      if (best_ == nullptr)
        for (const auto& plan : std::exchange(refused_, {})) attempt(plan, State::kResident, Effort::kWhole);
      else if (quick_)
        attempt(best_from_, State::kResident, Effort::kWhole);
      if (best_ == nullptr && options_.forced.vocabulary_parts == 0) split(*first);
    }
    if (best_ == nullptr) {
      refuse();
      throw *over_;
    }
    Planned best = *best_;
    best.other_form = other_form_;
    if (best.problem.budget_bytes > 0) best.plan = certified(best);
    best.plan.solve_seconds = cache_.age_seconds();
    return best;
  }

 private:
  double once_per_step(const Lowered& plan) const {
    return plan.update_seconds / static_cast<double>(micro_steps_);
  }
  // Of a micro-batch, with its share of what is done once per step.
  double seconds(const Planned& plan) const { return plan.plan.predicted_seconds + once_per_step(plan); }
  // With the bound of all variants that were tried. Where the host updates, it may be above the bound of the
  // problem alone.
  plan::Plan certified(const Planned& best) const {
    plan::Plan plan = best.plan;
    const double most = best.host_updated.empty() ? plan.bound_seconds : plan.predicted_seconds;
    plan.bound_seconds = std::clamp(bound_ - once_per_step(best), 0.0, most);
    plan.gap =
        plan.bound_seconds > 0 ? (plan.predicted_seconds - plan.bound_seconds) / plan.bound_seconds : 0;
    return plan;
  }
  // Without a budget, all that can be gained is memory. Of equally fast plans, the one with more derived weights is
  // better.
  bool better(const Planned& plan, const Planned& than) const {
    if (plan.problem.budget_bytes == 0) return plan.plan.arena_bytes < than.plan.arena_bytes;
    const double mine = seconds(plan), other = seconds(than), same = kNothing * other;
    return mine < other - same || (mine <= other + same && derived_bytes(plan) > derived_bytes(than));
  }
  // A lowered graph, as it is and with ops in place (nullptr: no op can be).
  struct Ways {
    explicit Ways(std::shared_ptr<const Lowered> lowered) : apart(std::move(lowered)) {
      if (std::optional<Lowered> pairs = with_in_place(*apart))
        in_place = std::make_shared<const Lowered>(std::move(*pairs));
    }
    std::shared_ptr<const Lowered> apart, in_place;
  };

  void search(const Ways& packed) {
    if (packed.apart->problem.budget_bytes == 0) {
      attempt(packed.apart);
      attempt(packed.in_place);
      const auto& other = best_from_ == packed.in_place ? packed.apart : packed.in_place;
      if (other != nullptr) other_form_ = std::make_shared<const plan::Problem>(other->problem);
      return;
    }
    if (attempt_whole(packed) || attempt_within_reach(packed)) return;
    if (within_reach_) return search_rest(Ways(moved(*packed.apart, INT64_MAX)));
    search_rest(packed);
  }

  void search_rest(const Ways& packed) {
    const DerivedWeightChoices derived = derived_weight_choices(*packed.apart, model_, micro_steps_);
    if (derived.choices.empty()) {
      attempt(packed.apart);
      attempt(packed.in_place);
    } else {
      give_up(derived, packed);
    }
  }

  // First without any derived weight, which takes the least memory; then with all, and without the least useful.
  void give_up(const DerivedWeightChoices& derived, const Ways& packed) {
    const std::vector<bool> all(derived.choices.size(), true);
    const Ways plain(without(derived, all));
    attempt(plain.apart);
    attempt(plain.in_place);
    if (best_ == nullptr) return;
    attempt(packed.apart);
    attempt(packed.in_place);
    const bool in_place = best_->in_place_ops > 0;
    const Lowered& like = in_place && packed.in_place != nullptr ? *packed.in_place : *packed.apart;
    for (const std::vector<bool>& taken :
         {derived.activations, plan::choose(like.problem, derived.choices, cache_)}) {
      if (taken == all || std::find(taken.begin(), taken.end(), true) == taken.end()) continue;
      const Ways some(without(derived, taken));
      attempt(in_place && some.in_place != nullptr ? some.in_place : some.apart);
    }
  }
  // Takes the first way that fits its budget with everything kept. That is seen soon, and only updates on the host
  // are faster.
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

  // What kernels use in place in a tier costs no seconds there. As much of it is offloaded as lets everything else
  // be kept. Where that is not enough, all of it is, before anything that costs seconds.
  bool attempt_within_reach(const Ways& ways) {
    for (const auto& way : {ways.apart, ways.in_place}) {
      if (way == nullptr) continue;
      plan::Problem free = way->problem;
      free.budget_bytes = 0;
      const int64_t over = cache_.solve(free).arena_bytes - way->problem.budget_bytes;
      if (over <= 0) {  // the seconds are lost to policies, not to the budget
        within_reach_ = false;
        return false;
      }
      const std::shared_ptr<const Lowered> some = moved(*way, over);
      if (some == nullptr) return false;
      within_reach_ = true;
      if (way->problem.persistent_bytes() - some->problem.persistent_bytes() < over) continue;
      attempt(some);
      if (best_ != nullptr) return true;
    }
    return false;
  }
  // The plan with so many bytes of state in tiers that kernels reach; nullptr: there are none.
  std::shared_ptr<const Lowered> moved(const Lowered& from, int64_t bytes) const {
    std::optional<Lowered> plan = with_state_in_reach(from, device_, options_, bytes);
    return plan ? std::make_shared<const Lowered>(std::move(*plan)) : nullptr;
  }
  std::shared_ptr<const Lowered> lowered(const graph::JointOptions& joint) const {
    const std::shared_ptr<const Lowered> plan = again_(joint);
    const std::shared_ptr<const Lowered> reached = within_reach_ ? moved(*plan, INT64_MAX) : nullptr;
    return reached != nullptr ? reached : plan;
  }

  // Offloads state, weights and gradients of the best variant, or, where none fits, of the one that comes closest.
  void move_state() {
    const std::shared_ptr<const Lowered> from = best_ != nullptr ? best_from_ : closest();
    if (from->problem.links.empty() || from->problem.budget_bytes <= 0) return;
    const bool may_update_on_host = options_.forced.host_updates == ForcedChoices::When::kWhereFaster &&
                                    host_memory_rate(device_, options_) > 0;
    if (best_ != nullptr && best_->plan.predicted_seconds <= best_->problem.op_seconds() * (1 + kNothing)) {
      if (may_update_on_host) update_on_host(*from);
      return;
    }
    if (within_reach_) attempt(from, State::kResident, Effort::kWhole);
    // Weights and gradients are offloaded, too, where they have to be or the plans found so far are slow, updates
    // included.
    const double slow = (from->problem.op_seconds() + once_per_step(*from)) * (1 + kSlow);
    // All are searched quickly; the winner is then searched once more with all effort.
    struct {
      std::shared_ptr<const Lowered> from;
      std::shared_ptr<const Planned> found;
      State state = State::kHomes;
    } winner;
    const auto attempt_quickly = [&](const std::shared_ptr<const Lowered>& plan, State state) {
      const std::shared_ptr<const Planned> before = best_;
      const bool fits = attempt(plan, state, Effort::kQuick);
      if (best_ != before) winner = {plan, best_, state};
      return fits;
    };
    const auto search_winner = [&] {
      if (winner.found != nullptr && winner.found == best_) attempt(winner.from, winner.state);
    };
    // State alone comes first where its bound is not slow or the search is short, else last: it seldom wins.
    const bool state_may_leave = !within_reach_ || from->problem.links.size() > 1;
    bool state_alone_tried = false, state_alone_found = false;
    const auto move_state_alone = [&](double below, bool quick = true) {
      const bool goes_on = quick ? !state_alone_tried : !state_alone_found;
      if (!goes_on || !state_may_leave || !offloaded_state_may_pay(*from, model_, micro_steps_, below))
        return;
      state_alone_tried = true;
      state_alone_found =
          quick ? attempt_quickly(from, State::kOffloaded) : attempt(from, State::kOffloaded, Effort::kWhole);
    };
    const bool few = from->problem.ops.size() <= kFewOps;
    move_state_alone(few ? std::numeric_limits<double>::infinity() : slow);
    // Early, as the search leaves out what is slower than a known plan.
    if (may_update_on_host) update_on_host(*from);
    if (fastest() <= slow) return search_winner();
    if (!squares_pay(*from, model_, micro_steps_) ||
        !attempt_quickly(forms_.with_squares(*from), State::kHomes))
      attempt_quickly(from, State::kHomes);
    // The next forward's ops hide what the update waits for.
    if (best_ != nullptr && may_defer(*from, options_))
      attempt_quickly(forms_.deferred(*from), State::kHomes);
    move_state_alone(fastest());
    search_winner();
    move_state_alone(fastest(), false);  // a quick search does not find plans that only just fit
  }
  void update_on_host(const Lowered& from) {
    try_host_forms({[&](const HostForm& form) { return forms_.on_host(from, form); },
                    [&](const Lowered& plan, bool states_stay) {
                      return host_bound(plan, device_, options_, states_stay, cache_);
                    },
                    [&](const HostBound& bound) { bound_ = std::min(bound_, bound.seconds()); },
                    [&](const std::shared_ptr<const Lowered>& plan, bool quick) {
                      const bool fits = attempt(plan, State::kHomes, quick ? Effort::kQuick : Effort::kWhole);
                      return fits ? last_ : nullptr;
                    },
                    [&](const Planned& plan) { return seconds(plan); }, staying_share(from), best_});
  }
  bool update_on_host_always(const Lowered& from) {
    for (const bool disk : {true, false})
      for (const bool packed : {true, false})
        if (attempt(forms_.on_host(from, {options_.forced.host_update_share, packed, disk}), State::kHomes))
          return true;
    return false;
  }
  // The problem whose largest op needs the least, of those that no plan was found for.
  std::shared_ptr<const Lowered> closest() const {
    const auto least = [](const std::shared_ptr<const Lowered>& plan) {
      return plan::least_bytes(plan->problem, plan::Index(plan->problem));
    };
    return *std::min_element(refused_.begin(), refused_.end(),
                             [&](const auto& a, const auto& b) { return least(a) < least(b); });
  }

  // Splits the weights of a vocabulary, and offloads what may be. `whole` has them in one piece.
  void split(const Lowered& whole) {
    if (whole.problem.links.empty()) return;
    graph::JointOptions joint = forms_.without_derived_weights(whole);
    const PartUnits units = parts_(joint);
    require(!units.empty() || options_.forced.vocabulary_parts <= 1, Code::kUnsupported,
            "no weight goes in parts: only lookups, fused losses or products of experts may use it, on a "
            "backend that makes the same bits of its parts, and it must have rows enough for two");
    const int64_t given = options_.forced.vocabulary_parts;
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
  // False: no plan fits, a quick search finds none, or none is faster where weights and gradients may be offloaded.
  bool attempt(const std::shared_ptr<const Lowered>& from) {
    return attempt(from, State::kResident, Effort::kQuick);
  }
  // The ops of this problem alone take as long as the best plan.
  bool leads_nowhere(const Lowered& plan) const {
    if (best_ == nullptr || plan.problem.budget_bytes == 0) return false;
    const double least = plan.problem.op_seconds() + once_per_step(plan);
    return seconds(*best_) <= least * (1 + kNothing) && derived_bytes(plan) <= derived_bytes(*best_);
  }
  bool attempt(const std::shared_ptr<const Lowered>& from, State state, Effort effort = Effort::kWhole) {
    if (from == nullptr) return false;  // the form does not exist
    const plan::Problem& problem = from->problem;
    const bool offloads = state != State::kResident, hurries = effort == Effort::kQuick;
    const bool quick = !offloads && hurries && problem.budget_bytes > 0;
    Outcome outcome{Solved::kOver};
    if (offloads) {
      const auto solve = state == State::kHomes ? solve_with_residencies : solve_with_offloaded_state;
      outcome = solve(*from, device_, options_, cache_, fastest(), hurries);
    } else if (leads_nowhere(*from)) {
      return true;
    } else if (problem.budget_bytes == 0 || problem.budget_bytes >= plan::least_budget(problem)) {
      // Small problems are searched for all budgets at once, so that more memory is never slower.
      std::optional<plan::Plan> found = !quick || problem.ops.size() <= plan::kSmallProblem
                                            ? cache_.solve_within(problem, problem.budget_bytes)
                                            : cache_.solve_quickly(problem, problem.budget_bytes);
      if (found) {
        found->bound_seconds = cache_.least_seconds(problem, problem.budget_bytes);
        outcome = {Solved::kFits, found->bound_seconds + once_per_step(*from),
                   std::make_shared<const Planned>(*from, std::move(*found))};
      }
    }
    if (outcome.solved == Solved::kOver)
      (quick ? refused_ : over_budget_).push_back(offloads ? outcome.plan : from);
    if (outcome.solved == Solved::kNothing || outcome.solved == Solved::kOver) return false;
    bound_ = std::min(bound_, outcome.least_seconds);
    if (outcome.solved == Solved::kSlower) return false;
    last_ = outcome.plan;
    if (best_ != nullptr && !better(*last_, *best_)) return true;
    best_ = last_;
    best_from_ = from;
    quick_ = quick;
    return true;
  }
  // Names the smallest budget of all problems that no plan fits. A bound shows for most that it need not be
  // searched for.
  void refuse() {
    std::vector<std::pair<int64_t, std::shared_ptr<const Lowered>>> plans;
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

  std::shared_ptr<const Lowered> without(const DerivedWeightChoices& derived,
                                         const std::vector<bool>& taken) const {
    graph::JointOptions joint = joint_;
    leave_out(derived, taken, joint);
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
  std::shared_ptr<const Planned> last_;       // the last plan that fitted
  std::shared_ptr<const Planned> best_;       // the best of them
  std::shared_ptr<const Lowered> best_from_;  // the problem that it solves
  std::shared_ptr<const plan::Problem> other_form_;
  bool quick_ = false;         // a quick search found the best plan
  bool within_reach_ = false;  // all that kernels can use in place in the tier lives there
  std::vector<std::shared_ptr<const Lowered>> refused_;  // quick searches found nothing for them
  double bound_ = std::numeric_limits<double>::infinity();
  std::vector<std::shared_ptr<const Lowered>>
      over_budget_;            // no plan fits; their smallest budgets are not known
  std::optional<Error> over_;  // names the smallest budget of those for which it is known
};

}  // namespace

Planned solve_variants(std::shared_ptr<const Lowered> lowered, const Relower& again, const FindParts& parts,
                       const graph::JointOptions& joint, device::Device& device, const PlanOptions& options,
                       plan::SolverCache& cache) {
  return Variants(again, parts, joint, device, options, cache).run(std::move(lowered));
}

}  // namespace cairn::engine
