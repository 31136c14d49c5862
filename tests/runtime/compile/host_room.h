// A host tier with little room, for plans that run.
#pragma once
#include "runtime/costs/table.h"

namespace cairn::engine {

// The rates of the device at hand, and so much room on its host tier. Goes with PlanOptions::force_costs.
inline std::shared_ptr<const costs::Table> with_host_room(int64_t bytes) {
  costs::Table table;
  table.profile.emplace().links = {{{"host", 1e-5, 1e10, 1e10, 0.7, bytes}, 0}};
  return std::make_shared<const costs::Table>(table);
}

}  // namespace cairn::engine
