#include "runtime/engine/compile/update/host_forms.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/engine/compile/update/host_seconds.h"
#include "runtime/engine/compile/update/host_updates.h"

namespace cairn::engine {
namespace {

constexpr double kBalanced =
    0.01;  // of a step, that host and device wait for each other at most; of shares, that differ
constexpr int kMostShares = 4;
constexpr double kFromEdge = 0.1;  // of what a share is between, that the next one keeps off
constexpr double kFar = 0.05;     // of the best step: other shares of what is slower by so much are not tried
constexpr double kLittle = 0.25;  // of the parameters that the host updates with the disk

class HostShare {
 public:
  explicit HostShare(double first) : share_(first) {}
  double now() const { return share_; }
  // Of the plan for the share now, whose step takes so long; nullptr: so little is not worth a plan. False: it is balanced, or
  // enough was tried.
  bool next(const CompiledPlan* plan, double step_seconds);

 private:
  double share_, last_share_ = 0, last_wait_ = 0;
  double low_ = 0, high_ = 1;  // the share is between
  int tried_ = 0;
};

bool HostShare::next(const CompiledPlan* plan, double step_seconds) {
  if (++tried_ == kMostShares || (plan == nullptr && share_ == 1)) return false;
  double next = 0;
  if (plan == nullptr) {
    low_ = share_;
    next = (low_ + high_) / 2;
  } else {
    const double wait = host_wait_seconds(*plan, plan->update_seconds - plan->host_wait_seconds);
    if (std::abs(wait) < kBalanced * step_seconds || (share_ == 1 && wait < 0)) return false;
    double per_share = wait_saved_on_device(*plan) / share_;
    if (last_share_ > 0)
      per_share = std::clamp((wait - last_wait_) / (share_ - last_share_), per_share / 2, per_share * 2);
    last_share_ = share_;
    last_wait_ = wait;
    (wait > 0 ? high_ : low_) = share_;
    next = share_ - wait / per_share;
  }
  const double edge = kFromEdge * (high_ - low_);
  next = std::clamp(next, low_ + edge, high_ - edge);
  return std::abs(std::exchange(share_, next) - next) >= kBalanced;
}

}  // namespace

void try_host_forms(const HostAttempts& attempts) {
  const std::shared_ptr<CompiledPlan>& best = attempts.best;
  bool best_streams = false;
  for (const bool disk : {true, false}) {
    double best_share = 1;
    for (const bool packed : {false, true}) {
      HostShare share(best_share);
      std::shared_ptr<CompiledPlan> plan;
      do {
        plan = attempts.make({share.now(), packed, disk});
        const bool little = !disk && best_streams && plan != nullptr &&
                            host_updated_bytes(*plan) < kLittle * host_updated_bytes(*best);
        if (little) break;
        if (plan != nullptr && !attempts.attempt(plan)) plan = nullptr;
        if (plan != nullptr && best == plan) {
          best_share = share.now();
          best_streams = disk;
        }
        if (disk && plan != nullptr && attempts.seconds(*plan) > (1 + kFar) * attempts.seconds(*best)) break;
      } while (share.next(plan.get(), plan != nullptr ? attempts.seconds(*plan) : 0));
    }
  }
}

}  // namespace cairn::engine
