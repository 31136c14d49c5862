// Copies between the arena and a tier: alone, both ways at once, and beside a computation that is to cover
// them.
#pragma once
#include <memory>
#include <string>

#include "runtime/device/device.h"

namespace cairn::bench {

// A tier as a benchmark sees it: "host", "host 2 GB/s", "disk".
struct TierUnderTest {
  std::string name;
  Tier tier;
  std::shared_ptr<device::Device> device;
};

// Registers link/<tier>/{out,in,both}/<bytes> and hidden/<tier>/<dtype>.
void register_links(const TierUnderTest& tier, int threads);

}  // namespace cairn::bench
