// The seeds of a property that is tried on random cases: all of them in an optimised build, a fixed share in
// one for sanitizers, whose cases take ten times as long, and all again under CAIRN_TEST=long.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "tests/support/campaign.h"

namespace cairn::support {

#ifdef CAIRN_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// What a sanitized build takes: one in kSeedShare of the seeds, and of few of them at least kMinSeeds.
inline constexpr uint32_t kSeedShare = 8, kMinSeeds = 4;

// The seeds to take of 0 to count - 1, spread evenly, with the first, and both odd and even ones.
inline std::vector<uint32_t> seeds(uint32_t count) {
  uint32_t stride = 1;
  if (kSanitized && !long_campaign()) {
    const uint32_t wanted = count / kSeedShare > kMinSeeds ? count / kSeedShare : kMinSeeds;
    if (wanted < count) stride = (count / wanted) | 1;
  }
  std::vector<uint32_t> taken;
  for (uint32_t seed = 0; seed < count; seed += stride) taken.push_back(seed);
  return taken;
}

// From one point of a long loop to the next that a run takes: 1 in an optimised build and under CAIRN_TEST=long,
// `share` in one for sanitizers. An odd share of a loop over bits meets each bit of a byte.
inline int stride(int share) { return kSanitized && !long_campaign() ? share : 1; }

// The cases of a list that a run takes: each stride(share)-th, from the first on.
template <class T>
std::vector<T> cases(std::initializer_list<T> list, int share) {
  std::vector<T> taken;
  for (size_t i = 0; i < list.size(); i += static_cast<size_t>(stride(share)))
    taken.push_back(list.begin()[i]);
  return taken;
}

}  // namespace cairn::support
