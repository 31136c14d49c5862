// Chapter 4: what a plan counts, by name. Rows are in plan_counters.def.
#include <string>

#include "capi/src/plan.h"
#include "capi/src/structs.h"
#include "runtime/compile/derived_weights.h"
#include "runtime/compile/tiles/tiles.h"

using namespace cairn::capi;
using cairn::Code;
using cairn::require;
namespace engine = cairn::engine;

namespace {

struct Counter {
  const char *name, *unit, *description;
  double (*value)(const engine::CompiledPlan& c);
};

constexpr Counter kCounters[] = {
#define COUNTER(name, unit, value, description) \
  {#name, unit, description, [](const engine::CompiledPlan& c) { return static_cast<double>(value); }},
#include "capi/src/facts/plan_counters.def"
};

const Counter& counter(std::string_view name) {
  std::string known;
  for (const Counter& row : kCounters) {
    if (row.name == name) return row;
    known += cairn::cat(known.empty() ? "" : ", ", row.name);
  }
  cairn::fail(Code::kNotFound, "plans have no counter '", name, "'; they have: ", known);
}

}  // namespace

cairn_status_t cairn_plan_counter_describe(size_t index, cairn_plan_counter_info_t* out_info,
                                           cairn_error_t* error) {
  return guard(error, [&] {
    const OutStruct out(out_info, "out_info");
    require(index < std::size(kCounters), Code::kNotFound, "there is no counter number ", index,
            "; there are ", std::size(kCounters));
    const Counter& row = kCounters[index];
    cairn_plan_counter_info_t info = CAIRN_PLAN_COUNTER_INFO_INIT;
    info.name = row.name;
    info.unit = row.unit;
    info.description = row.description;
    out.write(info);
  });
}

cairn_status_t cairn_plan_counter(const cairn_plan_t* plan, const char* name, double* out_value,
                                  cairn_error_t* error) {
  return guard(error, [&] {
    not_null(plan, "plan");
    not_null(name, "name");
    not_null(out_value, "out_value");
    *out_value = counter(name).value(*plan->compiled);
  });
}
