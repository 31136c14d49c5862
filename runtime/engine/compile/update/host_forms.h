// The forms of updates on the host that are tried: how much of the parameters, with packed weights or without, with what only a
// disk has room for or without.
#pragma once
#include <functional>
#include <memory>

#include "runtime/engine/compile/program.h"

namespace cairn::engine {

struct HostForm {
  double share = 1;     // of what the host's processors may update
  bool packed = false;  // with packed weights: they make copies to the device smaller, and take room
  bool disk = false;    // with what the host tier has no room for
};

struct HostAttempts {
  std::function<std::shared_ptr<CompiledPlan>(const HostForm&)>
      make;                                                           // nullptr: there is nothing of the kind
  std::function<bool(const std::shared_ptr<CompiledPlan>&)> attempt;  // false: it does not fit
  std::function<double(const CompiledPlan&)> seconds;
  const std::shared_ptr<CompiledPlan>& best;  // of all attempts, and of what was known before
};
// Shares of each form are tried one after the other, as all that a plan does depends on them: as much as lets forward not wait for
// the host, since the device and its links would take longer.
void try_host_forms(const HostAttempts& attempts);

}  // namespace cairn::engine
