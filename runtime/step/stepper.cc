#include "runtime/step/stepper.h"

#include <cmath>

#include "runtime/base/os/clock.h"
#include "runtime/step/hypers.h"
#include "runtime/step/settings.h"

namespace cairn::step {
namespace {

void check_options(const Options& o, const graph::JointGraph& joint) {
  require(o.micro_steps >= 1, Code::kInvalidArgument, "micro_steps is 0; it must be at least 1");
  check_values(o.schedule);
  check_setting("clip_norm", o.clip_norm);
  check(o.loss_scale);
  require(!joint.in_parts() || o.micro_steps == joint.effective_steps, Code::kInvalidArgument,
          "the graph has values of the effective batch of ", joint.effective_steps,
          " micro-batches: micro_steps is ", o.micro_steps, "; it must be the same");
  if (joint.grad_scale < 0) return;
  require(o.micro_steps == 1, Code::kInvalidArgument,
          "the plan fuses the update into backward, so that nothing can be accumulated: micro_steps is ",
          o.micro_steps, "; it must be 1");
  require(o.clip_norm == 0, Code::kInvalidArgument,
          "the plan fuses the update into backward, before the norm of all gradients is known: clip_norm is ",
          o.clip_norm, "; it must be 0");
}

}  // namespace

Stepper::Stepper(std::shared_ptr<engine::Session> session, Options options) : session_(std::move(session)) {
  require(session_ != nullptr, Code::kInvalidArgument, "session is null");
  const graph::JointGraph& joint = *session_->plan().joint;
  require(joint.forward->trains(), Code::kWrongState,
          "the graph has no loss; a stepper needs one that trains");
  require(joint.has_optimizer(), Code::kWrongState,
          "the plan was made without an optimizer; a stepper needs one");
  check_options(options, joint);
  check_schedule(options.schedule);
  state_.groups = groups_with(options);
  state_.options = std::move(options);
  settle_loss_scale();
}

void Stepper::settle_loss_scale() {
  const graph::JointGraph& joint = *session_->plan().joint;
  const Options& o = state_.options;
  if (joint.loss_scale < 0)
    state_.loss_scale.reset();
  else if (!state_.loss_scale)
    state_.loss_scale = {o.loss_scale.initial > 0 ? o.loss_scale.initial
                                                  : default_loss_scale(joint, o.micro_steps)};
}

std::vector<graph::ParameterGroup> Stepper::groups_with(const Options& options) const {
  const graph::JointGraph& joint = *session_->plan().joint;
  std::vector<graph::ParameterGroup> groups = joint.groups;
  for (const graph::HyperSetting& setting : options.hypers) graph::apply(setting, groups);
  check_groups(joint, groups);
  check_momentum(joint, groups, options.schedule);
  return groups;
}

Report Stepper::micro(engine::Session& program) {
  const graph::JointGraph& joint = *program.plan().joint;
  require(program.shares_store(*session_), Code::kInvalidArgument,
          "the session is on another store than the stepper's; plans that are made together share one");
  require(joint.forward->trains(), Code::kWrongState,
          "the program has no loss; a stepper runs those that train");
  require(&program == session_.get() || (!joint.in_parts() && !session_->plan().joint->in_parts()),
          Code::kUnsupported,
          "a graph with values of the effective batch has all micro-batches of a step: they cannot run by "
          "several "
          "programs; make the stepper for this session and run it alone");
  const bool fused = joint.grad_scale >= 0;
  if (fused)
    write_hypers(*session_, state_.groups, schedule_at(state_.options.schedule, state_.step - state_.skipped),
                 state_.updates + 1, 1.0);
  if (state_.loss_scale) program.write(joint.loss_scale, &state_.loss_scale->scale, sizeof(double));
  // Before anything changes, so that the caller can write the right ones and go on.
  if (joint.in_parts() && state_.gathered == state_.options.micro_steps)
    require(digest_of_inputs(program) == gathered_[state_.micro], Code::kInvalidArgument,
            "the inputs of micro-batch ", state_.micro + 1, " of ", state_.options.micro_steps,
            " are not those that it had in the first pass of this step: every micro-batch of a graph with "
            "values of "
            "the effective batch is written twice, in the same order");
  const uint32_t before = state_.micro;
  // From here on gradients change. After an error nothing of the effective batch is left, where the session
  // goes on.
  try {
    const bool gathers = joint.in_parts() && state_.gathered < state_.options.micro_steps;
    return gathers ? gather(program) : accumulate(program);
  } catch (const Error& error) {
    const Code code = error.code();
    const bool goes_on = !session_->poisoned();
    const bool accumulated = state_.micro > before;  // the run itself has told that its gradients are lost
    if (code == Code::kCancelled || ((code == Code::kIo || code == Code::kOutOfMemory) && goes_on)) discard();
    if (code == Code::kOutOfMemory && goes_on && accumulated) throw engine::refused_batch(&error);
    throw;
  } catch (const std::bad_alloc&) {
    discard();
    throw engine::refused_batch();
  }
}

// Runs the program, or a part of it, and adds what it took.
void Stepper::run(engine::Session& program, const engine::RunKey& key, Report& report) const {
  const engine::RunReport run = program.run(key);
  report.stall_seconds += run.stall_seconds;
  for (size_t tier = 0; tier < report.out.size(); ++tier) {
    report.out[tier] += run.out[tier];
    report.in[tier] += run.in[tier];
  }
  report.fell_back = report.fell_back || run.fell_back;
  report.submit_seconds += run.submit_seconds;
}

// Loss and weight of what ran last.
void Stepper::add_loss(const engine::Session& program, Report& report) {
  const graph::JointGraph& ran = *program.plan().joint;  // it may have fallen back
  double loss = 0, weight = 1;
  program.read(ran.loss, &loss, sizeof loss);
  if (ran.weight >= 0) program.read(ran.weight, &weight, sizeof weight);
  state_.loss_sum += loss;
  state_.weight_sum += weight;
  report.loss = weight != 0 ? loss / weight : 0.0;
  report.weight = weight;
}

// Of a step that goes on.
Report Stepper::so_far(Report report, Outcome outcome) const {
  report.outcome = outcome;
  report.step = state_.step;
  report.micro = outcome == Outcome::kGathered ? state_.gathered : state_.micro;
  report.step_weight = state_.weight_sum;
  report.step_loss = state_.weight_sum != 0 ? state_.loss_sum / state_.weight_sum : 0.0;
  report.skipped_steps = state_.skipped;
  report.loss_scale = loss_scale();
  return report;
}

// The first pass over one more micro-batch; after the last one, the loss of the effective batch.
Report Stepper::gather(engine::Session& program) {
  const double start = now();
  Report report;
  engine::RunKey key{state_.options.seed, state_.step, state_.gathered, graph::Part::kGather};
  gathered_.resize(state_.gathered);
  gathered_.push_back(digest_of_inputs(program));
  run(program, key, report);
  state_.gathered += 1;
  if (state_.gathered == state_.options.micro_steps) {
    key.micro = 0;
    key.part = graph::Part::kLoss;
    run(program, key, report);
    add_loss(program, report);
  }
  report.seconds = now() - start;
  return so_far(report, Outcome::kGathered);
}

Report Stepper::accumulate(engine::Session& program) {
  const double start = now();
  const bool in_parts = program.plan().joint->in_parts();
  Report report;
  engine::RunKey key{state_.options.seed, state_.step, state_.micro};
  if (in_parts) key.part = graph::Part::kMicroBatch;
  run(program, key, report);
  if (!in_parts) add_loss(program, report);
  state_.micro += 1;
  report.loss_scale = loss_scale();
  const bool ends = state_.micro >= state_.options.micro_steps;
  report = ends ? finish(report) : so_far(report, Outcome::kAccumulated);
  report.seconds = now() - start;
  return report;
}

Report Stepper::apply() {
  require(!session_->plan().joint->in_parts(), Code::kWrongState, "the loss is of an effective batch of ",
          session_->plan().joint->effective_steps,
          " micro-batches, which has no remainder: run all of them, or discard the step");
  require(state_.micro > 0, Code::kWrongState,
          "nothing is accumulated (state EMPTY); apply needs state ACCUMULATED");
  const double start = now();
  Report report = finish({});
  report.seconds = now() - start;
  return report;
}

// Divide, clip, update: one factor for the fused kernel. A non-finite sum, and weights that add up to 0, skip the
// update and leave everything.
Report Stepper::finish(Report report) {
  const double start = now();
  const Options& o = state_.options;
  const graph::JointGraph& joint = *session_->plan().joint;
  const SchedulePoint point = schedule_at(o.schedule, state_.step - state_.skipped);
  report.rate = point.rate;
  // Of these data nothing counts: there is no mean, and no gradient to judge the loss scale by.
  if (state_.weight_sum == 0 && std::isfinite(state_.loss_sum)) {
    report.outcome = Outcome::kSkippedEmpty;
    return close(report, start);
  }
  report.step_weight = state_.weight_sum;
  report.step_loss = state_.loss_sum / state_.weight_sum;
  const double norm_of_sum = std::sqrt(session_->gradient_squares());
  const double divisor = state_.weight_sum;
  const double norm = norm_of_sum / std::abs(divisor) / loss_scale();
  report.gradient_norm = norm;
  if (joint.grad_scale >= 0 && std::isfinite(state_.loss_sum) && std::isfinite(divisor) &&
      !std::isfinite(norm)) {
    discard();
    fail(Code::kNonFinite,
         "a gradient is not finite, and loss and weight are: parameters whose updates came before "
         "that was known were updated, the others were not; restore a checkpoint");
  }
  if (!std::isfinite(norm) || !std::isfinite(state_.loss_sum) || !std::isfinite(divisor)) {
    report.outcome = Outcome::kSkippedNonFinite;
  } else {
    // As torch.nn.utils.clip_grad_norm_: factor min(1, clip / (norm + 1e-6)).
    const double clip = o.clip_norm > 0 ? std::min(1.0, o.clip_norm / (norm + 1e-6)) : 1.0;
    if (!joint.ops(graph::kUpdate).empty() || !joint.ops(graph::kStatistics).empty() ||
        joint.updates_deferred) {
      write_hypers(*session_, state_.groups, point, state_.updates + 1, clip / divisor / loss_scale());
      const engine::RunReport update = session_->update({.seed = o.seed, .step = state_.step, .micro = 0});
      report.stall_seconds += update.stall_seconds;
      for (size_t tier = 0; tier < report.out.size(); ++tier) {
        report.out[tier] += update.out[tier];
        report.in[tier] += update.in[tier];
      }
    }
    report.outcome = Outcome::kApplied;
    state_.updates += 1;
  }
  return close(report, start);
}

// The effective batch is done: counts it, and leaves nothing of it.
Report Stepper::close(Report report, double start) {
  state_.step += 1;
  if (report.outcome != Outcome::kApplied) state_.skipped += 1;
  report.loss_scale = loss_scale();
  if (state_.loss_scale && report.outcome != Outcome::kSkippedEmpty)
    state_.loss_scale->update(state_.options.loss_scale, report.outcome == Outcome::kApplied);
  discard();
  report.step = state_.step;
  report.micro = 0;
  report.skipped_steps = state_.skipped;
  report.optimizer_seconds = now() - start;
  return report;
}

void Stepper::discard() {
  state_.micro = state_.gathered = 0;
  state_.loss_sum = 0;
  state_.weight_sum = 0;
}

void Stepper::configure(const Options& options) {
  require(state_.micro == 0 && state_.gathered == 0, Code::kWrongState, "state is ACCUMULATED (",
          state_.micro, " micro-batches); options change only in state EMPTY, between steps");
  check_options(options, *session_->plan().joint);
  check_schedule(options.schedule);
  std::vector<graph::ParameterGroup> groups = groups_with(options);
  Options taken = options;  // copied first: if memory is refused, nothing has changed
  taken.seed = state_.options.seed;
  state_.groups = std::move(groups);
  state_.options = std::move(taken);
}

void Stepper::check(const State& state) const {
  const graph::JointGraph& joint = *session_->plan().joint;
  check_options(state.options, joint);
  require(
      state.gathered == 0 && (state.micro == 0 || !joint.in_parts()), Code::kInvalidArgument,
      "the state is in the middle of an effective batch, and the loss of this graph is of the complete one");
  require(state.micro < state.options.micro_steps || state.micro == 0, Code::kInvalidArgument, "state has ",
          state.micro, " micro-batches of ", state.options.micro_steps);
  const bool scaled = state.loss_scale.has_value();
  require(state.micro == 0 || scaled == (joint.loss_scale >= 0), Code::kInvalidArgument,
          "the state is in the middle of an effective batch whose gradients are ", scaled ? "" : "not ",
          "under the loss scale of fp16; it goes on with a plan ", scaled ? "in fp16" : "that is not in fp16",
          " only");
  if (!state.groups.empty()) check_groups(joint, state.groups);
  if (!state.groups.empty()) check_momentum(joint, state.groups, state.options.schedule);
}

void Stepper::restore(const State& state) {
  check(state);
  State taken = state;  // copied first: if memory is refused, nothing has changed
  if (taken.groups.empty()) taken.groups = groups_with(state.options);
  state_ = std::move(taken);
  settle_loss_scale();
}

void Stepper::set(const graph::HyperSetting& setting) {
  require(state_.micro == 0 && state_.gathered == 0, Code::kWrongState, "state is ACCUMULATED (",
          state_.micro, " micro-batches); hyper-parameters change only in state EMPTY, between steps");
  std::vector<graph::ParameterGroup> groups = state_.groups;
  graph::apply(setting, groups);
  check_groups(*session_->plan().joint, groups);
  state_.groups = std::move(groups);
}

}  // namespace cairn::step
