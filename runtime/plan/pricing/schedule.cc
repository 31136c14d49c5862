#include "runtime/plan/pricing/schedule.h"

#include <algorithm>

#include "runtime/plan/pricing/lanes.h"

namespace cairn::plan {
namespace {

// Device state of a value.
enum class At : uint8_t { kOff, kOn, kComing };
// State of a value's copy in a tier. kGoing: on its way out; kThere: complete, and waited for.
enum class CopyAt : uint8_t { kNone, kGoing, kThere };

class Builder {
 public:
  Builder(const Problem& p, const Index& index, const Sequence& sequence, Pace pace, bool with_steps)
      : p_(p),
        index_(index),
        s_(sequence),
        pace_(pace),
        with_steps_(with_steps),
        values_(p.values.size()),
        leaving_(p.links.size()),
        tier_bytes_(p.links.size(), 0) {
    out_.tier_peak_bytes.assign(p.links.size(), 0);
    for (const Link& link : p.links) lanes_.emplace_back(link);
    out_.peak_bytes = alive_ = index.persistent_bytes;
    if (with_steps) out_.steps.reserve(s_.ops.size() + 2 * s_.residencies.size());
  }

  Schedule build() && {
    group_stays();
    place_fetches();
    for (size_t item = 0; item < s_.ops.size(); ++item) step(static_cast<int32_t>(item));
    out_.seconds = now_;
    for (Lanes& lanes : lanes_) {
      lanes.advance(Lanes::kNever);
      out_.seconds = std::max(out_.seconds, lanes.last_end());
    }
    return std::move(out_);
  }

 private:
  struct State {
    At at = At::kOff;
    CopyAt copy_at = CopyAt::kNone;
    bool lingering = false;  // past its residency, but not off the device yet
    int16_t tier = -1;       // link of the copy
    int32_t copy = -1;       // its number in its queue
  };
  struct Queue {
    std::vector<int32_t> values;
    size_t head = 0;
    bool empty() const { return head == values.size(); }
    int32_t front() const { return values[head]; }
  };
  struct Fetch {
    int32_t value, tier, need, earliest, issue;  // need, earliest, issue: items
  };

  int64_t bytes(int32_t v) const { return p_.values[v].bytes; }

  void emit(StepKind kind, int32_t index, int32_t tier = -1) {
    if (!with_steps_) return;
    Step& step = out_.steps.emplace_back();
    step.kind = kind;
    step.index = index;
    step.tier = tier;
  }

  void note_peak(int64_t extra) {
    if (alive_ + extra <= out_.peak_bytes) return;
    out_.peak_bytes = alive_ + extra;
    out_.peak_step = with_steps_ ? static_cast<int32_t>(out_.steps.size()) - 1 : -1;
    out_.peak_item = item_;
  }

  void run(int32_t op) {
    for (int32_t v : index_.outputs[op]) {  // written in place: not while a copy is in flight
      if (values_[v].at == At::kComing) wait_in(v);
      if (values_[v].at == At::kOn && values_[v].copy_at == CopyAt::kGoing) wait_out(v);
    }
    make_room_for_run(op);
    emit(StepKind::kRun, op);
    for (int32_t v : index_.outputs[op]) {
      stop_lingering(v);
      if (values_[v].at != At::kOff) continue;
      values_[v].at = At::kOn;
      alive_ += bytes(v);
    }
    note_peak(p_.ops[op].workspace_bytes);
    now_ = compute_end(lanes_, now_, p_.ops[op].seconds);
  }

  void start_out(int32_t v, int16_t tier) {
    State& state = values_[v];
    if (state.copy_at != CopyAt::kNone) return;
    // Without room in the tier the value is kept on the device.
    if (tier_bytes_[tier] + bytes(v) > p_.links[tier].capacity_bytes) return;
    tier_bytes_[tier] += bytes(v);
    out_.tier_peak_bytes[tier] = std::max(out_.tier_peak_bytes[tier], tier_bytes_[tier]);
    state.tier = tier;
    emit(StepKind::kOut, v, tier);
    state.copy = lanes_[tier].issue(Lanes::kOut, bytes(v), now_);
    state.copy_at = CopyAt::kGoing;
    leaving_[tier].values.push_back(v);
  }

  void wait_out(int32_t v) {
    State& state = values_[v];
    emit(StepKind::kWaitOut, v, state.tier);
    now_ = std::max(now_, lanes_[state.tier].finish(Lanes::kOut, state.copy));
    state.copy_at = CopyAt::kThere;
  }

  void wait_in(int32_t v) {
    State& state = values_[v];
    emit(StepKind::kWaitIn, v, state.tier);
    now_ = std::max(now_, lanes_[state.tier].finish(Lanes::kIn, state.copy));
    state.at = At::kOn;
    drop(v);
  }

  void drop(int32_t v) {
    State& state = values_[v];
    emit(StepKind::kDrop, v, state.tier);
    tier_bytes_[state.tier] -= bytes(v);
    state.copy_at = CopyAt::kNone;
  }

  void take_off(int32_t v) {
    if (values_[v].copy_at == CopyAt::kGoing) wait_out(v);
    emit(StepKind::kFree, v);
    values_[v].at = At::kOff;
    alive_ -= bytes(v);
  }

  void stop_lingering(int32_t v) {
    if (!values_[v].lingering) return;
    values_[v].lingering = false;
    lingering_bytes_ -= bytes(v);
  }

  // Ends the residency. An offloaded value first waits for its copy; bytes of such values are the window.
  void end(const Residency& residency) {
    const int32_t v = residency.value;
    State& state = values_[v];
    if (state.at != At::kOn) return;
    if (residency.to < 0) {
      take_off(v);
      if (state.copy_at == CopyAt::kThere) drop(v);  // the copy was never fetched
    } else if (state.copy_at == CopyAt::kThere) {
      take_off(v);
    } else if (state.copy_at == CopyAt::kGoing) {
      state.lingering = true;
      lingering_bytes_ += bytes(v);
    }  // else it found no room, and was kept
  }

  void pop_leaving(size_t tier) {
    const int32_t v = leaving_[tier].front();
    ++leaving_[tier].head;
    if (values_[v].copy_at == CopyAt::kGoing) wait_out(v);
    if (!values_[v].lingering) return;
    stop_lingering(v);
    if (values_[v].at == At::kOn) take_off(v);
  }

  // Waits for the oldest copies out, of one link after the other.
  template <class TooMuch>
  void wait_while(TooMuch too_much) {
    for (size_t t = 0; t < lanes_.size(); ++t)
      while (!leaving_[t].empty() && too_much()) pop_leaving(t);
  }

  // Waits until so many more bytes are within the limit.
  void make_room(int64_t more) {
    wait_while([&] { return lingering_bytes_ > 0 && alive_ > pace_.limit_bytes - more; });
  }

  void make_room_for_run(int32_t op) {
    if (pace_.limit_bytes == kNoLimit) return;
    int64_t more = p_.ops[op].workspace_bytes;
    for (int32_t v : index_.outputs[op]) {
      stop_lingering(v);
      if (values_[v].at == At::kOff) more += bytes(v);
    }
    make_room(more);
  }

  // Frees values whose copies out have ended. If more bytes than the window wait, waits for the oldest copies.
  void settle() {
    for (size_t t = 0; t < lanes_.size(); ++t) {
      lanes_[t].advance(now_);
      while (!leaving_[t].empty() && (values_[leaving_[t].front()].copy_at != CopyAt::kGoing ||
                                      lanes_[t].end(Lanes::kOut, values_[leaving_[t].front()].copy) <= now_))
        pop_leaving(t);
    }
    wait_while([&] { return lingering_bytes_ > pace_.window_bytes; });
  }

  bool must_leave(int32_t v) const {
    const int32_t scope = index_.scope[index_.maker[v]];
    return scope >= 0 && p_.regions[scope].policy == Policy::kOffload;
  }

  // At the beginning of backward, waits for values that a region's policy offloads. Other copies may be late.
  void turn_around() {
    for (size_t t = 0; t < lanes_.size(); ++t) {
      size_t end = leaving_[t].values.size();
      while (end > leaving_[t].head && !must_leave(leaving_[t].values[end - 1])) --end;
      while (leaving_[t].head < end) pop_leaving(t);
    }
  }

  // Residencies by the item they end at; and offloaded ones by the item they begin at.
  void group_stays() {
    ends_.assign(s_.ops.size() + 1, 0);
    for (const Residency& residency : s_.residencies) ++ends_[residency.end];
    int32_t sum = 0;
    for (int32_t& count : ends_) {
      sum += count;
      count = sum;
    }
    by_end_.resize(s_.residencies.size());
    for (size_t i = s_.residencies.size(); i-- > 0;)
      by_end_[--ends_[s_.residencies[i].end]] = static_cast<int32_t>(i);
    for (const Residency& residency : s_.residencies)
      if (residency.to >= 0) outs_.push_back({residency.begin, &residency});
    std::stable_sort(outs_.begin(), outs_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
  }

  static constexpr int64_t kNoLimit = Pace{}.limit_bytes;

  // Each offloaded value is fetched as late as possible for its copy to be hidden, if compute never stalled. Copies
  // of one link run one after the other. Walks from the last need to the first, then forward to keep the window.
  void place_fetches() {
    const auto items = static_cast<int32_t>(s_.ops.size());
    std::vector<std::vector<Fetch>> fetches(p_.links.size());
    std::vector<int32_t> gone(p_.values.size(), 0);
    for (const Residency& residency : s_.residencies) {
      if (residency.from >= 0)
        fetches[residency.from].push_back({residency.value, residency.from, residency.begin,
                                           std::max(gone[residency.value], first_backward()),
                                           residency.begin});
      gone[residency.value] = residency.end + 1;
    }
    if (std::all_of(fetches.begin(), fetches.end(), [](const auto& list) { return list.empty(); })) return;
    std::vector<double> start(s_.ops.size() + 1, 0);
    for (int32_t j = 0; j < items; ++j) start[j + 1] = start[j] + p_.ops[s_.ops[j]].seconds;
    for (size_t t = 0; t < fetches.size(); ++t) {
      auto& list = fetches[t];
      std::stable_sort(list.begin(), list.end(),
                       [](const Fetch& a, const Fetch& b) { return a.need < b.need; });
      const Link& link = p_.links[t];
      double free_until = Lanes::kNever;
      for (size_t k = list.size(); k-- > 0;) {
        const double copy = link.latency_seconds + static_cast<double>(bytes(list[k].value)) /
                                                       (link.in_bytes_per_second * link.busy_rate_factor);
        free_until = std::min(free_until, start[list[k].need]) - copy;
        const auto after = std::upper_bound(start.begin(), start.begin() + list[k].need + 1, free_until);
        const int32_t issue = after == start.begin() ? 0 : static_cast<int32_t>(after - start.begin()) - 1;
        list[k].issue = std::max(issue, std::min(list[k].earliest, list[k].need));
      }
      keep_window(list);
      keep_limit(list);
      fetches_.insert(fetches_.end(), list.begin(), list.end());
    }
    std::stable_sort(fetches_.begin(), fetches_.end(),
                     [](const Fetch& a, const Fetch& b) { return a.issue < b.issue; });
  }

  int32_t first_backward() const {
    const auto at = std::lower_bound(s_.anchor.begin(), s_.anchor.end(), p_.backward_begin);
    return static_cast<int32_t>(at - s_.anchor.begin());
  }

  void keep_window(std::vector<Fetch>& list) const {
    int64_t ahead = 0;
    size_t first = 0;
    int32_t earliest = 0;
    for (size_t k = 0; k < list.size(); ++k) {
      ahead += bytes(list[k].value);
      while (ahead > pace_.window_bytes && first <= k) {
        earliest = std::max(earliest, list[first].need);
        ahead -= bytes(list[first++].value);
      }
      list[k].issue = std::max(list[k].issue, std::min(earliest, list[k].need));
    }
  }

  // Values fetched early, together with all other values alive, are kept within the limit.
  void keep_limit(std::vector<Fetch>& list) {
    if (pace_.limit_bytes == kNoLimit) return;
    if (live_.empty()) live_ = s_.live;
    for (Fetch& f : list) {
      int32_t issue = f.need;
      while (issue > f.issue && live_[issue - 1] <= pace_.limit_bytes - bytes(f.value))
        live_[--issue] += bytes(f.value);
      f.issue = issue;
    }
  }

  void fetch(const Fetch& f) {
    const int32_t v = f.value;
    stop_lingering(v);  // its bytes are still on the device
    State& state = values_[v];
    if (state.at != At::kOff || state.copy_at == CopyAt::kNone) return;
    make_room(bytes(v));
    emit(StepKind::kIn, v, state.tier);
    state.at = At::kComing;
    alive_ += bytes(v);
    note_peak(0);
    state.copy = lanes_[state.tier].issue(Lanes::kIn, bytes(v), now_);
  }

  void step(int32_t item) {
    item_ = item;
    const int32_t op = s_.ops[item];
    if (s_.anchor[item] >= p_.backward_begin && !turned_) {
      turned_ = true;
      turn_around();
    }
    for (; next_fetch_ < fetches_.size() && fetches_[next_fetch_].issue == item; ++next_fetch_)
      fetch(fetches_[next_fetch_]);
    for (int32_t v : index_.inputs[op])
      if (values_[v].at == At::kComing) wait_in(v);
    run(op);
    for (; next_out_ < outs_.size() && outs_[next_out_].first == item; ++next_out_)
      start_out(outs_[next_out_].second->value, outs_[next_out_].second->to);
    for (int32_t k = ends_[item]; k < ends_[item + 1]; ++k) end(s_.residencies[by_end_[k]]);
    settle();
  }

  const Problem& p_;
  const Index& index_;
  const Sequence& s_;
  Pace pace_;
  bool with_steps_;
  Schedule out_;
  std::vector<State> values_;
  std::vector<Lanes> lanes_;
  std::vector<Queue> leaving_;  // per link: copies going out, in order of issue
  int64_t lingering_bytes_ = 0, alive_ = 0;
  std::vector<int64_t> tier_bytes_, live_;  // live_: per item, with values fetched early
  std::vector<int32_t> by_end_, ends_;  // Residencies by end: by_end_[ends_[i]] ... by_end_[ends_[i + 1] - 1]
  std::vector<std::pair<int32_t, const Residency*>> outs_;
  size_t next_out_ = 0;
  std::vector<Fetch> fetches_;  // by the item before which they start
  size_t next_fetch_ = 0;
  int32_t item_ = -1;
  bool turned_ = false;
  double now_ = 0;
};

}  // namespace

Schedule make_schedule(const Problem& p, const Index& index, const Sequence& sequence, Pace pace,
                       bool with_steps) {
  return Builder(p, index, sequence, pace, with_steps).build();
}

}  // namespace cairn::plan
