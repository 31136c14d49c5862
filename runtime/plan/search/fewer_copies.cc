#include "runtime/plan/search/fewer_copies.h"

#include <algorithm>

namespace cairn::plan {
namespace {

constexpr int64_t kFewerCopiesWork = 2'000'000;  // most runs of ops that are priced

class Keeper {
 public:
  Keeper(Search& s, const Fit& fit, int64_t budget)
      : s_(s), budget_(budget), seconds_(fit.from.cost.seconds), now_(fit.from) {
    for (size_t g = 0; g < now_.retention_points.size(); ++g)
      if (s.rules.free[g] && now_.retention_points[g] < 0)
        sent_.push_back({static_cast<int32_t>(g), now_.retention_points[g]});
    // Large values first; of equal ones the last made first, as backward needs them first.
    std::stable_sort(sent_.begin(), sent_.end(), [&](const Sent& a, const Sent& b) {
      return bytes(a) != bytes(b) ? bytes(a) > bytes(b) : a.interval > b.interval;
    });
  }

  // Tries many values at once first, then fewer of those that could not be kept together.
  void run() {
    const int64_t until = s_.evaluate.work() + kFewerCopiesWork;
    for (size_t chunk = sent_.size(); chunk > 0; chunk /= 2)
      for (size_t first = 0; first < sent_.size();) {
        if (s_.evaluate.work() > until) return;
        const size_t last = std::min(first + chunk, sent_.size());
        if (!keep(first, last)) {
          first = last;
          continue;
        }
        kept_.insert(kept_.end(), sent_.begin() + static_cast<int64_t>(first),
                     sent_.begin() + static_cast<int64_t>(last));
        sent_.erase(sent_.begin() + static_cast<int64_t>(first), sent_.begin() + static_cast<int64_t>(last));
      }
  }

  bool any() const { return !kept_.empty(); }
  bool good() const { return good(now_.cost); }
  const Candidate& now() const { return now_; }

  // Offloads again the last half of the values that were kept.
  void give_half_up() {
    for (size_t left = kept_.size() / 2; kept_.size() > left; kept_.pop_back())
      now_.retention_points[kept_.back().interval] = kept_.back().retention_point;
    now_.cost = s_.evaluate(now_.retention_points, now_.pace, s_.sequence);
  }

 private:
  struct Sent {
    int32_t interval, retention_point;
  };

  int64_t bytes(const Sent& sent) const { return s_.p.values[s_.intervals.all[sent.interval].value].bytes; }

  bool good(const Cost& cost) const {
    return cost.valid && cost.peak_bytes <= budget_ && cost.seconds == seconds_;
  }

  bool keep(size_t first, size_t last) {
    for (size_t k = first; k < last; ++k)
      now_.retention_points[sent_[k].interval] = s_.rules.base[sent_[k].interval];
    const RetentionPricer::Price price = s_.evaluate.price(now_.retention_points, seconds_);
    if (price.valid && price.peak_bytes <= budget_ && price.seconds <= seconds_) {
      const Cost cost = s_.evaluate.after_price(now_.retention_points, now_.pace, s_.sequence);
      if (good(cost)) {
        now_.cost = cost;
        return true;
      }
    }
    for (size_t k = first; k < last; ++k) now_.retention_points[sent_[k].interval] = sent_[k].retention_point;
    return false;
  }

  Search& s_;
  const int64_t budget_;
  const double seconds_;
  Candidate now_;
  std::vector<Sent> sent_, kept_;
};

}  // namespace

Fit with_fewer_copies(Search& s, Fit fit, int64_t budget) {
  Keeper keeper(s, fit, budget);
  keeper.run();
  for (; keeper.any(); keeper.give_half_up()) {
    if (!keeper.good()) continue;
    Plan plan = s.lay_out(keeper.now(), budget);
    if (plan.arena_bytes <= budget) return {std::move(plan), keeper.now()};
  }
  return fit;
}

}  // namespace cairn::plan
