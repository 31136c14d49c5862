#include "runtime/plan/search/levels.h"

#include <algorithm>
#include <limits>
#include <map>

#include "runtime/plan/search/search_all.h"

namespace cairn::plan {
namespace {

// Problems of up to so many ops are searched for all budgets at once.
constexpr size_t kSearchedAtOnce = kTinyProblem / 2;

}  // namespace

// The plans of structure for the lowest levels are far above the bound. These levels are searched together, each from
// the plans of the one below. Each higher level is searched by itself. A level answers for budgets up to the next
// level, so that no plan that it leaves out is faster.
class Levels::Found {
 public:
  explicit Found(Search& search) : s_(search), all_(search), levels_(all_.levels()), first_(levels_) {
    if (s_.p.ops.size() <= kSearchedAtOnce) return;
    all_.look();
    while (first_ > 1 && all_.near(first_ - 1)) --first_;
    s_.exchange(before_);
  }

  std::optional<Fit> fastest_within(int64_t budget) {
    std::optional<Fit> best;
    int level = first_;
    while (level < levels_ - 1 && all_.budget_at(level) < budget) ++level;
    for (; level >= first_ && level < levels_; --level)
      if (!add_fastest(level, budget, best)) return best;
    add_fastest(kLow, budget, best);
    return best;
  }

  Fit lowest() {
    std::optional<Fit> best;
    const auto add = [&](int level) {
      among(level, [&] {
        auto fit = s_.lowest();
        if (fit && fit->plan.arena_bytes <= limit_of(level) &&
            (!best || fit->plan.arena_bytes < best->plan.arena_bytes))
          best = std::move(fit);
      });
    };
    add(kLow);
    for (int level = first_; level < levels_; ++level) {
      if (best && best->plan.arena_bytes <= all_.budget_at(level - 1)) break;
      add(level);
    }
    return *best;
  }

 private:
  static constexpr int kLow = -1;  // stands for all levels below first_

  int64_t limit_of(int level) const {
    const int next = level == kLow ? first_ : level + 1;
    return next < levels_ ? all_.budget_at(next) : std::numeric_limits<int64_t>::max();
  }

  // False if neither this level nor a lower one can have a faster plan.
  bool add_fastest(int level, int64_t budget, std::optional<Fit>& best) {
    const int64_t limit = limit_of(level);
    if (best && s_.bound_seconds(limit) >= best->plan.predicted_seconds) return false;
    const int64_t within = std::min(budget, limit);
    among(level, [&] { keep_faster(best, s_.fastest_within(within, within)); });
    return true;
  }

  template <class Ask>
  void among(int level, Ask ask) {
    auto known = met_.find(level);
    if (known == met_.end()) {
      known = met_.emplace(level, before_).first;
      s_.exchange(known->second);
      if (level == kLow)
        all_.run(limit_of(kLow));
      else
        all_.aim_once(level);
      s_.exchange(known->second);
    }
    s_.exchange(known->second);
    ask();
    s_.exchange(known->second);
  }

  Search& s_;
  AllBudgets all_;
  const int levels_;
  int first_;   // of the levels that are searched one by one
  Met before_;  // the plans of structure
  std::map<int, Met> met_;
};

Levels::Levels(Search& search) : found_(std::make_unique<Found>(search)) {}
Levels::~Levels() = default;
std::optional<Fit> Levels::fastest_within(int64_t budget) { return found_->fastest_within(budget); }
Fit Levels::lowest() { return found_->lowest(); }

}  // namespace cairn::plan
