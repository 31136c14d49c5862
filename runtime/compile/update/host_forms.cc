#include "runtime/compile/update/host_forms.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "runtime/compile/update/host_seconds.h"
#include "runtime/compile/update/host_updates.h"

namespace cairn::engine {
namespace {

// Host and device are balanced if they wait for each other for less than this share of a step. Shares that differ by
// less are the same.
constexpr double kBalanced = 0.01;
constexpr int kMostShares = 4;  // shares planned per form
constexpr int kMostBounds = 3;  // shares bounded per form, to find the first one to plan
// As a rule the host exceeds its bound by this share more than the device exceeds its own.
constexpr double kHostAbove = 0.02;
// How far the measured slope of waiting over shares is trusted: at most so many times the expected slope, or its
// inverse.
constexpr double kSteeper = 8;
constexpr double kJustBelow = 1e-3;  // lowers a share just enough for one parameter less
constexpr double kFromEdge = 0.1;    // part of the interval that the next share keeps from its ends
// A form that is slower than the best step by this share has no other shares tried. A form that is so far above its
// bound is tried from another share.
constexpr double kFar = 0.1;
// forms are tried up to this share above the best step: later shares may have lower bounds
constexpr double kNearBest = 0.05;
// fewer parameters than this part of what the host updates with the disk are not tried
constexpr double kLittle = 0.25;
constexpr double kMost = 0.75;  // with room for this part, the host tier alone is tried first

bool is_lower(const std::optional<HostBound>& bound, const std::optional<HostBound>& than) {
  return bound && (!than || bound->seconds() < than->seconds());
}
double host_above(const HostBound& bound) { return bound.host * (1 + kHostAbove); }

// Searches for the share at which host and device do not wait for each other.
class HostShare {
 public:
  HostShare(double first, int most) : share_(first), most_(most) {}
  double now() const { return share_; }
  // wait: how long the device waits for the host at this share; negative: the host could do more. per_share: about
  // how much the wait grows from none to all of the parameters. False: it is balanced, or enough was tried.
  bool next(double wait, double per_share, double step_seconds);
  // The same by bounds, where no plan was found.
  bool next(const HostBound& bound, double per_share) {
    return next(host_above(bound) - bound.device, per_share, bound.seconds());
  }
  // Without a plan or a bound: tries a larger share.
  bool more();
  bool rises() const { return share_ > last_share_; }  // from the previous share to this one
  void move(double share) { share_ = share; }

 private:
  bool go_to(double next);

  double share_, last_share_ = 0, last_wait_ = 0;
  double low_ = 0, high_ = 1;  // the interval of the share
  int tried_ = 0;
  const int most_;
};

bool HostShare::next(double wait, double per_share, double step_seconds) {
  if (++tried_ == most_ || std::abs(wait) < kBalanced * step_seconds || (share_ == 1 && wait < 0))
    return false;
  if (last_share_ > 0)
    per_share =
        std::clamp((wait - last_wait_) / (share_ - last_share_), per_share / kSteeper, per_share * kSteeper);
  last_share_ = share_;
  last_wait_ = wait;
  (wait > 0 ? high_ : low_) = share_;
  return go_to(share_ - wait / per_share);
}

bool HostShare::more() {
  if (++tried_ == most_ || share_ == 1) return false;
  low_ = share_;
  return go_to((low_ + high_) / 2);
}

bool HostShare::go_to(double next) {
  const double edge = kFromEdge * (high_ - low_);
  next = std::clamp(next, low_ + edge, high_ - edge);
  return std::abs(std::exchange(share_, next) - next) >= kBalanced;
}

// The wait for next(). Where updates are fused, the last update always ends a little after its gradient: so little is
// no wait.
double wait_of(const Planned& plan, double step_seconds) {
  const double wait = host_wait_seconds(plan, plan.update_seconds - plan.host_wait_seconds);
  return wait < kBalanced * step_seconds ? std::min(wait, -host_rest_seconds(plan)) : wait;
}

// A lowered form, with the share to begin with.
struct Start {
  HostForm form;
  std::shared_ptr<const Lowered> plan;
  std::optional<HostBound> bound;
};

class HostForms {
 public:
  explicit HostForms(const HostAttempts& attempts) : attempts_(attempts), best_(attempts.best) {}

  void run() {
    const bool first = disk_first();
    for (const bool disk : {first, !first}) {
      double share = 1;
      for (const bool packed : {false, true}) {
        if (try_starts({share, packed, disk})) share = winner_.form.share;
      }
    }
    const double staying = attempts_.staying_share;
    if (winner_.plan != nullptr && staying > 0 && std::abs(staying - winner_.form.share) > kBalanced) {
      HostForm form = winner_.form;
      form.share = staying;
      attempt({form, attempts_.make(form), {}});
    }
    if (winner_.plan != nullptr) attempts_.attempt(winner_.plan, false);
  }

 private:
  // If the host tier alone has room for most of what the host may update, the disk seldom makes a step faster.
  bool disk_first() {
    const auto bytes = [&](bool disk) {
      all_[disk] = attempts_.make({1, false, disk});
      return all_[disk] != nullptr ? static_cast<double>(host_updated_bytes(*all_[disk])) : 0.0;
    };
    return bytes(false) < kMost * bytes(true);
  }

  // Begins with the share whose bound is the lowest, with the states of the device's updates offloaded or not. If the
  // plan is far above that bound, which then says little, the other one is tried as well. True: a new best plan was
  // found.
  bool try_starts(const HostForm& form) {
    const bool known = form.share == 1 && !form.packed;
    const std::shared_ptr<const Lowered> lowered = known ? all_[form.disk] : attempts_.make(form);
    Start first = balanced(form, lowered, false), second = balanced(form, lowered, true);
    if (is_lower(second.bound, first.bound)) std::swap(first, second);
    const bool won = try_shares(first);
    if (!second.bound || std::abs(second.form.share - first.form.share) < kBalanced) return won;
    if (best_ != nullptr && attempts_.seconds(*best_) < (1 + kFar) * first.bound->seconds()) return won;
    return try_shares(second) || won;
  }

  // Parameters are few and large, so several shares may be the same form, which is searched once.
  bool try_shares(const Start& start) {
    if (start.bound && best_ != nullptr &&
        start.bound->seconds() >= (1 + kNearBest) * attempts_.seconds(*best_))
      return false;
    Start now = start;
    HostShare share(now.form.share, kMostShares);
    bool won = false;
    std::set<int64_t> searched;  // forms that were searched, by the bytes that the host updates
    for (bool goes_on = true, fitted = false; goes_on;) {
      if (is_little(now)) break;
      const std::shared_ptr<const Planned> plan = attempt(now);
      if (now.plan != nullptr) searched.insert(host_updated_bytes(*now.plan));
      won = won || (plan != nullptr && best_ == plan);
      fitted = fitted || plan != nullptr;
      if (plan != nullptr) {
        const double seconds = attempts_.seconds(*plan);
        if (now.form.disk && seconds > (1 + kFar) * attempts_.seconds(*best_)) break;
        goes_on = share.next(wait_of(*plan, seconds), wait_saved_on_device(*plan) / share.now(), seconds);
      } else if (const auto bound = now.plan != nullptr && !fitted ? least(*now.plan) : std::nullopt) {
        goes_on = share.next(*bound, wait_saved_on_device(*now.plan) / share.now());
      } else {
        goes_on = share.more();
      }
      now.form.share = share.now();
      if (goes_on) now.plan = attempts_.make(now.form);
      if (goes_on && is_one_of(now, searched)) goes_on = step_over(now, share, searched);
    }
    return won;
  }

  // Goes on to all that the host may update, or to one parameter less. False: that was searched, too.
  bool step_over(Start& now, HostShare& share, const std::set<int64_t>& searched) const {
    const std::shared_ptr<const Lowered>& all = all_[now.form.disk];
    if (all == nullptr) return false;
    const double part =
        static_cast<double>(host_updated_bytes(*now.plan)) / static_cast<double>(host_updated_bytes(*all));
    share.move(share.rises() ? 1 : (1 - kJustBelow) * part);
    now.form.share = share.now();
    now.plan = attempts_.make(now.form);
    return !is_one_of(now, searched);
  }
  static bool is_one_of(const Start& at, const std::set<int64_t>& searched) {
    return at.plan != nullptr && searched.contains(host_updated_bytes(*at.plan));
  }

  // Without the disk, although the best form uses it, and with few parameters.
  bool is_little(const Start& at) const {
    return !at.form.disk && winner_.form.disk && at.plan != nullptr &&
           host_updated_bytes(*at.plan) < kLittle * host_updated_bytes(*best_);
  }

  // The plan that was found; nullptr: none fits, or the form does not exist.
  std::shared_ptr<const Planned> attempt(const Start& at) {
    if (at.plan == nullptr) return nullptr;
    const std::shared_ptr<const Planned> plan = attempts_.attempt(at.plan, true);
    if (plan != nullptr && best_ == plan) winner_ = at;
    return plan;
  }

  std::optional<HostBound> least(const Lowered& plan) const {
    const std::optional<HostBound> leave = attempts_.bound(plan, false), stay = attempts_.bound(plan, true);
    return is_lower(stay, leave) ? stay : leave;
  }

  // The start at which the bounds of host and device meet. Parameters are few and large: the best of the shares that
  // were tried need not be the last.
  Start balanced(HostForm form, std::shared_ptr<const Lowered> lowered, bool states_stay) const {
    const auto bounded = [&](std::shared_ptr<const Lowered> plan) {
      Start at{form, std::move(plan), {}};
      if (at.plan != nullptr) at.bound = attempts_.bound(*at.plan, states_stay);
      if (at.bound) attempts_.count(*at.bound);
      return at;
    };
    const auto expected = [](const Start& at) {
      return std::max(at.bound->seconds(), host_above(*at.bound));
    };
    Start best = bounded(std::move(lowered));
    HostShare share(form.share, kMostBounds);
    for (Start now = best; now.bound; now = bounded(attempts_.make(form))) {
      if (expected(now) < expected(best)) best = now;
      if (!share.next(*now.bound, wait_saved_on_device(*now.plan) / share.now())) break;
      form.share = share.now();
    }
    return best;
  }

  const HostAttempts& attempts_;
  const std::shared_ptr<const Planned>& best_;
  // By HostForm::disk, the form without packed weights in which the host updates all that it may.
  std::array<std::shared_ptr<const Lowered>, 2> all_;
  Start winner_;  // the start that led to the best plan
};

}  // namespace

void try_host_forms(const HostAttempts& attempts) { HostForms(attempts).run(); }

}  // namespace cairn::engine
