// What the bound's program says about one program point of a small problem, by trying every set of ops to run
// again.
#pragma once
#include <cstdint>
#include <functional>

#include "runtime/plan/index.h"

namespace cairn::plan {

// Calls visit(set of ops, seconds they take, bytes that then have to stay on the device or in a tier beside
// those of op `at`), for every set of ops before `at` that may run again. Up to 20 ops.
inline void for_each_subset(const Problem& p, const Index& index, int32_t at,
                            const std::function<void(uint32_t, double, double)>& visit) {
  for (uint32_t set = 0; set < 1U << at; ++set) {
    double seconds = 0, bytes = 0;
    bool allowed = true;
    for (int32_t i = 0; i < at; ++i)
      if (set >> i & 1) {
        seconds += p.ops[i].seconds;
        allowed &= p.ops[i].recomputable;
      }
    if (!allowed) continue;
    for (int32_t v = 0; v < static_cast<int32_t>(p.values.size()); ++v) {
      const int32_t maker = index.maker[v];
      if (p.values[v].persistent || maker < 0 || maker >= at || (set >> maker & 1)) continue;
      bool busy = false, wanted = false;
      for (int32_t u : index.inputs[at]) busy |= u == v;
      for (int32_t i : index.readers[v]) wanted |= i > at || (i < at && (set >> i & 1));
      if (wanted && !busy) bytes += static_cast<double>(p.values[v].bytes);
    }
    visit(set, seconds, bytes);
  }
}

}  // namespace cairn::plan
