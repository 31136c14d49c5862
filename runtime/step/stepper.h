// The step controller: a closed state machine over micro-batches. It owns the denominator: gradients are
// sums, divided once by the total weight of the effective batch.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/exec/session.h"
#include "runtime/step/inputs.h"
#include "runtime/step/loss_scale.h"
#include "runtime/step/schedule.h"

namespace cairn::step {

// What a micro-step did. Values are part of the ABI.
enum class Outcome : uint32_t {
  kAccumulated = 0,
  kApplied = 1,
  kSkippedNonFinite = 2,
  kSkippedEmpty = 3,
  kGathered = 4,  // the first pass over a micro-batch of a graph with values of the effective batch
};

struct Options {
  uint32_t micro_steps = 1;  // K
  uint64_t seed = 0;         // of dropout
  Schedule schedule = {};
  double clip_norm = 1.0;            // 0: no clipping
  LossScaleOptions loss_scale = {};  // of plans in fp16
  // Instead of what the plan was made with: momentum, weight_decay ...
  std::vector<graph::HyperSetting> hypers = {};
};

struct Report {
  Outcome outcome = Outcome::kAccumulated;
  uint64_t step = 0;         // optimizer updates completed after this call
  uint32_t micro = 0;        // micro-batches accumulated after this call (0 once applied or skipped)
  double loss = 0;           // of this micro-batch, sum / weight (0 if weight is 0)
  double step_loss = 0;      // over the effective batch so far
  double weight = 0;         // of this micro-batch
  double step_weight = 0;    // over the effective batch so far
  double gradient_norm = 0;  // after division, before clipping; only with kApplied / kSkippedNonFinite
  double rate = 0;           // used by the update
  double loss_scale = 1;     // of this micro-batch's gradients
  double seconds = 0, stall_seconds = 0, optimizer_seconds = 0;
  uint64_t skipped_steps = 0;
  // Of this micro-batch, as engine::RunReport, and of the update if it applied one; so is stall_seconds.
  std::array<device::Traffic, kTierCount> out{}, in{};
  double submit_seconds = 0;  // of this micro-batch, as engine::RunReport
  bool fell_back = false;
};

// Everything that a resumed run needs besides the session's values.
struct State {
  uint64_t step = 0;
  uint32_t micro = 0;
  uint32_t gathered = 0;  // micro-batches of the first pass; no such step is saved in its midst
  uint64_t updates = 0;   // applied ones: the t of bias corrections
  uint64_t skipped = 0;
  double loss_sum = 0, weight_sum = 0;
  std::optional<LossScale> loss_scale = {};  // of the effective batch; of plans in fp16 alone
  Options options;
  // Hyper-parameters as they are now; empty: as the plan and the options say.
  std::vector<graph::ParameterGroup> groups = {};
};

class Stepper {
 public:
  Stepper(std::shared_ptr<engine::Session> session, Options options);

  // Runs one micro-batch on the inputs written to the session. The K-th applies the update. Of a graph with values of the
  // effective batch every micro-batch comes twice, in the same order with the same inputs: the first K calls gather these values
  // (kGathered), the K-th of them runs the loss; the next K are as ever. kInvalidArgument: other inputs in the second pass.
  // kCancelled: the
  // effective batch is discarded (micro is 0 again), parameters are as before. kIo from a failing disk tier
  // with gradients of earlier micro-batches lost, and kOutOfMemory, where the session goes on: the same. kNonFinite, only where the plan fuses the update
  // into backward: a gradient was not finite, and parameters were partly updated.
  Report micro() { return micro(*session_); }
  // The same by a program of its own: a session on the same store, of a graph with a loss. kInvalidArgument:
  // it is on another store.
  Report micro(engine::Session& program);
  // Ends the effective batch early (the remainder of an epoch): its own denominator. kWrongState with nothing
  // accumulated, or of a graph with values of the effective batch.
  Report apply();
  // Discards what was accumulated; parameters, moments and counters do not change.
  void discard();
  // Options of later steps (the seed does not change): kWrongState in the middle of an effective batch.
  void configure(const Options& options);

  // The hyper-parameters of all groups as they are now; changed between effective batches only (kWrongState).
  const std::vector<graph::ParameterGroup>& groups() const { return state_.groups; }
  void set(const graph::HyperSetting& setting);

  const Options& options() const { return state_.options; }
  engine::Session& session() { return *session_; }
  std::shared_ptr<engine::Session> session_ptr() const { return session_; }
  State state() const { return state_; }
  // kInvalidArgument: restore() would refuse this state; changes nothing.
  void check(const State& state) const;
  void restore(const State& state);  // the session's values must be restored by the caller

 private:
  // Gives the state a loss scale if the plan wants one and it has none; removes it if the plan wants none.
  void settle_loss_scale();
  double loss_scale() const { return state_.loss_scale ? state_.loss_scale->scale : 1.0; }
  Report accumulate(engine::Session& program);
  Report gather(engine::Session& program);
  void run(engine::Session& program, const engine::RunKey& key, Report& report) const;
  void add_loss(const engine::Session& program, Report& report);
  Report so_far(Report report, Outcome outcome) const;
  Report finish(Report report);
  Report close(Report report, double start);
  std::vector<graph::ParameterGroup> groups_with(const Options& options) const;
  std::shared_ptr<engine::Session> session_;
  State state_;
  std::vector<InputDigest> gathered_;  // of the inputs of each micro-batch of the first pass
};

// Fills all parameters from their Init, drawn from (seed, parameter index): same numbers on every backend.
void initialise(engine::Session& session, uint64_t seed);
// XXH3-128 over all parameters in graph order, as 32 hex digits.
std::string parameter_digest(const engine::Session& session);

}  // namespace cairn::step
