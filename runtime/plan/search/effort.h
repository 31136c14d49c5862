// How much work a search may do.
#pragma once
#include <cstdint>

namespace cairn::plan {

enum class Effort : uint8_t {
  kRough,  // the plans of structure: no local search, and no plans close to the smallest
  kQuick,  // also local search, where these plans are far above the bound
  kWhole,
};

}  // namespace cairn::plan
