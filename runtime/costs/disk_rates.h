// The rates of the disk that a directory is on: kept of earlier, or measured now and kept.
#pragma once
#include <optional>
#include <string>

#include "runtime/costs/rate_source.h"
#include "runtime/plan/problem.h"

namespace cairn::costs {

struct DiskRequest {
  std::string directory;  // in which the disk tier's file lies
  std::string how{
      kRatesCache};          // as RateRequest's; with a file of the processor's rates: kept of earlier, too
  std::string kept_in = {};  // as RateRequest::directory
};

// A link without capacity. Measured once per file system, as long as the file that it is kept in stays: so processes
// plan alike, whatever else uses the disk while they do, and a run's new directory is not measured anew. A process asks
// once. nullopt: rates are the model's, or no file can be made or moved there (a plan that goes there says why). Any thread.
std::optional<plan::Link> find_disk_link(const DiskRequest& request);

}  // namespace cairn::costs
