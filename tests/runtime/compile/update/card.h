// Plans for the model of a card that is not there, whose budget is tight.
#pragma once
#include "tests/runtime/compile/update_check.h"

namespace cairn::engine {

// How the processors around a card read and write the disk, and the card itself does; no latency, so that sums are short.
struct CardDisk {
  double link = 0;                   // bytes per second; 0: a hundredth of the host link's
  double host_in = 0, host_out = 0;  // 0: as the link
};

// A card whose link is slow, beside processors with a memory of this rate.
inline std::shared_ptr<const costs::Table> card(double link, double host_memory,
                                                int64_t host_bytes = int64_t{1} << 40, CardDisk disk = {}) {
  costs::DeviceModel model;
  model.name = "Card";
  model.memory_bytes = 1 << 30;
  model.f32_flops_per_second = model.bf16_flops_per_second = model.f16_flops_per_second = 1e13;
  model.memory_bytes_per_second = 1e12;
  model.host_memory_bytes_per_second = host_memory;
  const double own = disk.link > 0 ? disk.link : link / 100;
  model.links = {{"host", 1e-6, link, link, 0.7, host_bytes},
                 {"disk", disk.link > 0 ? 0 : 1e-6, own, own, 0.7, int64_t{1} << 40}};
  if (disk.host_in > 0) {
    model.host_disk = model.links[1];
    model.host_disk->in_bytes_per_second = disk.host_in;
    model.host_disk->out_bytes_per_second = disk.host_out;
  }
  costs::Table table;
  table.model = model;
  return std::make_shared<const costs::Table>(table);
}

inline PlanOptions tight_options(const std::shared_ptr<const costs::Table>& costs,
                                 ForcedChoices::When where) {
  PlanOptions o;
  o.forced.host_updates = where;
  o.forced.defer_updates = ForcedChoices::When::kNever;
  o.tiers = {Tier::kHost};
  o.micro_steps = 1;
  o.costs = costs;
  o.budget_bytes = 700 << 10;
  return o;
}
inline std::shared_ptr<const CompiledPlan> compiled(const PlanOptions& options) {
  const auto device = device::open("cpu", {.threads = 1});
  return compile(layers(), *device, options);
}
inline std::shared_ptr<const CompiledPlan> tight(const std::shared_ptr<const costs::Table>& costs,
                                                 ForcedChoices::When where) {
  return compiled(tight_options(costs, where));
}

inline double seconds(const CompiledPlan& plan) { return plan.plan.predicted_seconds + plan.update_seconds; }

}  // namespace cairn::engine
