// Which points of a long campaign (failing calls, kills, mutated files) a run takes: all of them under
// CAIRN_TEST=long
// (`./dev test long`), a fixed share of them otherwise.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace cairn::support {

inline bool long_campaign() {
  const char* const kind = std::getenv("CAIRN_TEST");
  return kind != nullptr && std::string_view(kind) == "long";
}

// Whether to take point number `point`: one in `one_in` of them, spread evenly but by no simple period.
inline bool taken(int64_t point, int64_t one_in) {
  if (long_campaign() || one_in <= 1) return true;
  const uint64_t mixed = (static_cast<uint64_t>(point) + 1) * 0x9E3779B97F4A7C15ull;
  return (mixed >> 32) % static_cast<uint64_t>(one_in) == 0;
}

}  // namespace cairn::support
