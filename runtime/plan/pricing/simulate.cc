#include <algorithm>

#include "runtime/plan/plan.h"
#include "runtime/plan/pricing/lanes.h"

namespace cairn::plan {

Timeline simulate(const Problem& p, const Plan& plan, const std::vector<double>& ready) {
  Timeline line;
  line.step_span.resize(plan.steps.size());
  std::vector<Lanes> lanes;
  for (const Link& link : p.links) lanes.emplace_back(link);
  struct Copy {
    size_t step;
    int32_t tier, number;
    Lanes::Way way;
  };
  std::vector<Copy> copies;
  std::vector<std::vector<size_t>> going(p.values.size());  // copies in flight per value
  std::vector<uint8_t> ran(p.ops.size(), 0);
  double now = 0;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    const double before = now;
    if (step.kind == StepKind::kRun) {
      now = compute_end(lanes, now, p.ops[step.index].seconds);
      if (ran[step.index]) line.recompute_seconds += p.ops[step.index].seconds;
      ran[step.index] = 1;
    } else if (step.kind == StepKind::kOut || step.kind == StepKind::kIn) {
      const auto way = step.kind == StepKind::kOut ? Lanes::kOut : Lanes::kIn;
      going[step.index].push_back(copies.size());
      const double from = way == Lanes::kIn && !ready.empty() ? ready[step.index] : 0;
      copies.push_back(
          {s, step.tier, lanes[step.tier].issue(way, p.values[step.index].bytes, now, from), way});
    } else if (step.kind == StepKind::kWaitOut || step.kind == StepKind::kWaitIn) {
      for (size_t c : going[step.index])
        now = std::max(now, lanes[copies[c].tier].finish(copies[c].way, copies[c].number));
      going[step.index].clear();
      line.stall_seconds += now - before;
    }
    line.step_span[s] = {before, now};
  }
  line.seconds = now;
  for (Lanes& l : lanes) {
    l.advance(Lanes::kNever);
    line.seconds = std::max(line.seconds, l.last_end());
  }
  line.stall_seconds += line.seconds - now;
  for (const Copy& c : copies)
    line.step_span[c.step] = {lanes[c.tier].begin(c.way, c.number), lanes[c.tier].end(c.way, c.number)};
  return line;
}

}  // namespace cairn::plan
