// A session handle, and the stepper on top of one.
#pragma once
#include <memory>

#include "cairn/cairn.h"
#include "capi/src/handle.h"
#include "runtime/graph/vocabulary.h"
#include "runtime/step/stepper.h"

struct cairn_session : cairn::capi::Handle<cairn_session> {
  std::shared_ptr<cairn::engine::Session> session;
  cairn::graph::Vocabularies vocabularies;
  uint64_t runs = 0;  // of cairn_session_run: the step in the random key
};

struct cairn_stepper : cairn::capi::Handle<cairn_stepper> {
  std::unique_ptr<cairn::step::Stepper> stepper;
};
