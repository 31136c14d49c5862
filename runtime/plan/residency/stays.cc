#include "runtime/plan/residency/stays.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "runtime/base/checked.h"

namespace cairn::plan {
namespace {

void take(std::vector<int64_t>& alive, int32_t begin, int32_t end, int64_t bytes) {
  for (int32_t s = begin; s < end; ++s) alive[at(s)] += bytes;
}

// The last step that begins no later than `time`.
int32_t step_at(const std::vector<double>& start, double time, int32_t before) {
  const auto found = std::upper_bound(start.begin(), start.begin() + before + 1, time);
  return found == start.begin() ? 0 : static_cast<int32_t>(found - start.begin()) - 1;
}

}  // namespace

Stays::Stays(const Problem& p, const Plan& plan, int64_t capacity_bytes, std::vector<int64_t> reserved_bytes)
    : p_(p),
      plan_(plan),
      capacity_(capacity_bytes),
      reserved_(std::move(reserved_bytes)),
      uses_(home_uses(p)),
      retimed_(p.values.size(), false) {
  // Where policies offload values, or there is no room for more than each op needs, copies keep the plan's own times.
  const bool free =
      capacity_bytes > 0 && std::none_of(p.regions.begin(), p.regions.end(),
                                         [](const Region& r) { return r.policy == Policy::kOffload; });
  if (free) {
    std::vector<int32_t> tier(p.values.size(), -1);  // -2: several tiers
    for (const Step& step : plan.steps) {
      if (step.kind != StepKind::kOut && step.kind != StepKind::kIn) continue;
      int32_t& known = tier[at(step.index)];
      known = known == -1 || known == step.tier ? step.tier : -2;
    }
    // A residency has one link. A value that is offloaded to several tiers keeps its steps.
    for (const Step& step : plan.steps)
      if (step.kind == StepKind::kOut && tier[at(step.index)] >= 0) retimed_[at(step.index)] = true;
  }
  timeline();
  find_homes();
  find_copied();
  std::stable_sort(stays_.begin(), stays_.end(),
                   [](const Stay& a, const Stay& b) { return a.first < b.first; });
  memory();
}

void Stays::timeline() {
  double now = 0;
  start_.reserve(plan_.steps.size() + 1);
  for (const Step& step : plan_.steps) {
    start_.push_back(now);
    if (step.kind == StepKind::kRun) now += p_.ops[at(step.index)].seconds;
  }
  start_.push_back(now);
}

void Stays::find_homes() {
  for (int32_t s = 0; s < static_cast<int32_t>(plan_.steps.size()); ++s) {
    if (!is_run(s)) continue;
    for (const HomeUse& use : uses_[at(plan_.steps[at(s)].index)])
      stays_.push_back({use.value, p_.values[at(use.value)].home, s, s, use.reads, use.changes ? s : -1, -1});
  }
}

// An offloaded value is copied out as soon as it is made. If it is fetched again without having been copied out, it
// is still in its tier.
void Stays::find_copied() {
  std::vector<int32_t> open(p_.values.size(), -1), tier(p_.values.size(), -1);
  std::vector<uint8_t> coming(p_.values.size(), 0);
  for (int32_t s = 0; s < static_cast<int32_t>(plan_.steps.size()); ++s) {
    const Step& step = plan_.steps[at(s)];
    if (step.kind != StepKind::kRun) {
      if (!retimed_[at(step.index)]) continue;
      if (step.kind == StepKind::kIn) {
        coming[at(step.index)] = 1;
        tier[at(step.index)] = step.tier;
      } else if (step.kind == StepKind::kOut) {
        Stay& stay = stays_[at(open[at(step.index)])];
        stay.changed = stay.first;
        stay.link = step.tier;
      } else if (step.kind == StepKind::kFree) {
        open[at(step.index)] = -1;
      }
      continue;
    }
    const Op& op = p_.ops[at(step.index)];
    for (const auto* list : {&op.outputs, &op.inputs})
      for (const int32_t v : *list) {
        if (!retimed_[at(v)]) continue;
        if (open[at(v)] < 0) {
          open[at(v)] = static_cast<int32_t>(stays_.size());
          stays_.push_back({v, coming[at(v)] ? tier[at(v)] : -1, s, s, coming[at(v)] != 0, -1, -1});
          coming[at(v)] = 0;
        }
        stays_[at(open[at(v)])].last = s;
      }
  }
  // A value that is never fetched again need not be copied out.
  std::vector<uint8_t> back(p_.values.size(), 0);
  for (size_t i = stays_.size(); i-- > 0;) {
    Stay& stay = stays_[i];
    if (!retimed_[at(stay.value)]) continue;
    if (!back[at(stay.value)]) stay.changed = -1;
    back[at(stay.value)] = stay.fetched;
  }
}

// Bytes alive at each step, with the tier-resident values that its op uses.
void Stays::memory() {
  std::vector<uint8_t> here(p_.values.size(), 0);
  int64_t alive = p_.persistent_bytes();
  const auto counts = [&](int32_t v) {
    return !p_.values[at(v)].persistent && !p_.values[at(v)].at_home() && !retimed_[at(v)];
  };
  const auto arrive = [&](int32_t v) {
    if (here[at(v)] || !counts(v)) return;
    here[at(v)] = 1;
    alive += p_.values[at(v)].bytes;
  };
  base_.reserve(plan_.steps.size());
  for (const Step& step : plan_.steps) {
    int64_t extra = 0;
    if (step.kind == StepKind::kRun) {
      const Op& op = p_.ops[at(step.index)];
      for (const int32_t v : op.outputs) arrive(v);
      extra = op.workspace_bytes;
    } else if (step.kind == StepKind::kIn) {
      arrive(step.index);
    } else if (step.kind == StepKind::kFree && here[at(step.index)]) {
      here[at(step.index)] = 0;
      alive -= p_.values[at(step.index)].bytes;
    }
    base_.push_back(alive + extra);
  }
  for (const Stay& stay : stays_) take(base_, stay.first, stay.last + 1, bytes(stay));
  alive_ = base_;
}

size_t Stays::keep_between_uses(double keep_seconds) {
  struct Gap {
    double seconds;
    size_t before, after;
  };
  std::vector<Gap> gaps;
  std::vector<int32_t> last(p_.values.size(), -1);
  for (size_t i = 0; i < stays_.size(); ++i) {
    const Stay& stay = stays_[i];
    if (const int32_t before = last[at(stay.value)]; before >= 0 && stay.fetched) {
      const double seconds = start_[at(stay.first)] - start_[at(stays_[at(before)].last + 1)];
      if (seconds <= keep_seconds) gaps.push_back({seconds, at(before), i});
    }
    last[at(stay.value)] = static_cast<int32_t>(i);
  }
  std::stable_sort(gaps.begin(), gaps.end(),
                   [](const Gap& a, const Gap& b) { return a.seconds < b.seconds; });
  std::vector<uint8_t> joined(stays_.size(), 0);
  for (const Gap& gap : gaps) {
    const int32_t begin = stays_[gap.before].last + 1, end = stays_[gap.after].first;
    const int64_t more = bytes(stays_[gap.before]);
    int32_t full = begin;
    while (full < end && base_[at(full)] + more <= room(full)) ++full;
    if (full < end) continue;
    take(base_, begin, end, more);
    joined[gap.after] = 1;
  }
  std::vector<size_t> head(stays_.size());  // the residency that each is merged into
  std::iota(head.begin(), head.end(), size_t{0});
  std::fill(last.begin(), last.end(), -1);
  for (size_t i = 0; i < stays_.size(); ++i) {
    const Stay& stay = stays_[i];
    if (joined[i]) {
      head[i] = head[at(last[at(stay.value)])];
      Stay& whole = stays_[head[i]];
      whole.last = stay.last;
      // An ordinary value that has not left the device need not be copied out for what is now one residency.
      whole.changed = retimed_[at(stay.value)] ? stay.changed : std::max(whole.changed, stay.changed);
      if (whole.link < 0) whole.link = stay.link;
    }
    last[at(stay.value)] = static_cast<int32_t>(i);
  }
  size_t kept = 0;
  for (size_t i = 0; i < stays_.size(); ++i)
    if (!joined[i]) stays_[kept++] = stays_[i];
  const size_t gone = stays_.size() - kept;
  stays_.resize(kept);
  return gone;
}

double Stays::copy_seconds(const Stay& stay) const {
  const Link& link = p_.links[at(stay.link)];
  return link.latency_seconds +
         static_cast<double>(bytes(stay)) / (link.in_bytes_per_second * link.busy_rate_factor);
}

// A fetch starts late enough to take no memory in vain, early enough to hide the copies, as far as there is room, and
// not before the link is free: a fetch that only waits in the queue takes memory for nothing. The first time, compute
// is assumed never to wait and copies to run alone. Later, both are as the last simulation had them, with the other
// direction busy, and values being copied out have their memory.
bool Stays::place_fetches(const StreamTimes* last) {
  bool moved = false;
  alive_ = base_;
  std::vector<int64_t> planned = base_;  // with values that are being copied out
  const std::vector<double>& start = last ? last->start : start_;
  const auto steps = static_cast<int32_t>(plan_.steps.size());
  if (last)
    for (size_t i = 0; i < stays_.size(); ++i)
      for (int32_t s = stays_[i].last + 1;
           stays_[i].changed >= 0 && s < steps && start[at(s)] < last->gone[i]; ++s)
        planned[at(s)] += bytes(stays_[i]);
  std::vector<int32_t> before(p_.values.size(), -1);  // the residency before
  std::vector<std::vector<int32_t>> by_link(p_.links.size());
  std::vector<int32_t> earliest(stays_.size(), 0);
  for (size_t i = 0; i < stays_.size(); ++i) {
    const Stay& stay = stays_[i];
    if (const int32_t b = before[at(stay.value)]; b >= 0) {
      earliest[i] = stays_[at(b)].last + 1;
      if (last && stays_[at(b)].changed >= 0)
        earliest[i] =
            std::max(earliest[i], std::min(stay.first, step_at(start, last->gone[at(b)], stay.first) + 1));
    }
    before[at(stay.value)] = static_cast<int32_t>(i);
    if (stay.fetched) by_link[at(stay.link)].push_back(static_cast<int32_t>(i));
  }
  for (const auto& list : by_link) {
    std::vector<int32_t> wanted(list.size());
    double free_until = std::numeric_limits<double>::infinity();
    for (size_t k = list.size(); k-- > 0;) {
      const Stay& stay = stays_[at(list[k])];
      const double slower = last ? 1 / p_.links[at(stay.link)].both_ways_factor : 1;
      free_until = std::min(free_until, start[at(stay.first)]) - slower * copy_seconds(stay);
      wanted[k] = step_at(start, free_until, stay.first);
    }
    double done = 0, late = 0;  // done: when the link is free; late: how long compute has waited
    for (size_t k = 0; k < list.size(); ++k) {
      Stay& stay = stays_[at(list[k])];
      int32_t from = std::max({wanted[k], earliest[at(list[k])], step_at(start, done - late, stay.first)});
      from = std::min(from, stay.first);
      int32_t issue = stay.first;
      while (issue > from && planned[at(issue - 1)] + bytes(stay) <= room(issue - 1)) --issue;
      take(alive_, issue, stay.first, bytes(stay));
      take(planned, issue, stay.first, bytes(stay));
      moved |= stay.issue != issue;
      stay.issue = issue;
      done = std::max(done, start[at(issue)] + late) + copy_seconds(stay);
      late = std::max(late, done - start[at(stay.first)]);
    }
  }
  return moved;
}

}  // namespace cairn::plan
