// The forms of updates on the host that are tried: which share of the parameters, with packed weights or without,
// with the disk or without.
#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include "runtime/compile/stages.h"

namespace cairn::engine {

struct HostForm {
  double share = 1;     // of the parameters that the host may update
  bool packed = false;  // with packed weights: copies to the device are smaller, and the host has less room
  bool disk = false;    // what the host tier has no room for lives on the disk
};

// Bounds of the seconds of a micro-batch with its share of the update: of the device's work, and of the host's with
// what waits for it.
struct HostBound {
  double device = 0, host = 0;
  // Of both together: the host's updates may hide what makes the device's longer.
  double both = 0;
  double seconds() const { return std::max({device, host, both}); }
};

struct HostAttempts {
  std::function<std::shared_ptr<const Lowered>(const HostForm&)>
      make;  // lowers a form; nullptr: there is none
  // Before any search, with the state of the device's updates offloaded or not. Nothing: no bound is known, or
  // there is no such plan.
  std::function<std::optional<HostBound>(const Lowered&, bool states_stay)> bound;
  std::function<void(const HostBound&)>
      count;  // in the bound of all that was tried: not every form with a bound is searched
  // nullptr: it does not fit.
  std::function<std::shared_ptr<const Planned>(const std::shared_ptr<const Lowered>&, bool quick)> attempt;
  std::function<double(const Planned&)> seconds;
  // The share at which the state of the device's updates is so little that it may be kept there; 0: none.
  double staying_share = 0;
  const std::shared_ptr<const Planned>& best;  // of all attempts and of what was known before
};
// Tries shares of each form, one after the other: as many parameters as the host can update before forward needs
// them. The first share is the one at which the bounds of host and device are equal, with the states of the
// device's updates where the bounds are lower. If no plan comes near them, the share for the other place of those
// states is tried, too. If the first share is slower than what is known, the bounds say whether host or device
// takes too long. What no bound lets be faster is left out. All are searched quickly, the best one then with all
// effort.
void try_host_forms(const HostAttempts& attempts);

}  // namespace cairn::engine
