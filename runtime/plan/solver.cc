// From a budget to a plan. Small problems: one set of good plans over all budgets, searched without looking
// at the budget, so that more memory is never slower and the smallest budget is exact. Large ones: stages,
// dynamic program, then the same local search, for the one budget.
#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <optional>

#include "runtime/base/checked.h"
#include "runtime/base/error.h"
#include "runtime/plan/bound.h"
#include "runtime/plan/explain.h"
#include "runtime/plan/frontier.h"
#include "runtime/plan/improve.h"
#include "runtime/plan/layout.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/recursion.h"

namespace cairn::plan {
namespace {

constexpr int kLevels = 28;                 // budgets that the search aims at there
constexpr int kAllSubsets = 12;             // so few saved values: every subset is tried
constexpr int64_t kSearchWork = 6'000'000;  // and for a large one, after the dynamic program
constexpr int64_t kTableWork = 12'000'000;  // steps of the dynamic program
constexpr std::array<Lag, 2> kLags = {Lag{8, .05}, Lag{3, .1}};
constexpr size_t kOptions = 48;                                // per stage
constexpr double kGoodEnough = 1e-3, kGoodEnoughLater = 5e-3;  // gaps that end the search
constexpr int kLayouts = 8;                                    // tried per round
constexpr int kRounds = 4;                                     // of feedback from the real peak or arena

class Solver {
 public:
  explicit Solver(const Problem& p)
      : p_(p),
        index_(p),
        gaps_(p, index_),
        rules_(p, index_, gaps_),
        evaluate_(p, index_, gaps_),
        improve_(p, index_, gaps_, rules_, evaluate_,
                 [this](const Thresholds& t, Pace pace, const Cost& cost) { archive_.add(t, pace, cost); }) {}

  // budget_bytes 0: no limit. Nothing if no plan fits; the smallest plan is then in `smallest`, if wanted.
  std::optional<Plan> solve(int64_t budget_bytes, std::optional<Plan>* smallest = nullptr) {
    const int64_t budget = budget_bytes > 0 ? budget_bytes : INT64_MAX;
    const Candidate least{rules_.base, {}, evaluate_(rules_.base, {}, sequence_)};
    // Nothing is faster than running each op once and never waiting; where policies ask for more, a search
    // may find something better, if there is a budget at all.
    const double seconds = small() && budget_bytes > 0 ? index_.total_seconds : sequence_.seconds;
    if (least.cost.peak_bytes <= budget && least.cost.seconds <= seconds) {
      Plan plan = lay_out(least, capacity(least, budget));
      if (plan.arena_bytes <= budget) return finish(std::move(plan), budget_bytes);
    }
    if (small()) {
      if (!searched_) search_all_budgets();
      searched_ = true;
      if (auto plan = fastest_within(budget, budget)) return finish(std::move(*plan), budget_bytes);
      if (smallest) *smallest = lowest();
      return {};
    }
    if (auto plan = for_budget(budget)) return finish(std::move(*plan), budget_bytes);
    if (!smallest_) {
      smallest_ = smallest_plan();
      smallest_fit_ = fit_;
    }
    if (smallest_->arena_bytes <= budget) return finish(from_smallest(budget), budget_bytes);
    if (smallest) *smallest = smallest_;
    return {};
  }

 private:
  // ------------------------------------------------------------------------- all budgets of a small problem
  // Looks at the problem alone: what it finds is the same for every budget.
  void search_all_budgets() {
    for (const Pace& pace : paces()) try_thresholds(rules_.base, pace);
    try_subsets();
    const int64_t most = archive_.plans().rbegin()->first, room = most - index_.persistent_bytes;
    const Stages stages(p_, index_);
    const OptionSets sets(p_, index_, gaps_, rules_, stages, p_.links.empty() ? -1 : 0, kOptions);
    for (int level = 1; level <= kLevels; ++level) {
      from_stages(stages, sets, room * level / kLevels);
      from_recursion(stages, room * level / kLevels / 2);
    }
    for (Thresholds& t : improve_.bare())
      if (try_thresholds(t, {})) bare_.push_back({t, {}, evaluate_(t, {}, sequence_)});
    const bool copies = !p_.links.empty();
    improve_.use_links(false);
    search_levels(most);
    if (!copies) return;
    improve_.use_links(true);
    search_levels(most);
  }

  // Aims at budgets between the least that can be found and that of keeping everything.
  void search_levels(int64_t most) {
    Candidate low = archive_.plans().begin()->second;
    improve_.descend(low, 0);
    low = archive_.plans().begin()->second;
    improve_.shrink(low, 4 * level_work());
    const int64_t least = archive_.plans().begin()->first;
    for (int level = 0; level < kLevels; ++level) {
      const int64_t budget = least + (most - least) * level / kLevels;
      const double bound = lower_bound_seconds(p_, index_, budget);
      int64_t target = budget;
      for (int round = 0; round < kRounds; ++round) {
        const Candidate* known = archive_.within(target);
        const bool optimal = known && known->cost.seconds <= bound * (1 + 1e-9);
        if (!optimal) search_budget(target, round == 0 ? level_work() : level_work() / 4);
        const Candidate* found = archive_.within(target);
        if (!found) break;
        const int64_t over = lay_out(*found, budget).arena_bytes - budget;
        if (over <= 0) break;
        target = found->cost.peak_bytes - std::max<int64_t>(1, over / 2);
      }
    }
  }

  void search_budget(int64_t budget, int64_t work) {
    for (const Candidate& from : bare_) {
      Candidate c = from;
      if (c.cost.peak_bytes <= budget) improve_.search(c, budget, 0);
    }
    if (const Candidate* start = archive_.within(budget)) improve_.anneal(*start, budget, work * 6 / 10);
    if (const Candidate* start = archive_.within(budget)) {
      Candidate c = *start;
      improve_.search(c, budget, work * 4 / 10);
    }
  }

  int64_t level_work() const {
    const auto ops = static_cast<int64_t>(p_.ops.size());
    return std::clamp<int64_t>(8 * ops * ops * ops, 8'000, 600'000);
  }

  std::vector<Pace> paces() const {
    if (p_.links.empty()) return {{}};
    int64_t largest = 0;
    for (const Value& v : p_.values)
      if (!v.persistent) largest = std::max(largest, v.bytes);
    return {{}, {4 * std::min(largest, INT64_MAX / 8)}, {0}};
  }

  bool try_thresholds(const Thresholds& t, Pace pace) {
    const Cost cost = evaluate_(t, pace, sequence_);
    if (cost.valid) archive_.add(t, pace, cost);
    return cost.valid;
  }

  void try_subsets() {
    std::vector<int32_t> saved;
    for (size_t v = 0; v < p_.values.size(); ++v)
      if (const int32_t g = rules_.across[v]; g >= 0 && rules_.free[g] && p_.values[v].bytes > 0)
        saved.push_back(g);
    if (saved.size() > kAllSubsets) return;
    for (uint32_t subset = 1; subset < 1u << saved.size(); ++subset) {
      Thresholds t = rules_.base;
      for (size_t k = 0; k < saved.size(); ++k)
        if (subset >> k & 1) t[saved[k]] = p_.turnaround;
      try_thresholds(t, {});
    }
  }

  // The fastest plan of the archive with such a peak whose arena fits.
  std::optional<Plan> fastest_within(int64_t peak, int64_t budget, int attempts = INT_MAX) {
    for (const Candidate* candidate : archive_.by_seconds(peak)) {
      if (attempts-- == 0) break;
      Plan plan = lay_out(*candidate, capacity(*candidate, budget));
      if (plan.arena_bytes <= budget) {
        fit_ = *candidate;
        return plan;
      }
    }
    return {};
  }

  std::optional<Plan> lowest() {
    std::vector<const Candidate*> list = archive_.by_seconds(INT64_MAX);
    std::stable_sort(list.begin(), list.end(), [](const Candidate* a, const Candidate* b) {
      return a->cost.peak_bytes < b->cost.peak_bytes;
    });
    std::optional<Plan> best;
    for (const Candidate* candidate : list) {
      if (best && candidate->cost.peak_bytes >= best->arena_bytes) break;  // an arena is never below its peak
      Plan plan = lay_out(*candidate, candidate->cost.peak_bytes);
      if (best && plan.arena_bytes >= best->arena_bytes) continue;
      best = std::move(plan);
      fit_ = *candidate;
    }
    return best;
  }

  // ------------------------------------------------------------------------- candidates from the structure
  void from_stages(const Stages& stages, const OptionSets& sets, int64_t room,
                   int64_t work = kTableWork / 20) {
    const int32_t link = p_.links.empty() ? -1 : 0;
    double price = 0;
    const Chosen chosen = choose_options(p_, stages, sets, room, link, kLags[0], work, price);
    if (!chosen.found) return;
    Thresholds t = rules_.base;
    for (size_t s = 0; s < stages.all.size(); ++s) sets.apply(s, *chosen.options[s], t);
    for (const Pace& pace : paces()) try_thresholds(t, pace);
  }

  void from_recursion(const Stages& stages, int64_t room) {
    Thresholds t;
    if (recurse(p_, index_, gaps_, rules_, stages, room, t)) try_thresholds(t, {});
  }

  // ------------------------------------------------------------------------- one budget of a large problem
  std::optional<Plan> for_budget(int64_t budget) {
    const double bound = lower_bound_seconds(p_, index_, budget);
    archive_ = {};
    for (const Pace& pace : paces()) try_thresholds(rules_.base, pace);
    int64_t target = budget;
    std::optional<Plan> best;
    for (int round = 0; round < kRounds && target > index_.persistent_bytes; ++round) {
      aim(target);
      const Candidate* first = archive_.within(target);
      if (!first) break;
      keep_faster(best, fastest_within(target, budget, kLayouts));
      const int64_t over = lay_out(*first, budget).arena_bytes - budget;
      if (over <= 0) break;
      target = first->cost.peak_bytes - over;
    }
    if (best) improve_fit(best, target, budget, bound);
    return best;
  }

  void keep_faster(std::optional<Plan>& best, std::optional<Plan> plan) const {
    if (plan && (!best || predicted(*plan) < predicted(*best))) best = std::move(plan);
  }

  double predicted(const Plan& plan) const { return simulate(p_, plan).seconds; }

  void look_at_stages() {
    if (stages_) return;
    stages_.emplace(p_, index_);
    sets_.push_back({p_, index_, gaps_, rules_, *stages_, -1, kOptions});
    if (!p_.links.empty()) sets_.push_back({p_, index_, gaps_, rules_, *stages_, 0, kOptions});
  }

  // Fills the archive with plans whose peak is close to the target.
  void aim(int64_t target) {
    look_at_stages();
    aim_with(sets_[0], -1, {}, target);
    if (!p_.links.empty())
      for (const Lag& lag : kLags) aim_with(sets_[1], 0, lag, target);
    if (!archive_.within(target)) deepen(target);
    const Candidate* found = archive_.within(target);
    if (!found && p_.ops.size() <= kSearched) {
      for (const Thresholds& t : improve_.bare()) try_thresholds(t, {});
      Candidate c = archive_.plans().begin()->second;
      improve_.descend(c, target);
    }
  }

  // The table's peaks are a little too high or low: looks for the room at which the real one is the target.
  void aim_with(const OptionSets& sets, int32_t link, Lag lag, int64_t target) {
    const int64_t wanted = target - index_.persistent_bytes;
    int64_t room = wanted, fits = 0, too_much = 0;
    double price = 0;
    for (int round = 0; round < (link < 0 ? 2 * kRounds : kRounds) && room > 0; ++round) {
      const Chosen chosen = choose_options(p_, *stages_, sets, room, link, lag, kTableWork, price);
      if (!chosen.found) break;
      Thresholds t = rules_.base;
      for (size_t s = 0; s < stages_->all.size(); ++s) sets.apply(s, *chosen.options[s], t);
      const Cost cost = evaluate_(t, {}, sequence_);
      if (!cost.valid) break;
      archive_.add(t, {}, cost);
      const int64_t spare = target - cost.peak_bytes;
      (spare >= 0 ? fits : too_much) = room;
      if (spare >= 0 && spare <= wanted / 1000) break;
      if (fits > 0 && too_much > 0 && std::abs(too_much - fits) <= wanted / 2000) break;
      room = fits > 0 && too_much > 0 ? (fits + too_much) / 2 : room + spare;
    }
  }

  // More levels of recompute.
  void deepen(int64_t target) {
    int64_t room = target - index_.persistent_bytes;
    for (int round = 0; round < 2 * kRounds && room > 0; ++round) {
      Thresholds t;
      if (!recurse(p_, index_, gaps_, rules_, *stages_, room, t)) return;
      const Cost cost = evaluate_(t, {}, sequence_);
      if (!cost.valid) return;
      archive_.add(t, {}, cost);
      if (cost.peak_bytes <= target) return;
      room -= cost.peak_bytes - target;
    }
  }

  // Does not look at the budget: the same for all that are too small.
  Plan smallest_plan() {
    look_at_stages();
    archive_ = {};
    for (const Pace& pace : paces()) try_thresholds(rules_.base, pace);
    int64_t high = archive_.plans().begin()->first - index_.persistent_bytes, low = 0;
    for (int round = 0; round < 12 && high - low > high / 64; ++round) {
      const int64_t room = low + (high - low) / 2;
      Thresholds t;
      (recurse(p_, index_, gaps_, rules_, *stages_, room, t) && try_thresholds(t, {}) ? high : low) = room;
    }
    if (p_.ops.size() <= kSearched) {
      for (const Thresholds& t : improve_.bare()) try_thresholds(t, {});
      Candidate c = archive_.plans().begin()->second;
      improve_.shrink(c, kSearchWork);
    }
    Plan best = *lowest();
    for (int round = 0; round < kRounds; ++round) {  // exact: one page less fails
      auto plan = for_budget(best.arena_bytes - kPageBytes);
      if (!plan) break;
      best = std::move(*plan);
    }
    return best;
  }

  // Between the smallest budget and those that for_budget() masters: what is faster near the smallest plan.
  Plan from_smallest(int64_t budget) {
    archive_ = {};
    archive_.add(smallest_fit_.thresholds, smallest_fit_.pace, smallest_fit_.cost);
    std::optional<Plan> best = smallest_;
    const double bound = lower_bound_seconds(p_, index_, budget);
    improve_fit(best, budget, budget, bound);
    return std::move(*best);
  }

  // Searches near the archive's best as long as that gains much.
  void improve_fit(std::optional<Plan>& best, int64_t target, int64_t budget, double bound) {
    if (p_.ops.size() > kSearched) return;
    for (int round = 0; round < kRounds; ++round) {
      const Candidate* first = archive_.within(target);
      if (!first || predicted(*best) <= bound * (1 + (round == 0 ? kGoodEnough : kGoodEnoughLater))) return;
      improve_.anneal(*first, target, kSearchWork / 2);
      Candidate c = *archive_.within(target);
      improve_.search(c, target, kSearchWork / 2);
      keep_faster(best, fastest_within(target, budget, kLayouts));
    }
  }

  // ------------------------------------------------------------------------- plans
  // Of small problems an arena does not depend on the budget, so that what fits fits in more as well.
  int64_t capacity(const Candidate& c, int64_t budget) const { return small() ? c.cost.peak_bytes : budget; }
  bool small() const { return p_.ops.size() <= kSmallProblem; }

  // Tries hard only as long as the arena is higher than `capacity`.
  Plan lay_out(const Candidate& c, int64_t capacity) {
    Schedule s = evaluate_.schedule(c.thresholds, c.pace, sequence_);
    Plan plan;
    plan.steps = std::move(s.steps);
    plan.device_peak_bytes = s.peak_bytes;
    plan.tier_peak_bytes = std::move(s.tier_peak_bytes);
    assign_offsets(p_, index_, plan, capacity == INT64_MAX ? 0 : capacity);
    return plan;
  }

  Plan finish(Plan plan, int64_t budget_bytes) const {
    plan.budget_bytes = budget_bytes;
    plan.predicted_seconds = simulate(p_, plan).seconds;
    plan.keep_all_seconds = index_.total_seconds;
    plan.bound_seconds = lower_bound_seconds(p_, index_, budget_bytes);
    plan.gap =
        plan.bound_seconds > 0 ? (plan.predicted_seconds - plan.bound_seconds) / plan.bound_seconds : 0;
    explain(p_, index_, rules_, plan);
    return plan;
  }

  static constexpr size_t kSearched = 6000;  // ops of a problem that local search still does something for

  const Problem& p_;
  Index index_;
  Gaps gaps_;
  Rules rules_;
  Evaluator evaluate_;
  Archive archive_;
  std::vector<Candidate> bare_;
  Improver improve_;
  Sequence sequence_;
  bool searched_ = false;  // the archive has plans for all budgets
  std::optional<Plan> smallest_;
  Candidate fit_, smallest_fit_;  // of the last plan that fitted, and of the smallest
  std::optional<Stages> stages_;
  std::vector<OptionSets> sets_;  // without links, and with the first one
};

}  // namespace

Plan solve(const Problem& p) {
  const auto start = std::chrono::steady_clock::now();
  check(p);
  std::optional<Plan> smallest;
  std::optional<Plan> plan = Solver(p).solve(p.budget_bytes, &smallest);
  if (!plan) fail_over_budget(p, Index(p), *smallest);
  plan->solve_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return std::move(*plan);
}

std::vector<std::optional<Plan>> solve_all(const Problem& p, const std::vector<int64_t>& budgets) {
  check(p);
  Solver solver(p);
  std::vector<std::optional<Plan>> plans;
  for (int64_t budget : budgets) {
    const auto start = std::chrono::steady_clock::now();
    plans.push_back(solver.solve(budget));
    if (plans.back())
      plans.back()->solve_seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  return plans;
}

}  // namespace cairn::plan
