// Which bucket of a table a distance between a row and a key has (Raffel et al., 2020): what the ops relative_bias and
// relative_bias_grad of every backend go by. Passed by value into kernels.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "runtime/base/attrs.h"

namespace cairn {

struct RelativeBuckets {
  static constexpr int64_t kMost = 512;  // buckets

  int64_t exact = 0;               // distances below have a bucket each
  int64_t shared = 0;              // buckets that more distances share
  int64_t later = 0;               // where the buckets of keys after a row begin; 0: they have bucket 0
  int64_t starts[kMost / 2] = {};  // the least distance of each shared bucket

  constexpr RelativeBuckets() = default;
  RelativeBuckets(const Attrs& attrs, int64_t buckets) {
    const bool both = attrs.integer("bidirectional", 1) != 0;
    const int64_t farthest = attrs.integer("farthest", 128), side = both ? buckets / 2 : buckets;
    later = both ? side : 0;
    exact = side / 2;
    shared = side - exact;
    // In float32, as where the published weights were trained.
    const float span =
        static_cast<float>(std::log(static_cast<double>(farthest) / static_cast<double>(exact)));
    const auto step = [&](int64_t distance) {
      const float ratio = static_cast<float>(distance) / static_cast<float>(exact);
      const float part = static_cast<float>(std::log(static_cast<double>(ratio))) / span;
      return std::min(shared - 1, static_cast<int64_t>(part * static_cast<float>(shared)));
    };
    for (int64_t bucket = 1; bucket < shared; ++bucket) {
      int64_t low = exact, high = farthest;  // the first distance of at least that step
      while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (step(middle) >= bucket)
          high = middle;
        else
          low = middle + 1;
      }
      starts[bucket] = low;
    }
  }

  // distance: of a key, less the row's own position.
  constexpr int64_t operator()(int64_t distance) const {
    const int64_t first = distance > 0 ? later : 0;
    const int64_t far = distance < 0 ? -distance : later > 0 ? distance : 0;
    if (far < exact) return first + far;
    int64_t low = 0, high = shared - 1;  // the last bucket that starts at or before it
    while (low < high) {
      const int64_t middle = (low + high + 1) / 2;
      if (starts[middle] <= far)
        low = middle;
      else
        high = middle - 1;
    }
    return first + exact + low;
  }
};

}  // namespace cairn
