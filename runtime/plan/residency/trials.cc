#include "runtime/plan/residency/trials.h"

#include <algorithm>

#include "runtime/plan/layout/layout.h"

namespace cairn::plan {
namespace {

constexpr size_t kHomeProbes = 3;  // numbers of values kept that are looked at between two others, per round
constexpr int kSearches = 2;       // full searches for very few ops, each after quick ones; one for others
// How many pairs are laid out closely: those whose copies would be the fastest if they fitted. A quick search only
// ranks problems, so fewer do.
constexpr size_t kFittedClosely = 4, kFittedQuickly = 1;
constexpr double kWorthFittingQuickly = 0.02;  // a gain of so large a share of the seconds
constexpr size_t kFinished = 3;        // of few ops: the best pairs of quick searches that get a full search
constexpr double kSlowHomes = 0.1;     // of seconds: so far above the estimate is slow
constexpr double kFarOff = 0.1;        // above the bound, as found by rough searches, which are imprecise
constexpr double kVeryFar = 1;         // above the bound: a longer search finds more
constexpr double kNearShares = 0.005;  // of seconds, that a neighbouring share may gain
constexpr double kHopeless = 0.5;      // of seconds: so much slower than the best is not pursued
// Of seconds: a slow pair is searched for longer if it is so close to the best, or to what is known of other
// problems.
constexpr double kSlowNear = 0.01, kSlowNearOther = 0.05;
constexpr double kVisits = 2;  // how often a tier-resident value is fetched, as a rule
// Of the ops' seconds: between uses that are so close the value remains on the device.
constexpr std::array kKeep = {0.0, 0.0625, 1e9};

}  // namespace

void Trials::run_up_to(size_t most, Effort effort) {
  if (most == all_) {
    look_at(most);
    run_roughly();
    if (best_ && best_->predicted_seconds <= placed_(most).index().total_seconds * (1 + kEqual)) return;
  }
  look_at(0);
  look_between(0, most);
  // A plan that keeps so many values would be close to its smallest one: slow, and long to search for.
  seen_.insert(most);
  run_roughly();
  const int searches = tiny() ? kSearches : 1;
  for (int search = 0; search < searches && best_; ++search) {
    while (is_faster_after([&] { refine(); })) {
    }
    if (!tiny()) fit_closely(effort);
    if (effort == Effort::kQuick || !is_faster_after([&] { finish(); })) break;
  }
  // Close to the smallest budget, where quick searches find nothing.
  if (effort == Effort::kQuick && best_seconds_ < kUnlimitedSeconds) return;
  open_.clear();
  if (best_ ? slow() : met_.empty()) {
    look_again(0);
    for (const Trial& trial : std::exchange(open_, {})) attempt_once(trial, Effort::kWhole);
    run_roughly();
  }
  if (!tiny() && limited_ && placed_(0).least_bytes() <= budget_) search_where_all_leave();
}

// Keeps no value. A little above the smallest budget, quick searches find plans, but these may be many times slower
// than the fastest that fits.
void Trials::search_where_all_leave() {
  const Trial all_leave = opened(0, 0, 1, kUnlimitedSeconds, 0);
  if (best_seconds_ > all_leave.least * (1 + kVeryFar) && attempt_once(all_leave, Effort::kWhole))
    run_roughly();
}

// Rough searches first. For many ops, a pair far above its bound gets a longer search only if no other pair is
// better, and only where it may lead to a faster plan.
void Trials::run_roughly() {
  if (tiny()) return run(Effort::kQuick);
  run(Effort::kRough);
  if (best_ && best_seconds_ <= best_trial_.least * (1 + kFarOff)) return;
  while (!slow_.empty()) {
    const auto next = first_of(slow_);
    const Trial trial = *next;
    slow_.erase(next);
    if (!may_lead_on(trial)) continue;
    open_.push_back(trial);
    run(Effort::kQuick, 1);
    run(Effort::kRough);
  }
}

// Very few ops: everything is tried, as it takes little time.
bool Trials::tiny() const { return placed_(0).resolved().ops.size() <= kTinyProblem; }

// Without seconds that are known to be possible, every pair may lead on.
bool Trials::may_lead_on(const Trial& slow) const {
  if (best_seconds_ == kUnlimitedSeconds) return true;
  const double near = best_seconds_ * (1 + (best_ ? kSlowNear : kSlowNearOther));
  return slow.before <= near || slow.seconds <= near;
}

// Evenly by bytes, not by number: most values of a model are biases and gains, which hardly matter.
void Trials::look_between(size_t low, size_t high) {
  for (size_t k = 1; k <= kHomeProbes; ++k) {
    const size_t bytes = bytes_[low] + (bytes_[high] - bytes_[low]) / (kHomeProbes + 1) * k;
    const auto at = std::lower_bound(bytes_.begin() + static_cast<std::ptrdiff_t>(low),
                                     bytes_.begin() + static_cast<std::ptrdiff_t>(high), bytes);
    look_at(static_cast<size_t>(at - bytes_.begin()));
  }
}

void Trials::look_at(size_t stay) {
  if (!seen_.insert(stay).second) return;
  if (outlooks_[best_ && !tiny() ? best_trial_.share : 0].least(bytes_[stay]) >=
      best_seconds_ * (1 - kWorthIt)) {
    met_.insert(stay);
    return;
  }
  if (placed_(stay).least_bytes() <= budget_) open(stay, 0);
}

// Looks once more at a number that was too many for a quick search.
void Trials::look_again(size_t stay) {
  if (placed_(stay).least_bytes() <= budget_ && !met_.contains(stay)) open(stay, 0);
}

// The pair that promises most.
std::vector<Trials::Trial>::iterator Trials::first_of(std::vector<Trial>& trials) {
  return std::min_element(trials.begin(), trials.end(), [](const Trial& a, const Trial& b) {
    return a.expected != b.expected ? a.expected < b.expected : a.stay > b.stay;
  });
}

// Until no pair is left that may be faster. Plans close to the smallest are not looked for.
void Trials::run(Effort effort, size_t most) {
  for (size_t count = 0; count < most && !open_.empty(); ++count) {
    const auto next = first_of(open_);
    const Trial trial = at_best_share(*next);
    open_.erase(next);
    if (attempted_.contains({trial.stay, trial.share, effort})) continue;
    const double least = std::max(trial.least, outlooks_[trial.share].least(bytes_[trial.stay]));
    if (least < best_seconds_ * (1 - kWorthIt))
      attempt_once(trial, effort);
    else if (trial.share == 0)
      met_.insert(trial.stay);
  }
}

// Tries further numbers around the best one.
void Trials::refine() {
  const auto found = seen_.find(best_trial_.stay);
  const size_t low = found == seen_.begin() ? *found : *std::prev(found);
  const size_t high = std::next(found) == seen_.end() ? *found : *std::next(found);
  look_between(low, high);
  run_roughly();
}

// Large values leave holes in a layout. If all copies leave more room because of one such value, that costs more than
// room only at the steps where it is missing. For very few ops this is left out: a budget might get a faster plan
// than a larger one.
void Trials::fit_closely(Effort effort) {
  const bool quick = effort == Effort::kQuick;
  const double worth = quick ? kWorthFittingQuickly : kWorthIt;
  std::vector<Trial> promising = tried_;
  std::stable_sort(promising.begin(), promising.end(),
                   [](const Trial& a, const Trial& b) { return a.streamed < b.streamed; });
  promising.resize(std::min(promising.size(), quick ? kFittedQuickly : kFittedClosely));
  for (const Trial& trial : promising) {
    if (trial.streamed >= best_seconds_ * (1 - worth)) break;
    Placement& at = placed_(trial.stay);
    const std::optional<Plan> plan =
        at.plan_without(limited_ ? for_the_rest(at, trial.share) : 0, trial.effort);
    double tried = 0;
    for (auto& [keep, copies] : plan ? ways(at, *plan) : std::vector<Way>()) {
      if (copies.seconds <= tried * (1 + kEqual)) continue;
      tried = copies.seconds;
      const double limit = best_seconds_ * (1 - kEqual) - at.home_seconds();
      consider(trial, at.fitted(*plan, std::move(copies), budget_, keep, limit, 1).plan);
    }
  }
}

// Full searches for the best pairs: for several of them if there are few ops, as that takes little time. If there are
// many ops, only if a quick search gains something: where it does not, the copies decide.
void Trials::finish() {
  std::stable_sort(tried_.begin(), tried_.end(),
                   [](const Trial& a, const Trial& b) { return a.seconds < b.seconds; });
  bool attempted = false;
  const auto try_quickly = [&] { attempted = attempt_once(tried_[0], Effort::kQuick); };
  if (!tiny() && !tried_.empty() && !is_faster_after(try_quickly) && attempted) return;
  for (size_t k = 0; k < std::min(tiny() ? kFinished : 1, tried_.size()); ++k)
    attempt_once(tried_[k], Effort::kWhole);
}

// Whether the work makes the best plan faster.
template <class Work>
bool Trials::is_faster_after(Work work) {
  const double before = best_seconds_;
  work();
  return best_seconds_ < before * (1 - kWorthIt);
}

bool Trials::slow() const { return best_seconds_ > placed_(0).index().total_seconds * (1 + kSlowHomes); }

int64_t Trials::for_the_rest(const Placement& at, size_t share) const {
  return budget_ -
         static_cast<int64_t>(kRoomForCopies[share] * static_cast<double>(budget_ - at.persistent_bytes()));
}

// without: the seconds of the plan with a smaller share, if it never waited for copies of tier-resident values. With
// less memory it is no faster.
Trials::Trial Trials::opened(size_t stay, size_t share, int step, double before, double without) const {
  Placement& at = placed_(stay);
  const double home = at.home_seconds();
  const double least = std::max(at.least_seconds(limited_ ? for_the_rest(at, share) : 0), without);
  Trial trial{stay, share, least + home, std::max(least, kVisits * at.link_seconds()) + home, before};
  trial.step = step;
  return trial;
}

void Trials::open(size_t stay, size_t share, int step, double before, double without) {
  open_.push_back(opened(stay, share, step, before, without));
}

// The best shares of different numbers are about the same. So a new number begins at the best share so far, unless
// that cannot be faster.
Trials::Trial Trials::at_best_share(const Trial& trial) const {
  if (tiny() || !best_ || best_trial_.share == 0) return trial;
  if (trial.share > 0 || trial.before < kUnlimitedSeconds) return trial;
  const Trial there = opened(trial.stay, best_trial_.share, 0, kUnlimitedSeconds, 0);
  return there.least < best_seconds_ * (1 - kWorthIt) ? there : trial;
}

// The fastest first, without offsets: those take most of the time.
std::vector<Trials::Way> Trials::ways(const Placement& at, const Plan& plan) const {
  std::vector<Way> found;
  for (const double keep : kKeep) {
    const double own = keep * at.index().total_seconds;
    found.push_back({own, at.stream(plan, budget_, own, found.empty() ? nullptr : &found.back().copies)});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Way& a, const Way& b) { return a.copies.seconds < b.copies.seconds; });
  return found;
}

void Trials::consider(const Trial& trial, std::optional<Plan> with) {
  if (!with) return;
  const double own = with->predicted_seconds + placed_(trial.stay).home_seconds();
  if (own >= best_seconds_ * (1 - kEqual)) return;
  best_ = std::move(with);
  best_seconds_ = own;
  best_trial_ = trial;
}

// False if the pair was tried before.
bool Trials::attempt_once(Trial trial, Effort effort) {
  if (!attempted_.insert({trial.stay, trial.share, effort}).second) return false;
  attempt(trial, effort);
  return true;
}

void Trials::attempt(const Trial& trial, Effort effort) {
  Placement& at = placed_(trial.stay);
  const int64_t rest = limited_ ? for_the_rest(at, trial.share) : 0;
  const std::optional<Plan> plan = at.plan_without(rest, effort);
  const bool whole = effort == Effort::kWhole;
  const bool is_slow = effort == Effort::kRough && (!plan || plan->gap > kFarOff);
  // A plan that is so slow gains nothing from copies. Where other plans are known, a longer search seldom finds
  // enough.
  if (plan && !tiny() && plan->predicted_seconds + at.home_seconds() > best_seconds_ * (1 + kHopeless)) {
    met_.insert(trial.stay);
    return;
  }
  if (is_slow && !plan) slow_.push_back(trial);
  if (!plan) return;
  met_.insert(trial.stay);
  double seconds = kUnlimitedSeconds;
  std::vector<Way> found = ways(at, *plan);
  const double streamed = found[0].copies.seconds + at.home_seconds();
  // Fetching right before each use always fits. It is laid out only if nothing is faster.
  const double stalled = trial.share == 0 ? at.stalled_seconds(*plan) + at.home_seconds() : kUnlimitedSeconds;
  double tried = 0;
  for (auto& [keep, copies] : found) {
    if (copies.seconds <= tried * (1 + kEqual)) continue;  // almost the same copies
    tried = copies.seconds;
    const double limit = std::min(best_seconds_, stalled) * (1 - kEqual) - at.home_seconds();
    auto [own, with] = at.fitted(*plan, std::move(copies), budget_, keep, limit, whole ? 0 : kNoEffort);
    seconds = std::min(seconds, own + at.home_seconds());
    consider(trial, std::move(with));
  }
  seconds = std::min(seconds, stalled);
  if (stalled < best_seconds_ * (1 - kEqual)) consider(trial, at.stalled(*plan));
  if (!whole) {
    outlooks_[trial.share].add(bytes_[trial.stay], plan->predicted_seconds + at.home_seconds(), seconds);
    tried_.push_back(trial);
    tried_.back().seconds = seconds;
    tried_.back().streamed = streamed;
    tried_.back().effort = effort;
    if (is_slow) slow_.push_back(tried_.back());
  }
  // Next, more room for copies, as long as that helps; or less.
  const bool waits = seconds > (plan->predicted_seconds + at.home_seconds()) * (1 + kEqual);
  const bool helps = seconds < trial.before * (1 - kWorthIt);
  const bool near = trial.step != 0 || seconds < best_seconds_ * (1 + kNearShares);
  if (!helps || !near || !limited_ || at.link_seconds() == 0) return;
  if (waits && trial.step >= 0 && trial.share + 1 < kRoomForCopies.size())
    open(trial.stay, trial.share + 1, 1, seconds, plan->predicted_seconds);
  if (trial.step <= 0 && trial.share > 0) open(trial.stay, trial.share - 1, -1, seconds);
}

}  // namespace cairn::plan
