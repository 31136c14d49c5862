#include "runtime/engine/compile/update/host_forms.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "runtime/engine/compile/update/host_seconds.h"
#include "runtime/engine/compile/update/host_updates.h"

namespace cairn::engine {
namespace {

// Of a step, that host and device wait for each other at most; of shares, that differ.
constexpr double kBalanced = 0.01;
constexpr int kMostShares = 4;  // planned of a form
constexpr int kMostBounds = 3;  // of a form, to find that
// The host takes so much more than its bound says than the device does than its own, as a rule.
constexpr double kHostAbove = 0.02;
constexpr double kFromEdge = 0.1;  // of what a share is between, that the next one keeps off
// What is slower than the best step by so much has no other shares tried, and a form whose bound is above the best one's is not searched.
constexpr double kFar = 0.1;
constexpr double kLittle = 0.25;  // of the parameters that the host updates with the disk

// A share for which host and device do not wait for each other.
class HostShare {
 public:
  HostShare(double first, int most) : share_(first), most_(most) {}
  double now() const { return share_; }
  // wait: what the device waits for the host at the share now, negative where the host could do more; per_share: about how much
  // more that is for all of the parameters. False: it is balanced, or enough was tried.
  bool next(double wait, double per_share, double step_seconds);
  // Without a plan: so little is not worth one, or takes too much memory.
  bool more();

 private:
  bool go_to(double next);

  double share_, last_share_ = 0, last_wait_ = 0;
  double low_ = 0, high_ = 1;  // the share is between
  int tried_ = 0;
  const int most_;
};

bool HostShare::next(double wait, double per_share, double step_seconds) {
  if (++tried_ == most_ || std::abs(wait) < kBalanced * step_seconds || (share_ == 1 && wait < 0))
    return false;
  if (last_share_ > 0)
    per_share = std::clamp((wait - last_wait_) / (share_ - last_share_), per_share / 2, per_share * 2);
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

// What the device waits for the host, as next() takes it. Where updates are fused, the last one always ends a little behind its
// gradient: so little is no wait.
double wait_of(const CompiledPlan& plan, double step_seconds) {
  const double wait = host_wait_seconds(plan, plan.update_seconds - plan.host_wait_seconds);
  return wait < kBalanced * step_seconds ? std::min(wait, -host_rest_seconds(plan)) : wait;
}

// A form lowered, with the share that it is to begin with.
struct Start {
  std::shared_ptr<CompiledPlan> plan;
  double share = 1;
  std::optional<HostBound> bound;
};

// Where the bounds of host and device meet, as far as they are known. Parameters are few and large: the best of what was looked at
// may not be the last.
Start balanced(const HostAttempts& attempts, HostForm form) {
  const auto lower = [&] {
    Start at{attempts.make(form), form.share, {}};
    if (at.plan != nullptr) at.bound = attempts.bound(*at.plan);
    if (at.bound) attempts.count(*at.bound);
    return at;
  };
  const auto host = [](const Start& at) { return at.bound->host * (1 + kHostAbove); };
  const auto expected = [&](const Start& at) { return std::max(at.bound->device, host(at)); };
  Start best = lower();
  HostShare share(form.share, kMostBounds);
  for (Start now = best; now.bound; now = lower()) {
    if (expected(now) < expected(best)) best = now;
    const double per_share = wait_saved_on_device(*now.plan) / share.now();
    if (!share.next(host(now) - now.bound->device, per_share, now.bound->seconds())) break;
    form.share = share.now();
  }
  return best;
}

}  // namespace

void try_host_forms(const HostAttempts& attempts) {
  const std::shared_ptr<CompiledPlan>& best = attempts.best;
  double least = std::numeric_limits<double>::infinity();  // bound of the best form
  std::shared_ptr<CompiledPlan> winner;                    // as it was before it was searched
  HostForm won;                                            // its form
  for (const bool disk : {true, false}) {
    double best_share = 1;
    for (const bool packed : {false, true}) {
      Start start = balanced(attempts, {best_share, packed, disk});
      if (start.bound && start.bound->seconds() > (1 + kFar) * least) continue;
      HostShare share(start.share, kMostShares);
      std::shared_ptr<CompiledPlan> plan = std::move(start.plan);
      for (bool goes_on = true; goes_on;) {
        const bool little = !disk && won.disk && plan != nullptr &&
                            host_updated_bytes(*plan) < kLittle * host_updated_bytes(*best);
        if (little) break;
        const auto before = plan != nullptr ? std::make_shared<CompiledPlan>(*plan) : nullptr;
        if (plan != nullptr && !attempts.attempt(plan, true)) plan = nullptr;
        if (plan != nullptr && best == plan) {
          winner = before;
          best_share = share.now();
          won = {best_share, packed, disk};
          if (start.bound) least = start.bound->seconds();
        }
        if (disk && plan != nullptr && attempts.seconds(*plan) > (1 + kFar) * attempts.seconds(*best)) break;
        goes_on = plan == nullptr
                      ? share.more()
                      : share.next(wait_of(*plan, attempts.seconds(*plan)),
                                   wait_saved_on_device(*plan) / share.now(), attempts.seconds(*plan));
        if (goes_on) plan = attempts.make({share.now(), packed, disk});
      }
    }
  }
  const double staying = attempts.staying_share;
  if (winner != nullptr && staying > 0 && std::abs(staying - won.share) > kBalanced) {
    const std::shared_ptr<CompiledPlan> plan = attempts.make({staying, won.packed, won.disk});
    const auto before = plan != nullptr ? std::make_shared<CompiledPlan>(*plan) : nullptr;
    if (plan != nullptr && attempts.attempt(plan, true) && best == plan) winner = before;
  }
  if (winner != nullptr) attempts.attempt(winner, false);
}

}  // namespace cairn::engine
