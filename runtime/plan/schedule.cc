#include "runtime/plan/schedule.h"

#include <algorithm>
#include <deque>

#include "runtime/plan/lanes.h"

namespace cairn::plan {
namespace {

// Device state of a value.
enum class At : uint8_t { kOff, kOn, kComing };
// State of its copy in a tier. kGoing: on its way out; kThere: complete, waited for.
enum class CopyAt : uint8_t { kNone, kGoing, kThere };

class Builder {
 public:
  Builder(const Problem& p, const Index& index, Resolved resolved, Pace pace)
      : p_(p),
        index_(index),
        r_(std::move(resolved)),
        pace_(pace),
        at_(p.values.size(), At::kOff),
        copy_at_(p.values.size(), CopyAt::kNone),
        copy_(p.values.size(), -1),
        leaving_(p.links.size()),
        lingering_(p.values.size(), 0),
        tier_bytes_(p.links.size(), 0) {
    out_.tier_peak_bytes.assign(p.links.size(), 0);
    for (const Link& link : p.links) lanes_.emplace_back(link);
    out_.peak_bytes = alive_ = index.persistent_bytes;
    out_.steps.reserve(p.ops.size() * 5);
  }

  Schedule build() && {
    forward();
    order_backward();
    place_fetches();
    backward();
    out_.seconds = now_;
    for (Lanes& lanes : lanes_) {
      lanes.advance(Lanes::kNever);
      out_.seconds = std::max(out_.seconds, lanes.last_end());
    }
    return std::move(out_);
  }

 private:
  struct Fetch {
    int32_t value, need, issue;  // items of order_
  };

  int64_t bytes(int32_t v) const { return p_.values[v].bytes; }

  void emit(StepKind kind, int32_t index, int32_t tier = -1) {
    Step step;
    step.kind = kind;
    step.index = index;
    step.tier = tier;
    out_.steps.push_back(std::move(step));
  }

  void note_peak(int64_t extra) {
    if (alive_ + extra <= out_.peak_bytes) return;
    out_.peak_bytes = alive_ + extra;
    out_.peak_step = static_cast<int32_t>(out_.steps.size()) - 1;
  }

  void run(int32_t op) {
    emit(StepKind::kRun, op);
    for (int32_t v : index_.outputs[op])
      if (at_[v] == At::kOff) {
        at_[v] = At::kOn;
        alive_ += bytes(v);
      }
    note_peak(p_.ops[op].workspace_bytes);
    now_ += p_.ops[op].seconds;
  }

  void start_out(int32_t v) {
    const int32_t tier = r_.choices[v];
    if (tier_bytes_[tier] + bytes(v) > p_.links[tier].capacity_bytes) {
      r_.choices[v] = kKeepIt;  // no room in the tier: stays
      return;
    }
    tier_bytes_[tier] += bytes(v);
    out_.tier_peak_bytes[tier] = std::max(out_.tier_peak_bytes[tier], tier_bytes_[tier]);
    emit(StepKind::kOut, v, tier);
    copy_[v] = lanes_[tier].issue(Lanes::kOut, bytes(v), now_);
    copy_at_[v] = CopyAt::kGoing;
    leaving_[tier].push_back(v);
  }

  void wait_out(int32_t v) {
    emit(StepKind::kWaitOut, v, r_.choices[v]);
    now_ = std::max(now_, lanes_[r_.choices[v]].finish(Lanes::kOut, copy_[v]));
    copy_at_[v] = CopyAt::kThere;
  }

  void drop(int32_t v) {
    emit(StepKind::kDrop, v, r_.choices[v]);
    tier_bytes_[r_.choices[v]] -= bytes(v);
    copy_at_[v] = CopyAt::kNone;
  }

  void take_off(int32_t v) {
    if (copy_at_[v] == CopyAt::kGoing) wait_out(v);
    emit(StepKind::kFree, v);
    at_[v] = At::kOff;
    alive_ -= bytes(v);
  }

  // Frees a value nobody needs again; a copy of it that was never fetched goes as well.
  void end(int32_t v) {
    take_off(v);
    if (copy_at_[v] == CopyAt::kThere) drop(v);
  }

  // A value past its last forward use waits for its copy; bytes of such values are the window.
  void past_forward(int32_t v) {
    if (copy_at_[v] == CopyAt::kThere) {
      take_off(v);
      return;
    }
    lingering_[v] = 1;
    lingering_bytes_ += bytes(v);
  }

  void leave(int32_t v) {
    if (copy_at_[v] == CopyAt::kGoing) wait_out(v);
    if (!lingering_[v]) return;
    lingering_[v] = 0;
    lingering_bytes_ -= bytes(v);
    if (at_[v] == At::kOn) take_off(v);
  }

  // Lets go what has been copied by now; beyond the window, waits for the oldest copies.
  void settle() {
    for (size_t t = 0; t < lanes_.size(); ++t) {
      lanes_[t].advance(now_);
      while (!leaving_[t].empty() && lanes_[t].end(Lanes::kOut, copy_[leaving_[t].front()]) <= now_)
        pop_leaving(t);
    }
    for (size_t t = 0; t < lanes_.size(); ++t)
      while (lingering_bytes_ > pace_.window_bytes && !leaving_[t].empty()) pop_leaving(t);
  }

  void pop_leaving(size_t tier) {
    const int32_t v = leaving_[tier].front();
    leaving_[tier].pop_front();
    leave(v);
  }

  void forward() {
    for (int32_t i = 0; i < p_.turnaround; ++i) {
      run(i);
      for (int32_t v : index_.outputs[i])
        if (r_.choices[v] >= 0) start_out(v);
      for (int32_t v : index_.inputs[i]) forward_end(v, i);
      for (int32_t v : index_.outputs[i]) forward_end(v, i);
      settle();
    }
    // What a region's policy sends away is gone at the turnaround; other copies may be late.
    for (size_t t = 0; t < lanes_.size(); ++t) {
      size_t count = leaving_[t].size();
      while (count > 0 && !must_leave(leaving_[t][count - 1])) --count;
      while (count-- > 0) pop_leaving(t);
    }
  }

  bool must_leave(int32_t v) const {
    const int32_t scope = index_.scope[index_.maker[v]];
    return scope >= 0 && p_.regions[scope].policy == Policy::kOffload;
  }

  void forward_end(int32_t v, int32_t op) {
    if (index_.last_forward[v] != op || at_[v] != At::kOn) return;
    if (r_.later_uses[v] == 0 || r_.choices[v] == kRemake)
      take_off(v);
    else if (r_.choices[v] >= 0)
      past_forward(v);
  }

  // The order of all runs from the turnaround on: before an op come the ops its inputs must be made again by.
  void order_backward() {
    std::vector<uint8_t> made(p_.values.size(), 0);
    std::vector<int32_t> again, open;
    std::vector<uint8_t> listed(p_.ops.size(), 0);
    const auto need = [&](int32_t reader) {
      for (int32_t v : index_.inputs[reader]) {
        const int32_t maker = index_.maker[v];
        if (r_.choices[v] != kRemake || made[v] || listed[maker]) continue;
        listed[maker] = 1;
        again.push_back(maker);
        open.push_back(maker);
      }
    };
    for (auto b = p_.turnaround; b < static_cast<int32_t>(p_.ops.size()); ++b) {
      again.clear();
      need(b);
      while (!open.empty()) {
        const int32_t op = open.back();
        open.pop_back();
        need(op);
      }
      std::sort(again.begin(), again.end());
      for (int32_t op : again)
        for (int32_t v : index_.outputs[op]) made[v] = 1;
      order_.insert(order_.end(), again.begin(), again.end());
      order_.push_back(b);
    }
  }

  // Each offloaded value is fetched as late as hides its copy, if compute never stalled; copies of one link
  // follow each other. Walks from the last need to the first, then forward to keep the window.
  void place_fetches() {
    const auto items = static_cast<int32_t>(order_.size());
    std::vector<double> start(order_.size() + 1, 0);
    std::vector<uint8_t> seen(p_.values.size(), 0);
    std::vector<std::vector<Fetch>> fetches(p_.links.size());
    for (int32_t j = 0; j < items; ++j) {
      start[j + 1] = start[j] + p_.ops[order_[j]].seconds;
      for (int32_t v : index_.inputs[order_[j]])
        if (r_.choices[v] >= 0 && !seen[v]) {
          seen[v] = 1;
          fetches[r_.choices[v]].push_back({v, j, j});
        }
    }
    fetch_at_.resize(order_.size());
    for (size_t t = 0; t < fetches.size(); ++t) {
      auto& list = fetches[t];
      const Link& link = p_.links[t];
      double free_until = Lanes::kNever;
      for (size_t k = list.size(); k-- > 0;) {
        const double copy =
            link.latency_seconds + static_cast<double>(bytes(list[k].value)) / link.in_bytes_per_second;
        free_until = std::min(free_until, start[list[k].need]) - copy;
        const auto after = std::upper_bound(start.begin(), start.begin() + list[k].need + 1, free_until);
        list[k].issue = after == start.begin() ? 0 : static_cast<int32_t>(after - start.begin()) - 1;
      }
      keep_window(list);
      for (const Fetch& f : list) fetch_at_[f.issue].push_back(f.value);
    }
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

  void fetch(int32_t v) {
    const int32_t tier = r_.choices[v];
    if (tier < 0) return;  // found no room in the tier
    if (lingering_[v]) {   // still leaving: it simply stays
      lingering_[v] = 0;
      lingering_bytes_ -= bytes(v);
    }
    if (at_[v] != At::kOff) return;
    emit(StepKind::kIn, v, tier);
    at_[v] = At::kComing;
    alive_ += bytes(v);
    note_peak(0);
    copy_[v] = lanes_[tier].issue(Lanes::kIn, bytes(v), now_);
  }

  void backward() {
    for (size_t j = 0; j < order_.size(); ++j) {
      const int32_t op = order_[j];
      for (int32_t v : fetch_at_[j]) fetch(v);
      for (int32_t v : index_.inputs[op])
        if (at_[v] == At::kComing) {
          emit(StepKind::kWaitIn, v, r_.choices[v]);
          now_ = std::max(now_, lanes_[r_.choices[v]].finish(Lanes::kIn, copy_[v]));
          at_[v] = At::kOn;
          drop(v);
        }
      run(op);
      for (int32_t v : index_.inputs[op])
        if (--r_.later_uses[v] == 0) end(v);
      for (int32_t v : index_.outputs[op])
        if (r_.later_uses[v] == 0 && at_[v] == At::kOn) end(v);
      settle();
    }
  }

  const Problem& p_;
  const Index& index_;
  Resolved r_;
  Pace pace_;
  Schedule out_;
  std::vector<At> at_;
  std::vector<CopyAt> copy_at_;
  std::vector<int32_t> copy_;  // number of the value's latest copy in its queue
  std::vector<Lanes> lanes_;
  std::vector<std::deque<int32_t>> leaving_;  // per link: copies going out, in order of issue
  std::vector<uint8_t> lingering_;            // past their last forward use, not off the device yet
  int64_t lingering_bytes_ = 0, alive_ = 0;
  std::vector<int64_t> tier_bytes_;
  std::vector<int32_t> order_;                  // ops from the turnaround on
  std::vector<std::vector<int32_t>> fetch_at_;  // per item of order_: values whose copy in starts before it
  double now_ = 0;
};

}  // namespace

Schedule make_schedule(const Problem& p, const Index& index, const Choices& choices, Pace pace) {
  return Builder(p, index, resolve(p, index, choices), pace).build();
}

}  // namespace cairn::plan
