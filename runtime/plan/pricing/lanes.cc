#include "runtime/plan/pricing/lanes.h"

#include <algorithm>

namespace cairn::plan {

int32_t Lanes::issue(Way way, int64_t bytes, double now, double ready) {
  advance(now);
  const bool first = head_[way] == queue_[way].size();
  queue_[way].push_back({latency_, static_cast<double>(bytes), ready, kNever, kNever});
  if (first) begin(queue_[way].back(), now);
  return static_cast<int32_t>(queue_[way].size()) - 1;
}

void Lanes::begin(Copy& copy, double now) {
  copy.begin = now;
  copy.latency += std::max(0.0, copy.ready - now);
}

Lanes::Moving Lanes::moving(bool beside_compute) const {
  Moving m;
  std::array<const Copy*, 2> copy{};
  for (int w : {0, 1})
    if (head_[w] < queue_[w].size()) copy[w] = &queue_[w][head_[w]];
  const bool both = copy[0] && copy[1] && copy[0]->latency == 0 && copy[1]->latency == 0;
  for (int w : {0, 1}) {
    if (!copy[w]) continue;
    m.speed[w] = rate_[w] * (both ? both_ : 1) * (beside_compute ? busy_rate_ : 1);
    m.left[w] = copy[w]->latency > 0 ? copy[w]->latency : copy[w]->bytes / m.speed[w];
  }
  return m;
}

// Advances to the next change of state or to `until`, whichever is first.
void Lanes::step(double until, bool beside_compute) {
  const Moving m = moving(beside_compute);
  const double span = std::min({until - now_, m.left[0], m.left[1]});
  for (int w : {0, 1}) {
    if (head_[w] == queue_[w].size()) continue;
    Copy& copy = queue_[w][head_[w]];
    const bool done = m.left[w] <= span;
    if (copy.latency > 0) {
      copy.latency = done ? 0 : copy.latency - span;
    } else if (!done) {
      copy.bytes -= span * m.speed[w];
    } else {
      copy.end = last_end_ = now_ + span;
      if (++head_[w] < queue_[w].size()) begin(queue_[w][head_[w]], now_ + span);
    }
  }
  now_ += span;
}

void Lanes::advance(double until) {
  while (now_ < until) {
    if (idle()) {
      if (until < kNever) now_ = until;
      return;
    }
    step(until);
  }
}

double Lanes::finish(Way way, int32_t copy) {
  while (queue_[way][copy].end == kNever) step(kNever);
  return queue_[way][copy].end;
}

double Lanes::next_change() const {
  const Moving m = moving(true);
  return now_ + std::min(m.left[0], m.left[1]);
}

void Lanes::advance_beside_compute(double until) {
  while (!idle() && next_change() <= until) step(kNever, true);
  if (!idle() && now_ < until) step(until, true);
  now_ = std::max(now_, until);
}

double compute_end(std::vector<Lanes>& lanes, double now, double seconds) {
  const bool alone = std::none_of(lanes.begin(), lanes.end(), [](const Lanes& l) { return l.competes(); });
  if (alone) return now + seconds;
  for (Lanes& l : lanes)
    if (l.competes()) l.advance(now);
  while (seconds > 0) {
    double speed = 1, until = Lanes::kNever;
    for (const Lanes& l : lanes) {
      if (!l.competes()) continue;
      speed *= l.compute_speed();
      until = std::min(until, l.next_change());
    }
    const double end = now + seconds / speed;
    const bool done = end <= until;
    const double next = done ? end : until;
    seconds = done ? 0 : seconds - (next - now) * speed;
    now = next;
    for (Lanes& l : lanes)
      if (l.competes()) l.advance_beside_compute(now);
  }
  return now;
}

}  // namespace cairn::plan
