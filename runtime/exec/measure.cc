#include "runtime/exec/measure.h"

#include <algorithm>
#include <map>

#include "runtime/compile/cost_query.h"

namespace cairn::engine {
namespace {

const Program& program_of(const CompiledPlan& plan, const Span& span) { return plan.program(span.phase); }

const Instruction& instruction_of(const CompiledPlan& plan, const Span& span) {
  return program_of(plan, span).code[static_cast<size_t>(span.instruction)];
}

const Launch& launch_of(const CompiledPlan& plan, const Span& span) {
  return program_of(plan, span).launches[static_cast<size_t>(instruction_of(plan, span).a)];
}

const graph::JointOp& op_of(const CompiledPlan& plan, const Span& span) {
  const Launch& launch = launch_of(plan, span);
  return plan.joint->ops(launch.of_update ? graph::kUpdate
                                          : span.phase)[static_cast<size_t>(launch.joint_op)];
}

// By what it ran on: an op may have run on some of its rows.
costs::Query query_of_span(const CompiledPlan& plan, const Span& span) {
  const graph::JointOp& op = op_of(plan, span);
  const Launch& launch = launch_of(plan, span);
  if (span.phase != graph::kMicroBatch || launch.of_update) return query_of(*plan.joint, op);
  const auto first = program_of(plan, span).operands.begin() + launch.first_operand,
             outputs = first + launch.inputs;
  return query_of(*plan.joint, op, Operands({first, outputs}, {outputs, outputs + launch.outputs}));
}

const CopyJob& copy_of(const CompiledPlan& plan, const Span& span) {
  return program_of(plan, span).copies[static_cast<size_t>(instruction_of(plan, span).a)];
}

bool is_op(const Span& span) { return span.lane == device::Lane::kCompute; }

const std::string kOptimizerState = "optimizer state";

// Whether compute may have waited for a copy between two ops of the micro-batch.
bool waits_between(const CompiledPlan& plan, const Span& first, const Span& second) {
  const auto& code = plan.program().code;
  return std::any_of(
      code.begin() + first.instruction, code.begin() + second.instruction,
      [](const Instruction& i) { return i.opcode == Opcode::kWait && i.lane == device::Lane::kCompute; });
}

// Mean seconds between an op's end and the next op's begin.
void record_launches(costs::Recorder& recorder, const CompiledPlan& plan, const std::vector<Span>& ops) {
  double sum = 0;
  int64_t count = 0;
  for (size_t i = 1; i < ops.size(); ++i) {
    if (ops[i - 1].phase != graph::kMicroBatch || waits_between(plan, ops[i - 1], ops[i])) continue;
    sum += ops[i].begin - ops[i - 1].end;
    ++count;
  }
  if (count > 0) recorder.add_launch(std::max(sum / static_cast<double>(count), 0.0));
}

}  // namespace

void record_run(costs::Recorder& recorder, const Session& session, const StepSeconds& seconds) {
  const CompiledPlan& plan = session.plan();
  std::vector<Span> ops;
  std::copy_if(session.spans().begin(), session.spans().end(), std::back_inserter(ops), is_op);
  require(!ops.empty(), Code::kWrongState, "no run was traced; switch tracing on and run first");
  const costs::Model model(session.device().info(), nullptr);
  const auto modelled = [&](const costs::Query& query) { return model.modelled(query.work, query.dtype); };
  std::map<std::string, size_t> met;
  recorder.begin_run();
  const bool update_repacks = plan.joint->grad_scale < 0;
  double packed_weights = 0;  // seconds of packing in the traced run, which updates do in other steps
  for (const Span& span : ops) {
    const graph::JointOp& op = op_of(plan, span);
    if (span.phase == graph::kRepack && update_repacks && plan.joint->updated(op.in[0]))
      packed_weights += span.end - span.begin;
    const costs::Query query = query_of_span(plan, span);
    recorder.add(query, modelled(query), met[query.signature]++, span.end - span.begin);
  }
  recorder.end_run();
  record_launches(recorder, plan, ops);
  // If the update streams state, or is fused into backward, its seconds say nothing about other plans.
  if (seconds.optimizer > 0 && !plan.streams() && plan.joint->grad_scale < 0) {
    const costs::Query query = optimizer_query(*plan.joint);  // packed weights count as ops of their own
    recorder.add(query, modelled(query), 0, std::max(seconds.optimizer - packed_weights, 0.0));
  }
  if (seconds.step > 0) {
    const costs::Query query = host_query(*plan.joint);
    const auto first = std::find_if(ops.begin(), ops.end(), [&](const Span& span) {
      return span.phase == graph::kMicroBatch || !update_repacks;
    });
    const double window = first == ops.end() ? 0 : ops.back().end - first->begin;
    recorder.add(query, modelled(query), 0, seconds.step - seconds.optimizer - window);
  }
}

const std::string& span_name(const CompiledPlan& plan, const Span& span) {
  if (row(span.lane).computes) {
    const int32_t op = launch_of(plan, span).joint_op;
    return op < 0 ? plan.joint->values[static_cast<size_t>(-1 - op)].name : op_of(plan, span).name;
  }
  const int32_t value = copy_of(plan, span).value;
  return value < 0 ? kOptimizerState : plan.problem.values[static_cast<size_t>(value)].name;
}

Tier span_tier(const CompiledPlan& plan, const Span& span) {
  if (row(span.lane).computes) return is_op(span) ? Tier::kDevice : Tier::kHost;
  const CopyJob& copy = copy_of(plan, span);
  return std::max(copy.to, copy.from);
}

}  // namespace cairn::engine
