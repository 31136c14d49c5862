// What the machine's processors stream through their memory: what updates on the host wait for.
#pragma once
#include <string>

#include "runtime/costs/rate_source.h"

namespace cairn::costs {

struct HostMemoryRequest {
  int threads = 1;
  std::string how{kRatesCache};  // as DiskRequest::how
  std::string kept_in = {};      // as RateRequest::directory
  // Of the time that measuring takes, what its threads together may have waited for a processor: where others' work keeps
  // them waiting longer, it is measured again, up to five times, and is good for this process alone.
  double most_waiting = 0.2;
};

// Bytes per second of `threads` threads that read two long arrays and write over one of them; 0: rates are the model's, or
// there is no memory to measure with. Measured in a fifth of a second, once per processor, and kept; a process asks
// once. Any thread.
double find_host_memory_rate(const HostMemoryRequest& request);

}  // namespace cairn::costs
