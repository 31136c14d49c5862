#include <algorithm>

#include "runtime/plan/plan.h"
#include "runtime/plan/residency/residence.h"
#include "runtime/plan/text.h"

namespace cairn::plan {

namespace {

class Writer {
 public:
  Writer& raw(std::string_view text) {
    out_ += text;
    return *this;
  }
  Writer& text(std::string_view s) {
    append_string(out_, s);
    return *this;
  }
  template <class Number>
  Writer& number(Number x) {
    append_number(out_, x);
    return *this;
  }
  template <class Number>
  Writer& field(std::string_view key, Number x) {
    return raw("\"").raw(key).raw("\": ").number(x);
  }
  Writer& flag(std::string_view key, bool x) {
    return raw("\"").raw(key).raw("\": ").raw(x ? "true" : "false");
  }
  Writer& named(std::string_view key, std::string_view s) { return raw("\"").raw(key).raw("\": ").text(s); }
  // [item, item], each on a line of its own.
  template <class List, class Each>
  Writer& lines(std::string_view key, const List& list, const Each& each) {
    raw("\"").raw(key).raw("\": [");
    for (size_t i = 0; i < list.size(); ++i) {
      raw(i ? ",\n  " : "\n  ");
      each(list[i], i);
    }
    return raw("]");
  }
  std::string take() && { return std::move(out_); }

 private:
  std::string out_;
};

void write_names(Writer& w, const Problem& p, std::string_view key, const std::vector<int32_t>& values) {
  w.raw("\"").raw(key).raw("\": [");
  for (size_t k = 0; k < values.size(); ++k) w.raw(k ? ", " : "").text(p.values[values[k]].name);
  w.raw("]");
}

void write_step(Writer& w, const Problem& p, const Step& step) {
  constexpr std::string_view kKinds[] = {"run", "free", "out", "wait_out", "in", "wait_in", "drop"};
  const auto kind = static_cast<size_t>(step.kind);
  w.raw("[\"").raw(kKinds[kind]).raw("\", ");
  if (step.kind == StepKind::kRun) {
    const Op& op = p.ops[step.index];
    w.text(op.name).raw(", {");
    bool first = true;
    for (size_t k = 0; k < op.outputs.size(); ++k) {
      if (step.offsets[k] < 0) continue;  // it is written in place
      w.raw(first ? "" : ", ").text(p.values[op.outputs[k]].name).raw(": ").number(step.offsets[k]);
      first = false;
    }
    w.raw("}, ").number(step.offset);
  } else {
    w.text(p.values[step.index].name);
    if (step.kind == StepKind::kOut || step.kind == StepKind::kIn || step.kind == StepKind::kDrop)
      w.raw(", ").text(p.links[step.tier].tier);
    if (step.kind == StepKind::kIn) w.raw(", ").number(step.offset);
  }
  w.raw("]");
}

}  // namespace

std::string to_json(const Problem& p) {
  Writer w;
  w.raw("{ ").named("format", has_homes(p) ? "cairn.problem/2" : "cairn.problem/1").raw(",\n");
  w.lines("values", p.values, [&](const Value& v, size_t) {
    w.raw("{")
        .named("name", v.name)
        .raw(", ")
        .field("bytes", v.bytes)
        .raw(", ")
        .flag("persistent", v.persistent);
    if (v.home >= 0) w.raw(", ").named("home", p.links[v.home].tier);
    if (v.fresh) w.raw(", ").flag("fresh", true);
    if (v.home_seconds > 0) w.raw(", ").field("home_seconds", v.home_seconds);
    w.raw("}");
  });
  w.raw(",\n").lines("ops", p.ops, [&](const Op& op, size_t) {
    w.raw("{").named("name", op.name).raw(", ").field("seconds", op.seconds).raw(", ");
    w.field("workspace_bytes", op.workspace_bytes).raw(", ");
    write_names(w, p, "inputs", op.inputs);
    w.raw(", ");
    write_names(w, p, "outputs", op.outputs);
    w.raw(", ").flag("recomputable", op.recomputable);
    if (op.region >= 0) w.raw(", ").named("region", p.regions[op.region].name);
    w.raw("}");
  });
  w.raw(",\n").field("turnaround", p.backward_begin);
  w.raw(",\n").lines("links", p.links, [&](const Link& l, size_t) {
    w.raw("{").named("tier", l.tier).raw(", ").field("latency_seconds", l.latency_seconds).raw(", ");
    w.field("out_bytes_per_second", l.out_bytes_per_second).raw(", ");
    w.field("in_bytes_per_second", l.in_bytes_per_second).raw(", ");
    w.field("both_ways_factor", l.both_ways_factor).raw(", ").field("capacity_bytes", l.capacity_bytes);
    if (l.busy_factor < 1) w.raw(", ").field("busy_factor", l.busy_factor);
    if (l.busy_rate_factor < 1) w.raw(", ").field("busy_rate_factor", l.busy_rate_factor);
    w.raw("}");
  });
  if (!p.regions.empty())
    w.raw(",\n").lines("regions", p.regions, [&](const Region& r, size_t) {
      w.raw("{").named("name", r.name).raw(", ").named("policy", kPolicyNames[static_cast<size_t>(r.policy)]);
      if (r.offload_tier >= 0) w.raw(", ").named("tier", p.links[r.offload_tier].tier);
      w.raw("}");
    });
  w.raw(",\n").field("budget_bytes", p.budget_bytes).raw(" }\n");
  return std::move(w).take();
}

std::string to_json(const Problem& p, const Plan& plan, bool with_steps) {
  constexpr std::string_view kDecisions[] = {"keep", "recompute", "offload:", "persistent"};
  Writer w;
  w.raw("{ ").named("format", has_homes(p) ? "cairn.plan/2" : "cairn.plan/1").raw(", ");
  w.field("budget_bytes", plan.budget_bytes);
  w.raw(",\n").field("arena_bytes", plan.arena_bytes).raw(", \"peak_bytes\": {");
  w.field("device", plan.device_peak_bytes);
  for (size_t t = 0; t < p.links.size(); ++t)
    w.raw(", ").text(p.links[t].tier).raw(": ").number(plan.tier_peak_bytes[t]);
  w.raw("},\n").field("predicted_seconds", plan.predicted_seconds).raw(", ");
  w.field("keep_all_seconds", plan.keep_all_seconds)
      .raw(", ")
      .field("bound_seconds", plan.bound_seconds)
      .raw(", ");
  w.field("gap", plan.gap).raw(", ").field("solve_seconds", plan.solve_seconds).raw(",\n");
  w.lines("values", plan.values, [&](const ValuePlan& v, size_t i) {
    w.raw("{").named("name", p.values[i].name).raw(", \"decision\": ");
    std::string decision(kDecisions[static_cast<size_t>(v.decision)]);
    if (v.decision == Decision::kOffload) decision += p.links[v.tier].tier;
    w.text(decision)
        .raw(", ")
        .named("reason", v.reason)
        .raw(", ")
        .field("bytes", p.values[i].bytes)
        .raw(", ");
    w.field("offset", v.offset).raw(", ").field("first_step", v.first_step).raw(", ");
    w.field("last_step", v.last_step);
    if (p.values[i].home >= 0)
      w.raw(", ").named("home", plan.home_offsets[i] >= 0 ? p.links[p.values[i].home].tier : "device");
    w.raw("}");
  });
  if (with_steps)
    w.raw(",\n").lines("steps", plan.steps, [&](const Step& step, size_t) { write_step(w, p, step); });
  w.raw(" }\n");
  return std::move(w).take();
}

}  // namespace cairn::plan
