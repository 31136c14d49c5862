// The two copy queues of one link, simulated in continuous time. A copy starts when it was issued and the
// copy before it in its queue has ended, spends the link's latency, then its bytes at the link's rate; while
// both queues transfer, each runs at both_ways_factor of its rate.
#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/plan/problem.h"

namespace cairn::plan {

class Lanes {
 public:
  enum Way { kOut = 0, kIn = 1 };
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  explicit Lanes(const Link& link)
      : rate_{link.out_bytes_per_second, link.in_bytes_per_second},
        latency_(link.latency_seconds),
        both_(link.both_ways_factor) {}

  // Returns the copy's number in its queue. `now` never goes back, over all calls.
  int32_t issue(Way, int64_t bytes, double now);
  // Ends of copies up to this time become known.
  void advance(double until);
  // When the copy ends, given what has been issued so far.
  double finish(Way, int32_t copy);
  // Known only once time has advanced so far; else kNever.
  double end(Way way, int32_t copy) const { return queue_[way][copy].end; }
  double begin(Way way, int32_t copy) const { return queue_[way][copy].begin; }
  double last_end() const { return last_end_; }

 private:
  struct Copy {
    double latency, bytes, begin, end;
  };
  void step(double until);

  std::array<double, 2> rate_;
  double latency_, both_, now_ = 0, last_end_ = 0;
  std::array<std::vector<Copy>, 2> queue_;
  std::array<size_t, 2> head_ = {0, 0};
};

}  // namespace cairn::plan
