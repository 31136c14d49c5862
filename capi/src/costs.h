// A costs handle: what was read or measured, and samples not yet condensed.
#pragma once
#include <memory>

#include "cairn/cairn.h"
#include "capi/src/handle.h"
#include "runtime/costs/recorder.h"

struct cairn_costs : cairn::capi::Handle<cairn_costs> {
  cairn::costs::Table table;
  cairn::costs::Recorder recorder;

  // With the samples condensed.
  std::shared_ptr<const cairn::costs::Table> whole() const;
};
