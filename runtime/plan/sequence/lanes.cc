#include "runtime/plan/sequence/lanes.h"

#include <algorithm>

namespace cairn::plan {

int32_t Lanes::issue(Way way, int64_t bytes, double now) {
  advance(now);
  queue_[way].push_back(
      {latency_, static_cast<double>(bytes), head_[way] == queue_[way].size() ? now : kNever, kNever});
  return static_cast<int32_t>(queue_[way].size()) - 1;
}

// Moves on to the next change of state or to `until`, whichever is first.
void Lanes::step(double until) {
  std::array<Copy*, 2> copy{};
  for (int w : {0, 1})
    if (head_[w] < queue_[w].size()) copy[w] = &queue_[w][head_[w]];
  const bool both = copy[0] && copy[1] && copy[0]->latency == 0 && copy[1]->latency == 0;
  std::array<double, 2> speed{}, left = {kNever, kNever};
  for (int w : {0, 1})
    if (copy[w]) {
      speed[w] = rate_[w] * (both ? both_ : 1);
      left[w] = copy[w]->latency > 0 ? copy[w]->latency : copy[w]->bytes / speed[w];
    }
  const double span = std::min({until - now_, left[0], left[1]});
  for (int w : {0, 1}) {
    if (!copy[w]) continue;
    const bool done = left[w] <= span;
    if (copy[w]->latency > 0) {
      copy[w]->latency = done ? 0 : copy[w]->latency - span;
    } else if (!done) {
      copy[w]->bytes -= span * speed[w];
    } else {
      copy[w]->end = last_end_ = now_ + span;
      if (++head_[w] < queue_[w].size()) queue_[w][head_[w]].begin = now_ + span;
    }
  }
  now_ += span;
}

void Lanes::advance(double until) {
  while (now_ < until) {
    if (head_[0] == queue_[0].size() && head_[1] == queue_[1].size()) {
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

}  // namespace cairn::plan
