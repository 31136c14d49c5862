// A profile of a machine that no test runs on, and a device model.
#pragma once
#include <string>

#include "runtime/costs/table.h"

namespace cairn::costs {

inline Profile sample_profile() {
  Profile p;
  p.machine = {.processor = "Abacus \"9000\"",
               .isa = "beads",
               .device = "cpu",
               .threads = 3,
               .memory_bytes = 1 << 20,
               .cairn = "1.0.0"};
  p.launch_seconds = 1e-6;
  p.ops["gelu(f32[8]) -> (f32[8])"] = {.op = "gelu",
                                       .dtype = "f32",
                                       .median_seconds = 3e-3,
                                       .spread_seconds = 1e-4,
                                       .modelled_seconds = 1e-3,
                                       .count = 12};
  p.ops["linear(f32[8, 8]) -> (f32[8, 8])"] = {.op = "linear",
                                               .dtype = "f32",
                                               .median_seconds = 0.1,
                                               .spread_seconds = 0,
                                               .modelled_seconds = 0.2,
                                               .count = 1};
  p.set_link({{"host", 2e-5, 8e9, 4e9, 0.5, 0}, 0});
  return p;
}

inline const std::string kModel = R"({"format": "cairn.device-model/1", "name": "Engine No. 2",
  "sources": ["a drawing of 1849"], "memory_bytes": 1000000, "f32_flops_per_second": 1e9,
  "bf16_flops_per_second": 4e9, "f16_flops_per_second": 2e9, "memory_bytes_per_second": 1e8,
  "launch_seconds": 1e-3, "separate_memory": true, "note": {"any": [1, null]},
  "links": [{"tier": "host", "latency_seconds": 1e-3, "out_bytes_per_second": 1e6, "in_bytes_per_second": 2e6,
             "both_ways_factor": 1}]})";

}  // namespace cairn::costs
