// The forms of updates on the host that are tried: how much of the parameters, with packed weights or without, with what only a
// disk has room for or without.
#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include "runtime/compile/program.h"

namespace cairn::engine {

struct HostForm {
  double share = 1;     // of what the host's processors may update
  bool packed = false;  // with packed weights: they make copies to the device smaller, and take room
  bool disk = false;    // with what the host tier has no room for
};

// No plan's seconds of a micro-batch are fewer, with its share of the update: for what the device does, and for what the host does
// and what waits for it.
struct HostBound {
  double device = 0, host = 0;
  // For both together: what the device's updates take longer may be hidden behind the host's.
  double both = 0;
  double seconds() const { return std::max({device, host, both}); }
};

struct HostAttempts {
  std::function<std::shared_ptr<CompiledPlan>(const HostForm&)>
      make;  // nullptr: there is nothing of the kind
  // Before any search, with the state of the device's updates in the tier or on the device. Nothing: not known, or there is nothing
  // of the kind.
  std::function<std::optional<HostBound>(const CompiledPlan&, bool states_stay)> bound;
  std::function<void(const HostBound&)>
      count;  // in the certificate, as not all that has a bound is searched for
  std::function<bool(const std::shared_ptr<CompiledPlan>&, bool quick)> attempt;  // false: it does not fit
  std::function<double(const CompiledPlan&)> seconds;
  // At which the state of the device's updates is little enough to stay there; 0: none is.
  double staying_share = 0;
  const std::shared_ptr<CompiledPlan>& best;  // of all attempts, and of what was known before
};
// Shares of each form are tried one after the other, as all that a plan does depends on them: as much as lets forward not wait for
// the host, since the device and its links would take longer. The first share is the one at which the bounds of both are the same, with
// the state of the device's updates where the bounds are lower; where nothing comes near them, the other place's share is tried, too.
// Where the first share is slower than what is known, bounds say whether the host or the device takes too long. What no bound lets be
// faster is left out. All are searched quickly, the best of them once more as a whole.
void try_host_forms(const HostAttempts& attempts);

}  // namespace cairn::engine
