// Rates of a machine that is not there.
#pragma once
#include "runtime/costs/rates.h"

namespace cairn::costs {

inline Rates sample_rates() {
  Rates rates;
  rates.machine = {.processor = "Abacus \"9000\"",
                   .isa = "beads",
                   .device = "cpu",
                   .threads = 2,
                   .memory_bytes = 1000,
                   .cairn = "9.9.9"};
  rates.launch_seconds = 0.25;
  rates.measuring_seconds = 0.5;
  rates.classes = {{.op = "linear", .dtype = "f32", .modelled_seconds = 1, .seconds = 2, .count = 3},
                   {.op = "linear", .dtype = "f32", .modelled_seconds = 100, .seconds = 100, .count = 3},
                   {.op = "add", .dtype = "f32", .modelled_seconds = 1, .seconds = 0.5, .count = 1},
                   {.op = "optimizer", .dtype = "f32", .modelled_seconds = 1, .seconds = 3, .count = 1}};
  rates.host = plan::Link{"host", 1e-6, 8e9, 8e9, 0.5, 0, 0.5, 0.25};
  return rates;
}

}  // namespace cairn::costs
