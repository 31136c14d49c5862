// Rates of the processor that a program runs on, measured once: seconds of ops in a few small models, by class of op.
// A plain value with a JSON form, "cairn.rates/1" (runtime/costs/README.md).
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/costs/machine.h"
#include "runtime/plan/problem.h"

namespace cairn::costs {

// One class of ops (an op with the dtype of its arithmetic) in one model: means over its ops there, without the
// launch.
struct ClassRate {
  std::string op;
  std::string dtype;
  double modelled_seconds = 0;  // what the analytic model says
  double seconds = 0;
  int64_t count = 0;  // samples

  bool operator==(const ClassRate&) const = default;
};

struct Rates {
  Machine machine;
  double launch_seconds = 0;       // from the end of one op to the begin of the next
  std::vector<ClassRate> classes;  // of one class several sizes
  std::optional<plan::Link> host;  // capacity_bytes 0: not part of it
  double measuring_seconds = 0;    // what measuring took
};

std::string to_json(const Rates& rates);
// kCorruptFile / kInvalidArgument naming the place.
Rates rates_from_json(std::string_view text);

}  // namespace cairn::costs
