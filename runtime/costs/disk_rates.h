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

// The link to the disk, without a capacity. It is measured once per file system and kept in a file, so that all processes
// plan with the same rates, whatever else uses the disk, and a run's new directory is not measured again. A process reads the
// file once. nullopt: rates are the model's, or no file can be created there (a plan that needs the disk says why). Any thread.
std::optional<plan::Link> find_disk_link(const DiskRequest& request);

}  // namespace cairn::costs
