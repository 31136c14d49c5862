#include "runtime/plan/homes/stream.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "runtime/plan/sequence/lanes.h"

namespace cairn::plan {
namespace {

// One stretch of time on the device; first and last are the runs, as steps of the plan without homes, that use
// the value.
struct Stay {
  int32_t value, first, last;
  bool fetched;          // its first use reads it
  int32_t changed = -1;  // the last run that changes it
  int32_t issue = -1;    // the step that its fetch starts before
  bool joined = false;   // part of the one before it
};

class Streamer {
 public:
  Streamer(const Problem& p, const Problem& without, const Plan& plan, const Streaming& how)
      : p_(p), plan_(plan), how_(how), uses_(home_uses(p)), state_(p.values.size()) {
    for (const Link& link : p.links) lanes_.emplace_back(link);
    out_.steps.reserve(2 * plan.steps.size());
    timeline(without);
    find_stays();
    memory();
  }

  Streamed run() && {
    keep_between_uses();
    place_fetches();
    build();
    return std::move(out_);
  }

 private:
  struct State {
    int32_t out = -1, in = -1, activation = -1;  // numbers of copies in their queues
    StepKind way = StepKind::kOut;               // of the activation's copy
    int32_t tier = -1;
  };

  static size_t at(int32_t i) { return static_cast<size_t>(i); }
  int64_t bytes(int32_t v) const { return p_.values[at(v)].bytes; }
  int32_t steps() const { return static_cast<int32_t>(plan_.steps.size()); }
  bool is_run(int32_t s) const { return plan_.steps[at(s)].kind == StepKind::kRun; }

  // When each step begins if no value that lives at home is waited for.
  void timeline(const Problem& without) {
    const Timeline line = simulate(without, plan_);
    start_.reserve(plan_.steps.size() + 1);
    double now = 0;
    for (int32_t s = 0; s < steps(); ++s) {
      start_.push_back(now);
      if (is_run(s)) now = line.step_span[at(s)][1];
    }
    start_.push_back(now);
  }

  void find_stays() {
    of_value_.resize(p_.values.size());
    for (int32_t s = 0; s < steps(); ++s) {
      if (!is_run(s)) continue;
      for (const HomeUse& use : uses_[at(plan_.steps[at(s)].index)]) {
        of_value_[at(use.value)].push_back(static_cast<int32_t>(stays_.size()));
        stays_.push_back({use.value, s, s, use.reads, use.changes ? s : -1});
      }
    }
  }

  // Bytes alive at each step, with what its op uses of what lives at home.
  void memory() {
    std::vector<uint8_t> here(p_.values.size(), 0);
    int64_t alive = p_.persistent_bytes();
    for (const Step& step : plan_.steps) {
      int64_t extra = 0;
      const auto take = [&](int32_t v) {
        if (here[at(v)] || p_.values[at(v)].persistent || p_.values[at(v)].at_home()) return;
        here[at(v)] = 1;
        alive += bytes(v);
      };
      if (step.kind == StepKind::kRun) {
        const Op& op = p_.ops[at(step.index)];
        for (const int32_t v : op.outputs) take(v);
        extra = op.workspace_bytes;
        for (const HomeUse& use : uses_[at(step.index)]) extra += bytes(use.value);
      } else if (step.kind == StepKind::kIn) {
        take(step.index);
      } else if (step.kind == StepKind::kFree) {
        here[at(step.index)] = 0;
        alive -= bytes(step.index);
      }
      alive_.push_back(alive + extra);
    }
  }

  bool fits(int32_t begin, int32_t end, int64_t more) const {
    for (int32_t s = begin; s < end; ++s)
      if (alive_[at(s)] + more > how_.capacity_bytes) return false;
    return true;
  }
  void take(int32_t begin, int32_t end, int64_t more) {
    for (int32_t s = begin; s < end; ++s) alive_[at(s)] += more;
  }

  // The shortest gaps first: they take the least memory for the same bytes saved on the link.
  void keep_between_uses() {
    struct Gap {
      double seconds;
      int32_t before, after;
    };
    std::vector<Gap> gaps;
    for (const auto& list : of_value_)
      for (size_t k = 0; k + 1 < list.size(); ++k) {
        const Stay &a = stays_[at(list[k])], &b = stays_[at(list[k + 1])];
        const double seconds = start_[at(b.first)] - start_[at(a.last + 1)];
        if (b.fetched && seconds <= how_.keep_seconds) gaps.push_back({seconds, list[k], list[k + 1]});
      }
    std::stable_sort(gaps.begin(), gaps.end(),
                     [](const Gap& a, const Gap& b) { return a.seconds < b.seconds; });
    std::vector<int32_t> head(stays_.size());  // of the stay that each is part of
    std::iota(head.begin(), head.end(), 0);
    for (const Gap& gap : gaps) {
      const int32_t begin = stays_[at(gap.before)].last + 1, end = stays_[at(gap.after)].first;
      if (!fits(begin, end, bytes(stays_[at(gap.before)].value))) continue;
      take(begin, end, bytes(stays_[at(gap.before)].value));
      stays_[at(gap.after)].joined = true;
    }
    for (const auto& list : of_value_)
      for (size_t k = 1; k < list.size(); ++k) {
        Stay& stay = stays_[at(list[k])];
        if (!stay.joined) continue;
        head[at(list[k])] = head[at(list[k - 1])];
        Stay& whole = stays_[at(head[at(list[k])])];
        whole.last = stay.last;
        whole.changed = std::max(whole.changed, stay.changed);
      }
    std::erase_if(stays_, [](const Stay& stay) { return stay.joined; });
  }

  double copy_seconds(int32_t v, bool in) const {
    const Link& link = p_.links[at(p_.values[at(v)].home)];
    return link.latency_seconds +
           static_cast<double>(bytes(v)) /
               ((in ? link.in_bytes_per_second : link.out_bytes_per_second) * link.busy_rate_factor);
  }

  // The last step that begins no later.
  int32_t step_at(double time, int32_t before) const {
    const auto found = std::upper_bound(start_.begin(), start_.begin() + before + 1, time);
    return found == start_.begin() ? 0 : static_cast<int32_t>(found - start_.begin()) - 1;
  }

  // As late as hides the copies if compute never waited, as early as there is room, and not before the link is
  // free: a fetch that only stands in the queue takes room for nothing.
  void place_fetches() {
    std::vector<int32_t> last_use(p_.values.size(), -1);  // of the stay before
    std::vector<std::vector<int32_t>> by_link(p_.links.size());
    std::stable_sort(stays_.begin(), stays_.end(),
                     [](const Stay& a, const Stay& b) { return a.first < b.first; });
    std::vector<int32_t> earliest(stays_.size(), 0);
    for (size_t i = 0; i < stays_.size(); ++i) {
      Stay& stay = stays_[i];
      earliest[i] = last_use[at(stay.value)] + 1;
      last_use[at(stay.value)] = stay.last;
      if (stay.fetched) by_link[at(p_.values[at(stay.value)].home)].push_back(static_cast<int32_t>(i));
    }
    for (const auto& list : by_link) {
      std::vector<int32_t> wanted(list.size());
      double free_until = std::numeric_limits<double>::infinity();
      for (size_t k = list.size(); k-- > 0;) {
        const Stay& stay = stays_[at(list[k])];
        free_until = std::min(free_until, start_[at(stay.first)]) - copy_seconds(stay.value, true);
        wanted[k] = step_at(free_until, stay.first);
      }
      double done = 0, late = 0;  // the link is free from then on; compute has waited for so long
      for (size_t k = 0; k < list.size(); ++k) {
        Stay& stay = stays_[at(list[k])];
        int32_t from = std::max({wanted[k], earliest[at(list[k])], step_at(done - late, stay.first)});
        from = std::min(from, stay.first);
        int32_t issue = stay.first;
        while (issue > from && alive_[at(issue - 1)] + bytes(stay.value) <= how_.capacity_bytes) --issue;
        take(issue, stay.first, bytes(stay.value));
        stay.issue = issue;
        done = std::max(done, start_[at(issue)] + late) + copy_seconds(stay.value, true);
        late = std::max(late, done - start_[at(stay.first)]);
      }
    }
  }

  // ---- the steps, with what really happens on the lanes

  void emit(StepKind kind, int32_t value, int32_t tier) {
    Step& step = out_.steps.emplace_back();
    step.kind = kind;
    step.index = value;
    step.tier = tier;
  }

  void let_go(int32_t v) {
    emit(StepKind::kWaitOut, v, p_.values[at(v)].home);
    now_ = std::max(now_, lanes_[at(p_.values[at(v)].home)].finish(Lanes::kOut, state_[at(v)].out));
    emit(StepKind::kFree, v, -1);
    state_[at(v)].out = -1;
    leaving_bytes_ -= bytes(v);
  }
  void let_go_first() {
    const int32_t v = leaving_.front();
    leaving_.erase(leaving_.begin());
    let_go(v);
  }

  void fetch(const Stay& stay) {
    const int32_t v = stay.value, home = p_.values[at(v)].home;
    if (const auto leaving = std::find(leaving_.begin(), leaving_.end(), v); leaving != leaving_.end()) {
      leaving_.erase(leaving);
      let_go(v);
    }
    emit(StepKind::kIn, v, home);
    state_[at(v)].in = lanes_[at(home)].issue(Lanes::kIn, bytes(v), now_);
  }

  // A step of the plan without homes.
  void activation(const Step& step) {
    out_.steps.push_back(step);
    State& state = state_[at(step.index)];
    if (step.kind == StepKind::kOut || step.kind == StepKind::kIn) {
      const auto way = step.kind == StepKind::kOut ? Lanes::kOut : Lanes::kIn;
      state.activation = lanes_[at(step.tier)].issue(way, bytes(step.index), now_);
      state.way = step.kind;
      state.tier = step.tier;
    } else if (step.kind == StepKind::kWaitOut || step.kind == StepKind::kWaitIn) {
      const auto way = state.way == StepKind::kOut ? Lanes::kOut : Lanes::kIn;
      now_ = std::max(now_, lanes_[at(state.tier)].finish(way, state.activation));
    }
  }

  void build() {
    const auto count = static_cast<int32_t>(stays_.size());
    std::vector<int32_t> by_issue, by_changed, by_last;
    for (int32_t i = 0; i < count; ++i) {
      if (stays_[at(i)].fetched) by_issue.push_back(i);
      if (stays_[at(i)].changed >= 0) by_changed.push_back(i);
      by_last.push_back(i);
    }
    const auto sort_by = [&](std::vector<int32_t>& list, auto key) {
      std::stable_sort(list.begin(), list.end(),
                       [&](int32_t a, int32_t b) { return key(stays_[at(a)]) < key(stays_[at(b)]); });
    };
    sort_by(by_issue, [](const Stay& s) { return s.issue; });
    sort_by(by_changed, [](const Stay& s) { return s.changed; });
    sort_by(by_last, [](const Stay& s) { return s.last; });
    size_t issue = 0, first = 0, changed = 0, last = 0;
    for (int32_t s = 0; s < steps(); ++s) {
      while (!leaving_.empty() && alive_[at(s)] + leaving_bytes_ > how_.capacity_bytes) let_go_first();
      for (; issue < by_issue.size() && stays_[at(by_issue[issue])].issue == s; ++issue)
        fetch(stays_[at(by_issue[issue])]);
      if (!is_run(s)) {
        activation(plan_.steps[at(s)]);
        continue;
      }
      for (; first < stays_.size() && stays_[first].first == s; ++first)
        if (stays_[first].fetched) wait_in(stays_[first].value);
      out_.steps.push_back(plan_.steps[at(s)]);
      now_ = compute_end(lanes_, now_, p_.ops[at(plan_.steps[at(s)].index)].seconds);
      for (; changed < by_changed.size() && stays_[at(by_changed[changed])].changed == s; ++changed)
        send(stays_[at(by_changed[changed])].value);
      for (; last < by_last.size() && stays_[at(by_last[last])].last == s; ++last)
        end(stays_[at(by_last[last])]);
      settle();
    }
    while (!leaving_.empty()) let_go_first();
    out_.seconds = now_;
    for (Lanes& lanes : lanes_) {
      lanes.advance(Lanes::kNever);
      out_.seconds = std::max(out_.seconds, lanes.last_end());
    }
  }

  void wait_in(int32_t v) {
    emit(StepKind::kWaitIn, v, p_.values[at(v)].home);
    now_ = std::max(now_, lanes_[at(p_.values[at(v)].home)].finish(Lanes::kIn, state_[at(v)].in));
  }
  void send(int32_t v) {
    const int32_t home = p_.values[at(v)].home;
    emit(StepKind::kOut, v, home);
    state_[at(v)].out = lanes_[at(home)].issue(Lanes::kOut, bytes(v), now_);
  }
  void end(const Stay& stay) {
    if (stay.changed < 0) return emit(StepKind::kFree, stay.value, -1);
    leaving_.push_back(stay.value);
    leaving_bytes_ += bytes(stay.value);
  }
  // What has gone by now.
  void settle() {
    for (Lanes& lanes : lanes_) lanes.advance(now_);
    while (!leaving_.empty()) {
      const int32_t v = leaving_.front();
      if (!(lanes_[at(p_.values[at(v)].home)].end(Lanes::kOut, state_[at(v)].out) <= now_)) break;
      let_go_first();
    }
  }

  const Problem& p_;
  const Plan& plan_;
  const Streaming how_;
  const std::vector<std::vector<HomeUse>> uses_;  // per op
  std::vector<State> state_;
  std::vector<double> start_;   // per step, and the end
  std::vector<int64_t> alive_;  // per step
  std::vector<Stay> stays_;
  std::vector<std::vector<int32_t>> of_value_;  // stays, in order
  std::vector<Lanes> lanes_;
  std::vector<int32_t> leaving_;  // values past their last use, on their way home
  int64_t leaving_bytes_ = 0;
  double now_ = 0;
  Streamed out_;
};

}  // namespace

Streamed stream_homes(const Problem& resolved, const Problem& without, const Plan& plan,
                      const Streaming& how) {
  return Streamer(resolved, without, plan, how).run();
}

std::vector<int32_t> stale_runs(const Problem& p, const Plan& plan) {
  std::vector<bool> changed(p.values.size(), false), ran(p.ops.size(), false);
  std::vector<int32_t> stale;
  for (const Step& step : plan.steps) {
    if (step.kind != StepKind::kRun) continue;
    const Op& op = p.ops[static_cast<size_t>(step.index)];
    const bool again = ran[static_cast<size_t>(step.index)];
    ran[static_cast<size_t>(step.index)] = true;
    if (again && std::any_of(op.inputs.begin(), op.inputs.end(),
                             [&](int32_t v) { return changed[static_cast<size_t>(v)]; }))
      stale.push_back(step.index);
    for (const int32_t v : op.outputs)
      if (p.values[static_cast<size_t>(v)].home >= 0) changed[static_cast<size_t>(v)] = true;
  }
  return stale;
}

}  // namespace cairn::plan
