#include "runtime/plan/explain.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/plan/pricing/rules.h"
#include "runtime/plan/text.h"

namespace cairn::plan {
namespace {

// What the steps did with a value: how it returned to the device, and whether an op read it then.
struct Life {
  bool was_here = false, here = false, remade = false, fetched = false;  // the latter two: and then read
  bool by_run = false;                                                   // how its present residency began
};

// limited: there is a budget. Without one plans differ in how long they wait for copies that policies ask for.
std::string reason(const Problem& p, const Index& index, const Rules& rules, int32_t v, Decision decision,
                   bool limited) {
  const int32_t maker = index.maker[v];
  if (decision == Decision::kPersistent) return "persistent: on the device from start to end";
  if (maker < 0) return "";  // it lives in a tier
  if (maker >= p.backward_begin) return "made by backward, gone after its last reader";
  const int32_t scope = index.scope[maker];
  const std::string policy = scope >= 0 && rules.policy[v] != Policy::kPlannerDecides
                                 ? cat("region '", p.regions[scope].name, "'")
                                 : "";
  switch (decision) {
    case Decision::kRecompute:
      if (rules.policy[v] == Policy::kRecompute) return cat("policy RECOMPUTE of ", policy);
      return cat("recomputed by '", p.ops[maker].name, "': ", human_seconds(p.ops[maker].seconds),
                 limited ? " to fit the budget" : " while copies are under way");
    case Decision::kOffload:
      if (rules.policy[v] == Policy::kOffload) return cat("policy OFFLOAD of ", policy);
      return limited ? "leaves over the link to fit the budget"
                     : "leaves over the link, after others' copies";
    default:
      break;
  }
  const bool read_later = index.first_backward[v] >= 0;
  if (rules.policy[v] == Policy::kKeep) return cat("policy KEEP of ", policy);
  if (rules.policy[v] == Policy::kOffload && read_later)
    return cat("kept in spite of OFFLOAD of ", policy, ": under a page, or no room in the tier");
  if (rules.policy[v] == Policy::kRecompute && read_later)
    return p.ops[maker].recomputable ? cat("what ", policy, " is recomputed for, or read by others")
                                     : cat("'", p.ops[maker].name, "' may not run again");
  if (!read_later) return "not read by backward";
  if (!p.ops[maker].recomputable) return cat("'", p.ops[maker].name, "' may not run again");
  return "fits";
}

}  // namespace

void explain(const Problem& p, const Index& index, const Rules& rules, Plan& plan) {
  const auto values = static_cast<int32_t>(p.values.size());
  std::vector<Life> life(values);
  plan.values.assign(values, {});
  for (int32_t s = 0; s < static_cast<int32_t>(plan.steps.size()); ++s) {
    const Step& step = plan.steps[s];
    const auto place = [&](int32_t v, int64_t offset, bool by_run) {
      if (life[v].here) return;
      ValuePlan& value = plan.values[v];
      if (value.first_step < 0) {
        value.first_step = s;
        value.offset = offset;
      }
      if (life[v].was_here) life[v].by_run = by_run;
      life[v].here = true;
    };
    if (step.kind == StepKind::kRun) {
      const Op& op = p.ops[step.index];
      for (int32_t v : index.inputs[step.index])
        if (life[v].was_here) (life[v].by_run ? life[v].remade : life[v].fetched) = true;
      for (size_t k = 0; k < op.outputs.size(); ++k)
        if (!p.values[op.outputs[k]].persistent) place(op.outputs[k], step.offsets[k], true);
    } else if (step.kind == StepKind::kIn) {
      place(step.index, step.offset, false);
    } else if (step.kind == StepKind::kFree) {
      life[step.index].here = false;
      life[step.index].was_here = true;
      plan.values[step.index].last_step = s;
    }
    if (step.kind == StepKind::kOut) plan.values[step.index].tier = step.tier;
  }
  const auto end = static_cast<int32_t>(plan.steps.size()) - 1;
  plan.totals = {};
  plan.totals.offload_bytes.assign(p.links.size(), 0);
  for (int32_t v = 0; v < values; ++v) {
    ValuePlan& value = plan.values[v];
    value.decision = p.values[v].persistent ? Decision::kPersistent
                     : life[v].fetched      ? Decision::kOffload
                     : life[v].remade       ? Decision::kRecompute
                                            : Decision::kKeep;
    if (value.decision != Decision::kOffload) value.tier = -1;
    if (p.values[v].persistent) {
      value.offset = plan.value_offsets[v];
      value.first_step = 0;
    }
    if (p.values[v].persistent || life[v].here) value.last_step = end;
    value.reason = reason(p, index, rules, v, value.decision, plan.budget_bytes > 0);
    if (p.values[v].persistent || !index.saved(v, p.backward_begin)) continue;
    int64_t& total = value.decision == Decision::kOffload     ? plan.totals.offload_bytes[value.tier]
                     : value.decision == Decision::kRecompute ? plan.totals.recompute_bytes
                                                              : plan.totals.keep_bytes;
    total += p.values[v].bytes;
  }
}

namespace {

// Values on the device at the plan's fullest step, and the op that runs there or next.
struct Peak {
  std::vector<int32_t> alive;
  int32_t op = -1;
};

Peak fullest(const Problem& p, const Index& index, const Plan& plan) {
  std::vector<uint8_t> here(p.values.size(), 0);
  int64_t alive = 0, most = -1;
  size_t at = 0;
  const auto scan = [&](size_t until) {
    std::fill(here.begin(), here.end(), 0);
    alive = 0;
    for (size_t s = 0; s < until; ++s) {
      const Step& step = plan.steps[s];
      const auto take = [&](int32_t v) {
        if (!here[v]) alive += p.values[v].bytes;
        here[v] = 1;
      };
      int64_t workspace = 0;
      if (step.kind == StepKind::kRun) {
        for (int32_t v : index.outputs[step.index]) take(v);
        workspace = p.ops[step.index].workspace_bytes;
      } else if (step.kind == StepKind::kIn) {
        take(step.index);
      } else if (step.kind == StepKind::kFree) {
        here[step.index] = 0;
        alive -= p.values[step.index].bytes;
      }
      if (until == plan.steps.size() && alive + workspace > most) {
        most = alive + workspace;
        at = s;
      }
    }
  };
  scan(plan.steps.size());
  Peak peak;
  if (plan.steps.empty()) return peak;
  scan(at + 1 < plan.steps.size() ? at + 1 : at);
  if (at + 1 == plan.steps.size() && plan.steps[at].kind == StepKind::kRun)
    for (int32_t v : index.outputs[plan.steps[at].index]) here[v] = 1;
  for (size_t v = 0; v < here.size(); ++v)
    if (here[v]) peak.alive.push_back(static_cast<int32_t>(v));
  while (at < plan.steps.size() && plan.steps[at].kind != StepKind::kRun) ++at;
  if (at < plan.steps.size()) peak.op = plan.steps[at].index;
  return peak;
}

}  // namespace

void fail_over_budget(const Problem& p, const Index& index, const Plan& smallest) {
  Peak peak = fullest(p, index, smallest);
  const size_t named = std::min<size_t>(5, peak.alive.size());
  std::partial_sort(peak.alive.begin(), peak.alive.begin() + static_cast<int64_t>(named), peak.alive.end(),
                    [&](int32_t a, int32_t b) {
                      return p.values[a].bytes != p.values[b].bytes ? p.values[a].bytes > p.values[b].bytes
                                                                    : a < b;
                    });
  std::string list;
  for (size_t k = 0; k < named; ++k)
    list += cat(k ? ", '" : "'", p.values[peak.alive[k]].name, "' (", p.values[peak.alive[k]].bytes, ")");
  MemoryFault fault;
  fault.requested_bytes = fault.smallest_budget_bytes = static_cast<uint64_t>(smallest.arena_bytes);
  fault.in_use_bytes = static_cast<uint64_t>(index.persistent_bytes);
  fault.budget_bytes = static_cast<uint64_t>(p.budget_bytes);
  std::string where = "before any op runs";
  if (peak.op >= 0) {
    const Op& op = p.ops[peak.op];
    fault.region = op.region >= 0 ? p.regions[op.region].name : op.name;
    where = cat("at op '", op.name, "'");
    if (op.workspace_bytes > 0) where += cat(" (workspace ", op.workspace_bytes, ")");
  }
  throw Error(Code::kOverBudget,
              cat("no plan fits a budget of ", p.budget_bytes, " bytes; the smallest budget that does is ",
                  smallest.arena_bytes, " bytes. Its peak is ", where, ", with ", index.persistent_bytes,
                  " persistent bytes; the largest values alive there: ", list.empty() ? "none" : list),
              fault);
}

int64_t activation_peak(const Problem& problem, const Plan& plan, const std::vector<bool>& activations) {
  std::vector<bool> here(problem.values.size(), false);
  int64_t alive = 0, peak = 0;
  const auto place = [&](int32_t value) {
    if (!activations[value] || problem.values[value].persistent || problem.values[value].home >= 0 ||
        here[value])
      return;
    here[value] = true;
    alive += problem.values[value].bytes;
  };
  for (const Step& step : plan.steps) {
    if (step.kind == StepKind::kRun) {
      for (int32_t value : problem.ops[step.index].outputs) place(value);
    } else if (step.kind == StepKind::kIn) {
      place(step.index);
    } else if (step.kind == StepKind::kFree) {
      if (here[step.index]) alive -= problem.values[step.index].bytes;
      here[step.index] = false;
    }
    peak = std::max(peak, alive);
  }
  return peak;
}

}  // namespace cairn::plan
