// Plans as files: the problem and what was decided. A plan that is read has been checked and replayed.
#include "runtime/io/plan_file.h"

#include <cmath>
#include <cstring>

#include "runtime/io/envelope.h"
#include "runtime/io/schema/plan_generated.h"

namespace cairn::io {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

Offset<fb::Problem> encode_problem(FlatBufferBuilder& to, const plan::Problem& p) {
  std::vector<Offset<fb::ProblemValue>> values;
  for (const plan::Value& v : p.values)
    values.push_back(fb::CreateProblemValue(to, to.CreateString(v.name), v.bytes, v.persistent, v.home,
                                            v.home_seconds, v.fresh));
  std::vector<Offset<fb::ProblemOp>> ops;
  for (const plan::Op& op : p.ops)
    ops.push_back(fb::CreateProblemOp(to, to.CreateString(op.name), op.seconds, op.workspace_bytes,
                                      to.CreateVector(op.inputs), to.CreateVector(op.outputs),
                                      op.recomputable, op.region));
  std::vector<Offset<fb::ProblemRegion>> regions;
  for (const plan::Region& r : p.regions)
    regions.push_back(fb::CreateProblemRegion(to, to.CreateString(r.name), r.parent,
                                              static_cast<uint8_t>(r.policy), r.offload_tier));
  std::vector<Offset<fb::ProblemLink>> links;
  for (const plan::Link& l : p.links)
    links.push_back(fb::CreateProblemLink(to, to.CreateString(l.tier), l.latency_seconds,
                                          l.out_bytes_per_second, l.in_bytes_per_second, l.both_ways_factor,
                                          l.capacity_bytes, l.busy_factor, l.busy_rate_factor));
  return fb::CreateProblem(to, to.CreateVector(values), to.CreateVector(ops), p.backward_begin,
                           to.CreateVector(regions), to.CreateVector(links), p.budget_bytes);
}

Offset<fb::Plan> encode_decisions(FlatBufferBuilder& to, const plan::Plan& p) {
  std::vector<Offset<fb::PlanValue>> values;
  for (const plan::ValuePlan& v : p.values)
    values.push_back(fb::CreatePlanValue(to, static_cast<uint8_t>(v.decision), v.tier, v.offset, v.first_step,
                                         v.last_step, to.CreateString(v.reason)));
  std::vector<fb::PlanStep> steps;
  std::vector<int64_t> offsets;
  for (const plan::Step& s : p.steps) {
    steps.emplace_back(s.offset, s.tier_offset, s.index, s.tier, static_cast<uint32_t>(s.offsets.size()),
                       static_cast<uint32_t>(s.kind));
    offsets.insert(offsets.end(), s.offsets.begin(), s.offsets.end());
  }
  return fb::CreatePlan(to, p.budget_bytes, p.arena_bytes, p.device_peak_bytes,
                        to.CreateVector(p.tier_peak_bytes), to.CreateVector(p.tier_arena_bytes),
                        p.predicted_seconds, p.keep_all_seconds, p.bound_seconds, p.gap, p.solve_seconds,
                        to.CreateVector(p.value_offsets), to.CreateVector(values),
                        to.CreateVectorOfStructs(steps), to.CreateVector(offsets), p.totals.keep_bytes,
                        p.totals.recompute_bytes, to.CreateVector(p.totals.offload_bytes), p.peak_step,
                        to.CreateVector(p.home_offsets));
}

plan::Problem read_problem(const fb::Problem& from, Budget& budget) {
  plan::Problem p;
  const uint64_t values = count_of(from.values(), kMaxValues, "values", budget);
  for (uint32_t i = 0; i < values; ++i) {
    const fb::ProblemValue& v = *from.values()->Get(i);
    p.values.push_back(
        {text_of(v.name(), budget), v.bytes(), v.persistent(), v.home(), v.home_seconds(), v.fresh()});
  }
  const uint64_t ops = count_of(from.ops(), kMaxValues, "ops", budget);
  for (uint32_t i = 0; i < ops; ++i) {
    const fb::ProblemOp& op = *from.ops()->Get(i);
    p.ops.push_back({text_of(op.name(), budget), op.seconds(), op.workspace_bytes(),
                     list_of(op.inputs(), budget), list_of(op.outputs(), budget), op.recomputable(),
                     op.region()});
  }
  p.backward_begin = from.turnaround();
  const uint64_t regions = count_of(from.regions(), kMaxValues, "regions", budget);
  for (uint32_t i = 0; i < regions; ++i) {
    const fb::ProblemRegion& r = *from.regions()->Get(i);
    require(r.policy() <= static_cast<uint8_t>(Policy::kOffload), Code::kCorruptFile, budget.what(),
            ": unknown policy ", static_cast<int>(r.policy()));
    p.regions.push_back(
        {text_of(r.name(), budget), r.parent(), static_cast<Policy>(r.policy()), r.offload_tier()});
  }
  const uint64_t links = count_of(from.links(), kMaxLinks, "links", budget);
  for (uint32_t i = 0; i < links; ++i) {
    const fb::ProblemLink& l = *from.links()->Get(i);
    p.links.push_back({text_of(l.tier(), budget), l.latency_seconds(), l.out_bytes_per_second(),
                       l.in_bytes_per_second(), l.both_ways_factor(), l.capacity_bytes(), l.busy_factor(),
                       l.busy_rate_factor()});
  }
  p.budget_bytes = from.budget_bytes();
  return p;
}

void read_steps(const fb::Plan& from, plan::Plan& p, Budget& budget) {
  const std::vector<int64_t> offsets = list_of(from.step_offsets(), budget);
  const uint64_t steps = count_of(from.steps(), kMaxSteps, "steps", budget);
  size_t used = 0;
  for (uint32_t i = 0; i < steps; ++i) {
    fb::PlanStep s;  // copied: the verifier does not look at the alignment of a vector's items
    std::memcpy(&s, from.steps()->Data() + i * sizeof s, sizeof s);
    require(s.kind() <= static_cast<uint32_t>(plan::StepKind::kDrop), Code::kCorruptFile, budget.what(),
            ": step ", i, " is of unknown kind ", s.kind());
    require(s.offsets() <= offsets.size() - used, Code::kCorruptFile, budget.what(), ": step ", i,
            " has more offsets than are stored");
    plan::Step step{
        static_cast<plan::StepKind>(s.kind()), s.index(), s.tier(), s.offset(), s.tier_offset(), {}};
    step.offsets.assign(offsets.begin() + static_cast<ptrdiff_t>(used),
                        offsets.begin() + static_cast<ptrdiff_t>(used + s.offsets()));
    used += s.offsets();
    p.steps.push_back(std::move(step));
  }
  require(used == offsets.size(), Code::kCorruptFile, budget.what(), ": ", offsets.size() - used,
          " offsets belong to no step");
}

plan::Plan read_plan(const fb::Plan& from, Budget& budget) {
  plan::Plan p;
  p.budget_bytes = from.budget_bytes();
  p.arena_bytes = from.arena_bytes();
  p.device_peak_bytes = from.device_peak_bytes();
  p.tier_peak_bytes = list_of(from.tier_peak_bytes(), budget);
  p.tier_arena_bytes = list_of(from.tier_arena_bytes(), budget);
  const std::pair<double*, double> seconds[] = {{&p.predicted_seconds, from.predicted_seconds()},
                                                {&p.keep_all_seconds, from.keep_all_seconds()},
                                                {&p.bound_seconds, from.bound_seconds()},
                                                {&p.gap, from.gap()},
                                                {&p.solve_seconds, from.solve_seconds()}};
  for (const auto& [to, value] : seconds) {
    require(std::isfinite(value), Code::kCorruptFile, budget.what(), ": a time is not a number");
    *to = value;
  }
  p.value_offsets = list_of(from.value_offsets(), budget);
  p.home_offsets = list_of(from.home_offsets(), budget);
  if (p.home_offsets.empty())
    p.home_offsets.assign(p.value_offsets.size(), -1);  // a file from before values could live in tiers
  const uint64_t values = count_of(from.values(), kMaxValues, "values", budget);
  for (uint32_t i = 0; i < values; ++i) {
    const fb::PlanValue& v = *from.values()->Get(i);
    require(v.decision() <= static_cast<uint8_t>(plan::Decision::kPersistent), Code::kCorruptFile,
            budget.what(), ": unknown decision ", static_cast<int>(v.decision()));
    p.values.push_back({static_cast<plan::Decision>(v.decision()), v.tier(), v.offset(), v.first_step(),
                        v.last_step(), text_of(v.reason(), budget)});
  }
  read_steps(from, p, budget);
  p.totals.keep_bytes = from.keep_bytes();
  p.totals.recompute_bytes = from.recompute_bytes();
  p.totals.offload_bytes = list_of(from.offload_bytes(), budget);
  p.peak_step = from.peak_step();
  return p;
}

}  // namespace

std::vector<std::byte> encode_plan(const plan::Problem& problem, const plan::Plan& plan) {
  FlatBufferBuilder to;
  const auto first = encode_problem(to, problem);
  const auto second = encode_decisions(to, plan);
  to.Finish(fb::CreatePlanFile(to, kFormatVersion, first, second), fb::PlanFileIdentifier());
  return seal(to);
}

DecodedPlan decode_plan(std::span<const std::byte> bytes) {
  const Opened opened(bytes, fb::PlanFileIdentifier(), "plan");
  Budget budget = opened.budget();
  const fb::PlanFile& file = *opened.root<fb::PlanFile>();
  DecodedPlan decoded{read_problem(*file.problem(), budget), read_plan(*file.plan(), budget)};
  const plan::Problem& problem = decoded.problem;
  const plan::Plan& p = decoded.plan;
  try {
    plan::check(problem);
    const std::string wrong = plan::violation(problem, p);
    require(wrong.empty(), Code::kCorruptFile, wrong);
  } catch (const Error& error) {
    fail_as(Code::kCorruptFile, error, "plan: ");
  }
  // What a replay does not look at but readers index with.
  require(p.values.size() == problem.values.size(), Code::kCorruptFile, "plan: decisions about ",
          p.values.size(), " of ", problem.values.size(), " values");
  require(p.totals.offload_bytes.size() == problem.links.size() && p.peak_step >= -1 &&
              p.peak_step < static_cast<int64_t>(p.steps.size()),
          Code::kCorruptFile, "plan: its totals do not fit its steps");
  for (const plan::ValuePlan& v : p.values)
    require(v.tier >= -1 && v.tier < static_cast<int64_t>(problem.links.size()) && v.first_step >= -1 &&
                v.first_step < static_cast<int64_t>(p.steps.size()) && v.last_step >= -1 &&
                v.last_step < static_cast<int64_t>(p.steps.size()),
            Code::kCorruptFile, "plan: a decision names a tier or step that is not there");
  return decoded;
}

}  // namespace cairn::io
