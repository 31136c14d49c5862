// What an update, and the norm before it, move over the links, and what that takes. Nothing that micro-batches move is
// counted: neither their copies of what has a home, nor what is updated within backward.
#pragma once
#include <map>

#include "runtime/compile/program.h"
#include "runtime/costs/model.h"

namespace cairn::engine {

// Bytes of a value that lives in a tier and that copies bring to the device.
struct Crossing {
  int32_t link = -1;  // index into Problem::links
  int64_t in = 0, out = 0;
  int64_t before = 0;  // in, too: for the norm
};
// By joint value; of one that goes in parts, by the whole.
std::map<int32_t, Crossing> update_crossings(const CompiledPlan& plan);

// What norm and update take longer because of copies, once per step.
double streaming_seconds(const CompiledPlan& plan, const costs::Model& costs);

// Whether it is faster to go over all gradients in every one of a step's micro-batches than to bring them back for the norm.
bool squares_pay(const CompiledPlan& plan, const costs::Model& costs, int64_t micro_steps);

// Whether updates may be a part of the next forward part. Not what other plans of a set would wait for, nor what rounds by the
// key of its own step; where state is used where it lives, there is no copy to hide.
bool may_defer(const CompiledPlan& plan, const PlanOptions& options);

// Shares these seconds out among the problem's values that may live in a tier, by what their crossings take.
void share_out(CompiledPlan& plan, double seconds);

// Whether a micro-batch, with its share of the update, may take fewer seconds than the limit where some of the optimizer state and of
// the master weights lives in a tier, and all else on the device. A bound that is quick to see.
bool offloaded_state_may_pay(const CompiledPlan& plan, const costs::Model& costs, int64_t micro_steps,
                             double limit);

// Of bytes that go in and out again.
double round_trip_seconds(const plan::Link& link, int64_t bytes);

}  // namespace cairn::engine
