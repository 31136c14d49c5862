// A costs handle: what was read or measured, and samples not yet condensed.
#pragma once
#include <memory>

#include "cairn/cairn.h"
#include "capi/src/handle.h"
#include "capi/src/instance.h"
#include "runtime/costs/recorder.h"

struct cairn_costs : cairn::capi::Handle<cairn_costs> {
  cairn::costs::Table table;
  cairn::costs::Recorder recorder;

  // With the samples condensed.
  std::shared_ptr<const cairn::costs::Table> whole() const;
};

namespace cairn::capi {

// What cairn_device_options_t::rates and the environment ask for.
std::string wanted_rates(const char* option);
// For plans that are made without costs; nullptr: the analytic model's own.
std::shared_ptr<const costs::Table> rates_of(const cairn_device& device);

}  // namespace cairn::capi
