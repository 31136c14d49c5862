// How much work a search may do.
#pragma once
#include <cstdint>

namespace cairn::plan {

enum class Effort : uint8_t {
  kRough,  // what structure gives: no local search, and no plans close to the smallest
  kQuick,  // local search, too, where that comes nowhere near the bound
  kWhole,
};

}  // namespace cairn::plan
