// The bytes that the norm and the update move over the links, and the seconds that this takes. What micro-batches
// move does not count: neither what they fetch, nor the states of fused updates.
#pragma once
#include <map>

#include "runtime/compile/stages.h"
#include "runtime/costs/model.h"

namespace cairn::engine {

// Bytes of a value that streams.
struct Crossing {
  int32_t link = -1;  // index into Problem::links
  int64_t in = 0, out = 0;
  int64_t before = 0;  // to the device as well, before the update: for the norm
};
// By joint value; slices count with the value that they make up.
std::map<int32_t, Crossing> update_crossings(const Lowered& plan);

// By how much copies make the norm and the update of a step longer.
double streaming_seconds(const Lowered& plan, const costs::Model& costs);

// Whether summing the squares of all gradients in each micro-batch is faster than bringing the gradients back for
// the norm.
bool squares_pay(const Lowered& plan, const costs::Model& costs, int64_t micro_steps);

// Whether updates may become a part of the next micro-batch's forward. Not where another plan of the set would wait
// for them, where they round at random by the key of their own step, or where states are used in place, so that
// there is no copy to hide.
bool may_defer(const Lowered& plan, const PlanOptions& options);

// The problem with these seconds shared out among its values that may live in a tier, by what their crossings take
// (plan::Value::home_seconds).
Lowered with_seconds_shared_out(Lowered plan, double seconds);

// Whether a micro-batch, with its share of the update, may take fewer seconds than the limit with some of the
// optimizer state and the master weights offloaded and everything else on the device. A bound that is quick to see.
bool offloaded_state_may_pay(const Lowered& plan, const costs::Model& costs, int64_t micro_steps,
                             double limit);

// Seconds of so many bytes to the device and back.
double round_trip_seconds(const plan::Link& link, int64_t bytes);

}  // namespace cairn::engine
