#include "runtime/plan/homes/home_solver.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/base/text/cat.h"
#include "runtime/plan/bound/bound.h"
#include "runtime/plan/explain.h"
#include "runtime/plan/homes/outlook.h"
#include "runtime/plan/homes/placement.h"
#include "runtime/plan/homes/traffic.h"
#include "runtime/plan/text.h"

namespace cairn::plan {
namespace {

constexpr size_t kHomeProbes = 3;   // numbers of values that stay, looked at between two others, per round
constexpr int kSearches = 2;        // searches as a whole, each behind quick ones
constexpr double kWorthIt = 1e-3;   // of the best seconds: less is not searched for
constexpr double kSlowHomes = 0.1;  // of seconds: so much above what may be is slow
constexpr double kVisits = 2;       // a value that lives at home comes in so often, as a rule
// Shares of what a budget has above its persistent values that are left to copies.
constexpr std::array kRoomForCopies = {0.0, 0.0625, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75};
// Of the ops' seconds: uses that are so close have the value in between.
constexpr std::array kKeep = {0.0, 0.0625, 1e9};
constexpr double kEqual = 1e-9;
constexpr double kUnlimitedSeconds = std::numeric_limits<double>::infinity();
constexpr double kNone = 1e-6;  // shares of values that are none

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

HomeSolver::HomeSolver(const Problem& p) : p_(p) {
  std::vector<int64_t> uses(p.values.size(), 0);
  for (const Op& op : p.ops)
    for (const auto* list : {&op.inputs, &op.outputs})
      for (const int32_t v : *list) ++uses[v];
  std::vector<int64_t> room;
  for (const Link& link : p.links) room.push_back(link.capacity_bytes);
  for (const Value& value : p.values)
    if (value.at_home()) room[value.home] -= value.bytes;
  std::vector<int32_t> may_stay;
  for (size_t v = 0; v < p.values.size(); ++v)
    if (p.values[v].home >= 0 && p.values[v].persistent) may_stay.push_back(static_cast<int32_t>(v));
  std::vector<int32_t> dearest;
  for (const size_t k : spread(may_stay.size())) dearest.push_back(may_stay[k]);
  const auto seconds_per_byte = [&](int32_t v) {
    const Value& value = p.values[v];
    const double copies = static_cast<double>(uses[v]) / p.links[value.home].in_bytes_per_second;
    return copies + (value.bytes > 0 ? value.home_seconds / static_cast<double>(value.bytes) : 0);
  };
  std::stable_sort(dearest.begin(), dearest.end(),
                   [&](int32_t a, int32_t b) { return seconds_per_byte(a) > seconds_per_byte(b); });
  // Where a tier has no room for all, the dearest ones stay.
  fits_.assign(p.values.size(), true);
  for (size_t k = dearest.size(); k-- > 0;) {
    const int32_t v = dearest[k];
    int64_t& left = room[p.values[v].home];
    fits_[v] = p.values[v].bytes <= left;
    if (fits_[v]) left -= p.values[v].bytes;
  }
  std::copy_if(dearest.begin(), dearest.end(), std::back_inserter(dearest_),
               [&](int32_t v) { return fits_[v]; });
  order_ = dearest_;
}

HomeSolver::~HomeSolver() = default;

// Values of one kind stay in such numbers as the bound's program has them on the device where backward begins: then those of
// all kinds do as they do there, however many stay. Behind them what the program has none of.
void HomeSolver::order_for(int64_t budget_bytes) {
  Problem away = without_homes(resolve_homes(p_, std::vector<bool>(p_.values.size(), true)));
  away.links = p_.links;
  const HomeReads homes = home_reads(p_);
  const std::vector<double> here = shares_here(away, Index(away), budget_bytes, homes);
  std::vector<double> share(p_.values.size(), -1);
  for (size_t i = 0; i < here.size(); ++i) share[static_cast<size_t>(homes.values[i].value)] = here[i];
  std::map<double, std::vector<int32_t>, std::greater<>> kinds;
  for (const int32_t v : dearest_) kinds[share[static_cast<size_t>(v)]].push_back(v);
  std::vector<std::pair<double, int32_t>> turns;
  const double none = std::numeric_limits<double>::infinity();
  for (const auto& [part, values] : kinds)
    for (size_t k = 0; k < values.size(); ++k) {
      const double turn = static_cast<double>(k + 1) / (part * static_cast<double>(values.size()));
      turns.emplace_back(part > 1 - kNone ? 0 : part > kNone ? turn : none, values[k]);
    }
  std::vector<int32_t> order;
  if (kinds.size() > 1) {
    std::stable_sort(turns.begin(), turns.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [turn, v] : turns) order.push_back(v);
  } else {
    order = dearest_;
  }
  if (order == order_) return;
  order_ = std::move(order);
  std::erase_if(placed_,
                [](const auto& at) { return at.first > 0; });  // where none stays, the order says nothing
}

Placement& HomeSolver::placed(size_t stay) {
  std::unique_ptr<Placement>& known = placed_[stay];
  if (known == nullptr) {
    std::vector<bool> away = fits_;
    for (size_t k = 0; k < stay; ++k) away[order_[k]] = false;
    known = std::make_unique<Placement>(p_, away);
  }
  return *known;
}

// A search among numbers of values that stay and shares of the budget for copies: those first that promise most by
// their bounds, and none that cannot gain anything.
class HomeSolver::Trials {
 public:
  Trials(HomeSolver& solver, int64_t budget_bytes)
      : solver_(solver),
        limited_(budget_bytes > 0),
        budget_(limited_ ? budget_bytes : std::numeric_limits<int64_t>::max()) {}

  // No more than this fit. A plan of so many would be close to its smallest: slow, and long to search for.
  void limit(size_t most) { seen_.insert(most); }

  void look_at(size_t stay) {
    if (!seen_.insert(stay).second) return;
    if (best_ && outlooks_[0].least(stay) >= best_seconds_ * (1 - kWorthIt)) {
      met_.insert(stay);
      return;
    }
    Placement& at = solver_.placed(stay);
    if (at.least_bytes() <= budget_) open(stay, 0);
  }

  // Until nothing is left that may be faster. quick: leaves out plans close to the smallest.
  void run(bool quick) {
    while (!open_.empty()) {
      const auto next = std::min_element(open_.begin(), open_.end(), [](const Trial& a, const Trial& b) {
        return a.expected != b.expected ? a.expected < b.expected : a.stay > b.stay;
      });
      const Trial trial = *next;
      open_.erase(next);
      if (!attempted_.insert({trial.stay, trial.share, quick}).second) continue;
      const double least =
          quick ? std::max(trial.least, outlooks_[trial.share].least(trial.stay)) : trial.least;
      if (!best_ || least < best_seconds_ * (1 - kWorthIt))
        attempt(trial, quick);
      else if (trial.share == 0)
        met_.insert(trial.stay);
    }
  }

  // The best of all, searched as a whole.
  void finish() {
    if (!best_ || finished_ == std::pair(best_trial_.stay, best_trial_.share)) return;
    finished_ = {best_trial_.stay, best_trial_.share};
    attempt(Trial(best_trial_), false);
  }

  // More numbers around the best one's.
  void refine() {
    const auto found = seen_.find(best_trial_.stay);
    const size_t low = found == seen_.begin() ? *found : *std::prev(found);
    const size_t high = std::next(found) == seen_.end() ? *found : *std::next(found);
    for (size_t k = 1; k <= kHomeProbes; ++k) look_at(low + (high - low) * k / (kHomeProbes + 1));
    run(true);
  }

  // Whether what is done makes the best plan faster by more than nothing.
  template <class Work>
  bool is_faster_after(Work work) {
    const double before = best_seconds_;
    work();
    return best_seconds_ < before * (1 - kWorthIt);
  }

  // A number that was too many for a quick search is looked at once more.
  void look_again(size_t stay) {
    if (solver_.placed(stay).least_bytes() <= budget_ && !met_.contains(stay)) open(stay, 0);
  }
  bool slow() const { return best_seconds_ > solver_.placed(0).index().total_seconds * (1 + kSlowHomes); }

  std::optional<Plan>& best() { return best_; }
  size_t best_stay() const { return best_trial_.stay; }

 private:
  struct Trial {
    size_t stay = 0, share = 0;
    double least = 0, expected = 0;
    double before = 0;  // seconds with the share before this one
  };

  int64_t for_the_rest(const Placement& at, size_t share) const {
    return budget_ -
           static_cast<int64_t>(kRoomForCopies[share] * static_cast<double>(budget_ - at.persistent_bytes()));
  }
  // without: seconds of the plan with the share before, if it never waited for copies of what lives at home. With less memory
  // it is no faster.
  void open(size_t stay, size_t share, double before = kUnlimitedSeconds, double without = 0) {
    Placement& at = solver_.placed(stay);
    const double home = at.home_seconds();
    const double least = std::max(at.least_seconds(limited_ ? for_the_rest(at, share) : 0), without);
    open_.push_back({stay, share, least + home, std::max(least, kVisits * at.link_seconds()) + home, before});
  }

  void attempt(const Trial& trial, bool quick) {
    Placement& at = solver_.placed(trial.stay);
    const int64_t rest = limited_ ? for_the_rest(at, trial.share) : 0;
    const std::optional<Plan> plan = at.plan_without(rest, quick);
    if (!plan) return;
    met_.insert(trial.stay);
    double seconds = kUnlimitedSeconds;
    const auto consider = [&](std::optional<Plan> with) {
      if (!with) return;
      const double own = with->predicted_seconds + at.home_seconds();
      seconds = std::min(seconds, own);
      if (best_ && own >= best_seconds_ * (1 - kEqual)) return;
      best_ = std::move(with);
      best_seconds_ = own;
      best_trial_ = trial;
    };
    if (trial.share == 0) consider(at.stalled(*plan));
    for (const double keep : kKeep) {
      const double limit = best_ ? best_seconds_ * (1 - kEqual) - at.home_seconds() : kUnlimitedSeconds;
      auto [own, with] = at.streamed(*plan, budget_, keep * at.index().total_seconds, limit);
      seconds = std::min(seconds, own + at.home_seconds());
      consider(std::move(with));
    }
    if (quick) outlooks_[trial.share].add(trial.stay, plan->predicted_seconds + at.home_seconds(), seconds);
    // More room for copies, as long as that helps.
    const bool waits = seconds > (plan->predicted_seconds + at.home_seconds()) * (1 + kEqual);
    const bool helps = seconds < trial.before * (1 - kWorthIt);
    if (waits && helps && limited_ && trial.stay < solver_.order_.size() &&
        trial.share + 1 < kRoomForCopies.size())
      open(trial.stay, trial.share + 1, seconds, plan->predicted_seconds);
  }

  HomeSolver& solver_;
  const bool limited_;
  const int64_t budget_;
  std::set<size_t> seen_, met_;  // numbers that were looked at, and of which there are plans or need be none
  std::vector<Trial> open_;
  std::set<std::tuple<size_t, size_t, bool>> attempted_;  // number, share, quick
  std::array<Outlook, kRoomForCopies.size()> outlooks_;   // per share, by quick searches
  std::optional<Plan> best_;
  double best_seconds_ = 0;  // with what living at home costs
  Trial best_trial_;
  std::optional<std::pair<size_t, size_t>> finished_;  // the trial that was searched as a whole last
};

std::optional<Plan> HomeSolver::solve(int64_t budget_bytes) {
  order_for(budget_bytes);
  Trials trials(*this, budget_bytes);
  // More than this cannot stay.
  size_t most = order_.size(), too_many = order_.size() + 1;
  const auto too_large = [&](size_t stay) {
    return budget_bytes > 0 && placed(stay).least_bytes() > budget_bytes;
  };
  if (too_large(most)) {
    for (most = 0, too_many = order_.size(); too_many - most > 1;) {
      const size_t middle = most + (too_many - most) / 2;
      (too_large(middle) ? too_many : most) = middle;
    }
  }
  if (most == order_.size()) {
    trials.look_at(most);
    trials.run(true);
    if (trials.best() &&
        trials.best()->predicted_seconds <= placed(most).index().total_seconds * (1 + kEqual))
      return finish(placed(most), std::move(*trials.best()), budget_bytes);
  }
  for (size_t k = 0; k <= kHomeProbes; ++k) trials.look_at(most * k / (kHomeProbes + 1));
  trials.limit(most);
  trials.run(true);
  for (int search = 0; search < kSearches && trials.best(); ++search) {
    while (trials.is_faster_after([&] { trials.refine(); })) {
    }
    if (!trials.is_faster_after([&] { trials.finish(); })) break;
  }
  // Close to the smallest budget, where quick searches find nothing.
  if (!trials.best() || trials.slow()) {
    trials.look_again(0);
    trials.run(false);
  }
  if (!trials.best()) return {};
  return finish(placed(trials.best_stay()), std::move(*trials.best()), budget_bytes);
}

Plan HomeSolver::smallest() {
  Placement& at = placed(0);
  // Every value fetched for each use.
  const Plan plan = at.smallest_without();
  return finish(at, at.stalled(plan), plan.arena_bytes);
}

Plan HomeSolver::finish(const Placement& at, Plan plan, int64_t budget_bytes) const {
  const Problem resolved = resolve_homes(p_, std::vector<bool>(p_.values.size(), true));
  Problem all_away = without_homes(resolved);
  all_away.links = p_.links;  // what stays takes no room in a tier
  explain(at.resolved(), at.index(), Rules(at.resolved(), at.index(), Intervals(at.resolved(), at.index())),
          plan);
  plan.budget_bytes = budget_bytes;
  plan.device_peak_bytes = most_alive(at.resolved(), plan);
  plan.predicted_seconds = simulate(at.resolved(), plan).seconds;
  plan.keep_all_seconds = at.index().total_seconds;
  // Of seconds with what living at home costs beside them, which no placement gets below.
  const HomeReads homes = home_reads(p_);
  const double least =
      std::max(lower_bound_seconds(all_away, Index(all_away), budget_bytes, homes),
               least_link_seconds(resolved, budget_bytes, true) + least_home_seconds(homes, budget_bytes));
  plan.bound_seconds = std::max(0.0, least - at.home_seconds());
  plan.gap = plan.bound_seconds > 0 ? (plan.predicted_seconds - plan.bound_seconds) / plan.bound_seconds : 0;
  for (Step& step : plan.steps) {
    if (step.kind != StepKind::kRun) continue;
    std::vector<int64_t> offsets;  // of what stays, too
    size_t next = 0;
    for (const int32_t v : p_.ops[step.index].outputs)
      offsets.push_back(p_.values[v].home >= 0 && at.resolved().values[v].home < 0 ? -1
                                                                                   : step.offsets[next++]);
    step.offsets = std::move(offsets);
  }
  std::vector<int> fetched(p_.values.size(), 0), sent(p_.values.size(), 0);
  for (const Step& step : plan.steps) {
    if (step.kind == StepKind::kIn) ++fetched[step.index];
    if (step.kind == StepKind::kOut) ++sent[step.index];
  }
  for (size_t v = 0; v < p_.values.size(); ++v) {
    if (!at.resolved().values[v].at_home()) continue;
    const int32_t home = at.resolved().values[v].home;
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
