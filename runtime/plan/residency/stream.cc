#include "runtime/plan/residency/stream.h"

#include <algorithm>
#include <optional>

#include "runtime/base/checked.h"
#include "runtime/plan/pricing/lanes.h"
#include "runtime/plan/residency/stays.h"

namespace cairn::plan {
namespace {

constexpr int kSimulations = 4;  // each places its fetches by the times of the one before

class Streamer {
 public:
  Streamer(const Problem& p, const Plan& plan, const Streaming& how)
      : p_(p),
        plan_(plan),
        how_(how),
        stays_(p, plan, how.capacity_bytes, how.reserved_bytes),
        link_(p.values.size(), -1) {
    kept_ = stays_.keep_between_uses(how.keep_seconds);
    for (const Stay& stay : stays_.all()) {
      if (stay.link >= 0) link_[at(stay.value)] = stay.link;
    }
  }

  Streamed run() && {
    std::optional<Streamed> best;
    for (int round = 0; round < kSimulations; ++round) {
      if (!stays_.place_fetches(round > 0 ? &times_ : nullptr) && round > 0) break;
      build();
      if (!best || out_.seconds < best->seconds) best = std::move(out_);
    }
    best->kept = kept_;
    return std::move(*best);
  }
  size_t kept() const { return kept_; }

 private:
  struct State {
    int32_t out = -1, in = -1, activation = -1;  // numbers of copies in their queues
    StepKind way = StepKind::kOut;               // direction of the activation's copy
    int32_t tier = -1;
    double expected = 0;  // expected end of the copy out
  };

  int64_t bytes(int32_t v) const { return p_.values[at(v)].bytes; }
  int32_t steps() const { return static_cast<int32_t>(plan_.steps.size()); }
  bool is_run(int32_t s) const { return plan_.steps[at(s)].kind == StepKind::kRun; }

  // ---- the steps, as they happen on the lanes

  Step& add(const Step& step) {
    out_.from.push_back(step_);
    return out_.steps.emplace_back(step);
  }
  void emit(StepKind kind, int32_t value, int32_t tier) {
    Step& step = add({});
    step.kind = kind;
    step.index = value;
    step.tier = tier;
  }

  void let_go(int32_t v) {
    emit(StepKind::kWaitOut, v, link_[at(v)]);
    now_ = std::max(now_, lanes_[at(link_[at(v)])].finish(Lanes::kOut, state_[at(v)].out));
    emit(StepKind::kFree, v, -1);
    state_[at(v)].out = -1;
    leaving_bytes_ -= bytes(v);
  }
  void let_go(std::vector<int32_t>& leaving, size_t k) {
    const int32_t v = leaving[k];
    leaving.erase(leaving.begin() + static_cast<std::ptrdiff_t>(k));
    let_go(v);
  }
  // Frees the value whose copy out is likely to end first: the oldest of each link.
  void let_go_first() {
    std::vector<int32_t>* first = nullptr;
    for (auto& leaving : leaving_)
      if (!leaving.empty() && (!first || state_[at(leaving[0])].expected < state_[at((*first)[0])].expected))
        first = &leaving;
    let_go(*first, 0);
  }
  void let_go_of(int32_t v) {
    if (link_[at(v)] < 0) return;
    std::vector<int32_t>& leaving = leaving_[at(link_[at(v)])];
    const auto found = std::find(leaving.begin(), leaving.end(), v);
    if (found != leaving.end()) let_go(leaving, static_cast<size_t>(found - leaving.begin()));
  }

  void fetch(const Stay& stay) {
    const int32_t v = stay.value;
    let_go_of(v);
    emit(StepKind::kIn, v, stay.link);
    state_[at(v)].in = lanes_[at(stay.link)].issue(Lanes::kIn, bytes(v), now_);
  }

  // Passes on a step of the plan without tier-resident values that is not a run.
  void activation(const Step& step) {
    if (stays_.retimed(step.index)) return;
    add(step);
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

  void restart() {
    out_ = {};
    out_.steps.reserve(2 * plan_.steps.size());
    state_.assign(p_.values.size(), {});
    lanes_.clear();
    for (const Link& link : p_.links) lanes_.emplace_back(link);
    leaving_.assign(p_.links.size(), {});
    free_.assign(p_.links.size(), 0);
    leaving_bytes_ = 0;
    now_ = 0;
    times_.start.clear();
    sent_.assign(stays_.all().size(), -1);
  }

  void build() {
    restart();
    const std::vector<Stay>& stays = stays_.all();
    const std::vector<int64_t>& alive = stays_.alive();
    std::vector<int32_t> by_issue, by_changed, by_last;
    for (int32_t i = 0; i < static_cast<int32_t>(stays.size()); ++i) {
      if (stays[at(i)].fetched) by_issue.push_back(i);
      if (stays[at(i)].changed >= 0) by_changed.push_back(i);
      by_last.push_back(i);
    }
    const auto sort_by = [&](std::vector<int32_t>& list, auto key) {
      std::stable_sort(list.begin(), list.end(),
                       [&](int32_t a, int32_t b) { return key(stays[at(a)]) < key(stays[at(b)]); });
    };
    sort_by(by_issue, [](const Stay& s) { return s.issue; });
    sort_by(by_changed, [](const Stay& s) { return s.changed; });
    sort_by(by_last, [](const Stay& s) { return s.last; });
    size_t issue = 0, first = 0, changed = 0, last = 0;
    for (int32_t s = 0; s < steps(); ++s) {
      step_ = s;
      while (leaving_bytes_ > 0 && alive[at(s)] + leaving_bytes_ > stays_.room(s)) let_go_first();
      times_.start.push_back(now_);
      for (; issue < by_issue.size() && stays[at(by_issue[issue])].issue == s; ++issue)
        fetch(stays[at(by_issue[issue])]);
      if (!is_run(s)) {
        activation(plan_.steps[at(s)]);
        continue;
      }
      for (; first < stays.size() && stays[first].first == s; ++first)
        stays[first].fetched ? wait_in(stays[first]) : let_go_of(stays[first].value);
      add(plan_.steps[at(s)]);
      now_ = compute_end(lanes_, now_, p_.ops[at(plan_.steps[at(s)].index)].seconds);
      for (; changed < by_changed.size() && stays[at(by_changed[changed])].changed == s; ++changed)
        send(by_changed[changed]);
      for (; last < by_last.size() && stays[at(by_last[last])].last == s; ++last)
        end(stays[at(by_last[last])]);
      settle();
    }
    times_.start.push_back(now_);
    for (auto& leaving : leaving_)
      while (!leaving.empty()) let_go(leaving, 0);
    out_.seconds = now_;
    for (Lanes& lanes : lanes_) {
      lanes.advance(Lanes::kNever);
      out_.seconds = std::max(out_.seconds, lanes.last_end());
    }
    times_.gone.assign(stays.size(), 0);
    for (size_t i = 0; i < stays.size(); ++i)
      if (sent_[i] >= 0) times_.gone[i] = lanes_[at(stays[i].link)].end(Lanes::kOut, sent_[i]);
  }

  void wait_in(const Stay& stay) {
    const int32_t v = stay.value;
    emit(StepKind::kWaitIn, v, stay.link);
    now_ = std::max(now_, lanes_[at(stay.link)].finish(Lanes::kIn, state_[at(v)].in));
    if (stays_.retimed(v)) emit(StepKind::kDrop, v, stay.link);
  }
  void send(int32_t i) {
    const Stay& stay = stays_.all()[at(i)];
    State& state = state_[at(stay.value)];
    emit(StepKind::kOut, stay.value, stay.link);
    sent_[at(i)] = state.out = lanes_[at(stay.link)].issue(Lanes::kOut, bytes(stay.value), now_);
    double& free = free_[at(stay.link)];
    free = std::max(free, now_) +
           static_cast<double>(bytes(stay.value)) / p_.links[at(stay.link)].out_bytes_per_second;
    state.expected = free;
  }
  void end(const Stay& stay) {
    if (stay.changed < 0) return emit(StepKind::kFree, stay.value, -1);
    leaving_[at(stay.link)].push_back(stay.value);
    leaving_bytes_ += bytes(stay.value);
  }
  // Frees the values whose copies out have ended by now.
  void settle() {
    for (Lanes& lanes : lanes_) lanes.advance(now_);
    for (size_t l = 0; l < lanes_.size(); ++l)
      while (!leaving_[l].empty() && lanes_[l].end(Lanes::kOut, state_[at(leaving_[l].front())].out) <= now_)
        let_go(leaving_[l], 0);
  }

  const Problem& p_;
  const Plan& plan_;
  const Streaming how_;
  Stays stays_;
  size_t kept_ = 0;
  std::vector<int32_t> link_;  // per value: the link of its residencies
  std::vector<State> state_;
  std::vector<Lanes> lanes_;
  std::vector<std::vector<int32_t>> leaving_;  // per link: values past their last use, on their way out
  std::vector<double> free_;                   // per link: when its copies out are likely to have ended
  std::vector<int32_t> sent_;                  // per residency: the number of its copy out
  int64_t leaving_bytes_ = 0;
  int32_t step_ = 0;  // the present step of the plan
  double now_ = 0;
  StreamTimes times_;
  Streamed out_;
};

}  // namespace

Streamed stream_homes(const Problem& resolved, const Plan& plan, const Streaming& how, const Streamed* less) {
  Streamer streamer(resolved, plan, how);
  if (less && less->kept == streamer.kept()) return *less;
  return std::move(streamer).run();
}

std::vector<int32_t> stale_runs(const Problem& p, const Plan& plan) {
  // Ops that change a tier-resident value run once, and all ops run in their order the first time.
  std::vector<int32_t> changed_by(p.values.size(), -1);
  std::vector<bool> ran(p.ops.size(), false);
  std::vector<int32_t> stale;
  for (const Step& step : plan.steps) {
    if (step.kind != StepKind::kRun) continue;
    const Op& op = p.ops[at(step.index)];
    if (ran[at(step.index)] && std::any_of(op.inputs.begin(), op.inputs.end(),
                                           [&](int32_t v) { return changed_by[at(v)] > step.index; }))
      stale.push_back(step.index);
    ran[at(step.index)] = true;
    for (const int32_t v : op.outputs)
      if (p.values[at(v)].home >= 0) changed_by[at(v)] = step.index;
  }
  return stale;
}

}  // namespace cairn::plan
