// An independent reading of the plan form: replays the steps with its own bookkeeping and compares the result with
// what the plan claims. Shares only the simulation of the lanes with the solver.
#include <algorithm>
#include <cmath>
#include <map>

#include "runtime/base/error.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/residency/residence.h"

namespace cairn::plan {
namespace {

struct Broken {
  std::string what;
};

template <class... Parts>
void must(bool holds, const Parts&... parts) {
  if (!holds) throw Broken{cat(parts...)};
}

// Which bytes of one arena are taken, by start.
class Taken {
 public:
  void take(std::string_view name, int64_t start, int64_t bytes, int64_t floor) {
    must(start >= floor, "'", name, "' at ", start, " lies below ", floor);
    int64_t end;
    must(!__builtin_add_overflow(start, bytes, &end), "'", name, "' ends beyond 64 bits");
    if (bytes == 0) return;
    const auto next = spans_.lower_bound(start);
    must(next == spans_.end() || end <= next->first, "'", name, "' at ", start, "..", end,
         " overlaps what is at ", next == spans_.end() ? 0 : next->first);
    if (next != spans_.begin()) {
      const auto before = std::prev(next);
      must(before->second <= start, "'", name, "' at ", start, "..", end, " overlaps what ends at ",
           before->second);
    }
    spans_.emplace(start, end);
    height = std::max(height, end);
  }
  void give(int64_t start, int64_t bytes) {
    if (bytes > 0) spans_.erase(start);
  }
  int64_t height = 0;

 private:
  std::map<int64_t, int64_t> spans_;
};

struct State {
  bool here = false, coming = false, read = false;
  int64_t offset = -1;
  int lives = 0;
  int32_t from = -1;                     // how the present residency began: -1 a run, else the link
  bool by_run = false, by_link = false;  // how it came to the device again
  bool read_back = false;                // an op read it after that
  std::vector<int32_t> going;            // links with a copy on its way out
  std::map<int32_t, int64_t> held;       // copies in tiers: link -> offset
  bool lives_at_home = false;            // this plan has it in its tier
  bool changed = false;                  // its bytes on the device differ from those in its tier
};

class Replay {
 public:
  Replay(const Problem& p, const Plan& plan)
      : p_(p),
        plan_(plan),
        state_(p.values.size()),
        changed_by_(p.values.size(), -1),
        ran_(p.ops.size(), 0),
        tiers_(p.links.size()),
        tier_bytes_(p.links.size(), 0),
        tier_peak_(p.links.size(), 0) {}

  std::string run() {
    size_t s = 0;
    try {
      sizes();
      homes();
      persistent();
      for (; s < plan_.steps.size(); ++s) take(plan_.steps[s], s);
    } catch (const Broken& broken) {
      return cat(s < plan_.steps.size() ? cat("step ", s, ": ") : "", broken.what);
    }
    try {
      if (next_ < p_.ops.size()) must(false, "the plan ends before '", p_.ops[next_].name, "' has run");
      all_home();
      claims();
    } catch (const Broken& broken) {
      return broken.what;
    }
    return "";
  }

 private:
  const std::string& name(int32_t v) const { return p_.values[v].name; }

  void sizes() const {
    must(plan_.values.size() == p_.values.size(), "one ValuePlan per value is needed");
    must(plan_.value_offsets.size() == p_.values.size(), "one value_offset per value is needed");
    must(plan_.tier_peak_bytes.size() == p_.links.size() &&
             plan_.tier_arena_bytes.size() == p_.links.size() &&
             plan_.totals.offload_bytes.size() == p_.links.size(),
         "one number per link is needed");
    must(plan_.home_offsets.empty() || plan_.home_offsets.size() == p_.values.size(),
         "one home_offset per value is needed");
  }

  // A value that may live in a tier, and that the plan does not keep on the device, lives in the tier from start to
  // end.
  void homes() {
    for (size_t v = 0; v < p_.values.size(); ++v) {
      const Value& value = p_.values[v];
      const int64_t place = plan_.home_offsets.empty() ? -1 : plan_.home_offsets[v];
      if (value.home < 0 || place < 0) {
        must(!value.at_home(), "'", value.name, "' has no place in its tier");
        must(place == -1, "'", value.name, "' has a place in a tier that it does not live in");
        continue;
      }
      tiers_[value.home].take(value.name, place, value.bytes, 0);
      tier_bytes_[value.home] += value.bytes;
      tier_peak_[value.home] = tier_bytes_[value.home];
      must(tier_bytes_[value.home] <= p_.links[value.home].capacity_bytes, "tier '",
           p_.links[value.home].tier, "' is over its capacity");
      state_[v].lives_at_home = true;
      state_[v].held[value.home] = place;
    }
  }
  void all_home() const {
    for (size_t v = 0; v < p_.values.size(); ++v)
      if (state_[v].lives_at_home)
        must(!state_[v].here && !state_[v].changed, "'", p_.values[v].name,
             "' is not in its tier when the plan ends");
  }
  bool persists(int32_t v) const { return p_.values[v].persistent && !state_[v].lives_at_home; }

  void persistent() {
    int64_t sum = 0;
    for (size_t v = 0; v < p_.values.size(); ++v) {
      if (!persists(static_cast<int32_t>(v))) continue;
      device_.take(p_.values[v].name, plan_.value_offsets[v], p_.values[v].bytes, 0);
      state_[v].here = true;
      sum += p_.values[v].bytes;
    }
    must(device_.height <= sum, "persistent values do not fill the arena from 0");
    device_.height = alive_ = peak_ = floor_ = sum;
  }

  void take(const Step& step, size_t s) {
    const bool run = step.kind == StepKind::kRun;
    const auto count = static_cast<int32_t>(run ? p_.ops.size() : p_.values.size());
    must(step.index >= 0 && step.index < count, "no ", run ? "op " : "value ", step.index);
    if (run) return take_run(step, s);
    must(!persists(step.index), "'", name(step.index), "' is persistent and is never freed");
    if (step.kind == StepKind::kOut || step.kind == StepKind::kIn || step.kind == StepKind::kDrop)
      must(step.tier >= 0 && step.tier < static_cast<int32_t>(p_.links.size()), "no link ", step.tier);
    State& v = state_[step.index];
    const std::string& who = name(step.index);
    const int64_t bytes = p_.values[step.index].bytes;
    if (v.lives_at_home && take_homed(step, v, who)) return;
    switch (step.kind) {
      case StepKind::kFree:
        must(v.here, "'", who, "' is not on the device");
        must(!v.coming && v.going.empty(), "a copy of '", who, "' is in flight");
        device_.give(v.offset, bytes);
        v.here = false;
        alive_ -= bytes;
        break;
      case StepKind::kOut:
        must(v.here && !v.coming, "'", who, "' is not complete on the device");
        must(!v.held.count(step.tier), "the tier holds a copy of '", who, "' already");
        tiers_[step.tier].take(who, step.tier_offset, bytes, 0);
        v.held[step.tier] = step.tier_offset;
        v.going.push_back(step.tier);
        tier_bytes_[step.tier] += bytes;
        tier_peak_[step.tier] = std::max(tier_peak_[step.tier], tier_bytes_[step.tier]);
        must(tier_bytes_[step.tier] <= p_.links[step.tier].capacity_bytes, "tier '", p_.links[step.tier].tier,
             "' is over its capacity");
        break;
      case StepKind::kWaitOut:
        must(!v.going.empty(), "no copy of '", who, "' is going out");
        v.going.clear();
        break;
      case StepKind::kIn:
        must(!v.here, "'", who, "' is on the device already");
        must(v.held.count(step.tier), "the tier holds no copy of '", who, "'");
        must(v.held[step.tier] == step.tier_offset, "the copy of '", who, "' lies elsewhere in the tier");
        place(step.index, step.offset, step.tier);
        v.coming = true;
        peak_ = std::max(peak_, alive_);
        break;
      case StepKind::kWaitIn:
        must(v.coming, "no copy of '", who, "' is coming in");
        v.coming = false;
        break;
      default:  // kDrop
        must(v.held.count(step.tier), "the tier holds no copy of '", who, "'");
        must(v.held[step.tier] == step.tier_offset, "the copy of '", who, "' lies elsewhere in the tier");
        must(std::find(v.going.begin(), v.going.end(), step.tier) == v.going.end() &&
                 !(v.coming && v.from == step.tier),
             "a copy of '", who, "' is in flight");
        tiers_[step.tier].give(step.tier_offset, bytes);
        v.held.erase(step.tier);
        tier_bytes_[step.tier] -= bytes;
    }
  }

  // Checks the steps of values that live in their tier. False: the step is checked as for other values.
  bool take_homed(const Step& step, State& v, const std::string& who) {
    const int32_t home = p_.values[step.index].home;
    must(step.kind != StepKind::kDrop, "'", who, "' lives in the tier, and is not dropped there");
    must(step.kind == StepKind::kFree || !v.here || step.tier == home, "'", who, "' lives in another tier");
    if (step.kind == StepKind::kFree)
      must(!v.changed, "'", who, "' was changed, and is freed before it is in its tier");
    if (step.kind == StepKind::kIn) must(!v.changed, "'", who, "' was changed, and is not in its tier");
    if (step.kind == StepKind::kWaitOut) v.changed = false;
    if (step.kind != StepKind::kOut) return false;
    must(v.here && !v.coming, "'", who, "' is not complete on the device");
    must(v.going.empty(), "a copy of '", who, "' is in flight");
    must(step.tier_offset == plan_.home_offsets[step.index], "'", who, "' lies elsewhere in the tier");
    v.going.push_back(home);
    return true;
  }

  void place(int32_t value, int64_t offset, int32_t from) {
    State& v = state_[value];
    device_.take(name(value), offset, p_.values[value].bytes, floor_);
    v.here = true;
    v.offset = offset;
    v.from = from;
    if (v.lives++ > 0) (from < 0 ? v.by_run : v.by_link) = true;
    alive_ += p_.values[value].bytes;
  }

  void take_run(const Step& step, size_t) {
    const Op& op = p_.ops[step.index];
    if (static_cast<size_t>(step.index) == next_) {
      ++next_;
    } else {
      must(static_cast<size_t>(step.index) < next_, "'", op.name, "' runs before an op ahead of it has");
      must(op.recomputable, "'", op.name, "' may not run again");
      for (int32_t u : op.inputs)
        must(changed_by_[u] <= step.index, "'", op.name, "' runs again after '", name(u), "' was changed");
    }
    for (int32_t u : op.inputs) {
      must(state_[u].here, "'", op.name, "' reads '", name(u), "', which is not on the device");
      must(!state_[u].coming, "'", op.name, "' reads '", name(u), "', which is still being copied in");
      if (state_[u].lives > 1) state_[u].read_back = true;
    }
    must(step.offsets.size() == op.outputs.size(), "'", op.name, "' needs an offset per output");
    for (size_t k = 0; k < op.outputs.size(); ++k) {
      const int32_t w = op.outputs[k];
      if (p_.values[w].home >= 0) changed_by_[w] = step.index;
      if (persists(w)) {
        must(step.offsets[k] == -1, "persistent '", name(w), "' is not placed by a run");
      } else if (state_[w].here) {
        must(step.offsets[k] == state_[w].offset, "'", name(w), "' is on the device at another offset");
        must(!state_[w].coming && state_[w].going.empty(), "'", name(w),
             "' is written while a copy is in flight");
      } else {
        place(w, step.offsets[k], -1);
      }
      state_[w].changed = state_[w].lives_at_home;
    }
    if (op.workspace_bytes > 0) device_.take("workspace", step.offset, op.workspace_bytes, floor_);
    peak_ = std::max(peak_, alive_ + op.workspace_bytes);
    if (op.workspace_bytes > 0) device_.give(step.offset, op.workspace_bytes);
  }

  void claims() const {
    const auto same = [](std::string_view what, auto said, auto found) {
      must(said == found, what, " is said to be ", said, ", the steps say ", found);
    };
    const auto near = [](std::string_view what, double said, double found) {
      must(std::abs(said - found) <= 1e-9 * std::max(1e-12, std::abs(found)), what, " is said to be ", said,
           ", found ", found);
    };
    same("budget_bytes", plan_.budget_bytes, p_.budget_bytes);
    same("arena_bytes", plan_.arena_bytes, device_.height);
    same("device_peak_bytes", plan_.device_peak_bytes, peak_);
    must(p_.budget_bytes == 0 || plan_.arena_bytes <= p_.budget_bytes, "the arena is over the budget");
    for (size_t t = 0; t < p_.links.size(); ++t) {
      same("tier_peak_bytes", plan_.tier_peak_bytes[t], tier_peak_[t]);
      same("tier_arena_bytes", plan_.tier_arena_bytes[t], tiers_[t].height);
    }
    double sum = 0;
    for (const Op& op : p_.ops) sum += op.seconds;
    near("keep_all_seconds", plan_.keep_all_seconds, sum);
    near("predicted_seconds", plan_.predicted_seconds, simulate(p_, plan_).seconds);
    must(plan_.bound_seconds <= plan_.predicted_seconds * (1 + 1e-9), "bound_seconds ", plan_.bound_seconds,
         " is above the plan's own ", plan_.predicted_seconds);
    if (plan_.bound_seconds > 0)
      near("1 + gap", 1 + plan_.gap, plan_.predicted_seconds / plan_.bound_seconds);
    for (size_t v = 0; v < p_.values.size(); ++v) {
      const State& s = state_[v];
      const Decision d = plan_.values[v].decision;
      const bool right = s.lives_at_home             ? d == Decision::kOffload
                         : p_.values[v].persistent   ? d == Decision::kPersistent
                         : d == Decision::kRecompute ? s.by_run
                         : d == Decision::kOffload   ? s.by_link
                                                     : d == Decision::kKeep && !s.read_back;
      must(right, "the decision of '", p_.values[v].name, "' contradicts the steps");
    }
  }

  const Problem& p_;
  const Plan& plan_;
  std::vector<State> state_;
  std::vector<int32_t>
      changed_by_;  // of values that may live in a tier: the last op that has changed it, or -1
  std::vector<uint8_t> ran_;
  Taken device_;
  std::vector<Taken> tiers_;
  std::vector<int64_t> tier_bytes_, tier_peak_;
  size_t next_ = 0;
  int64_t alive_ = 0, peak_ = 0, floor_ = 0;
};

}  // namespace

std::string violation(const Problem& p, const Plan& plan) {
  check(p);
  // A fresh value that is kept on the device is checked as an ordinary value.
  const bool any = std::any_of(p.values.begin(), p.values.end(), [](const Value& v) { return v.fresh; });
  if (!any || plan.home_offsets.size() != p.values.size()) return Replay(p, plan).run();
  std::vector<bool> away;
  for (size_t v = 0; v < p.values.size(); ++v)
    away.push_back(!p.values[v].fresh || plan.home_offsets[v] >= 0);
  return Replay(stay_fresh(p, away), plan).run();
}

}  // namespace cairn::plan
