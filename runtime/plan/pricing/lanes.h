// The two copy queues of one link, simulated in continuous time. A copy starts once it is issued and the copy before
// it in its queue has ended. It takes the link's latency, then its bytes at the link's rate. While both queues
// transfer, each runs at both_ways_factor of its rate. While compute runs, copies run at busy_rate_factor of their
// rate. While a copy is under way, its latency included, compute runs at busy_factor of its speed.
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
        both_(link.both_ways_factor),
        busy_(link.busy_factor),
        busy_rate_(link.busy_rate_factor),
        competes_(link.competes()) {}

  // Returns the copy's number in its queue. now: never less than in the call before. ready: neither the copy nor
  // those after it in the queue begin before that time.
  int32_t issue(Way, int64_t bytes, double now, double ready = 0);
  // Simulates up to this time; the ends of copies before it are known then.
  void advance(double until);
  // When the copy ends, given what has been issued so far.
  double finish(Way, int32_t copy);
  // Known only once time has advanced so far; else kNever.
  double end(Way way, int32_t copy) const { return queue_[way][copy].end; }
  double begin(Way way, int32_t copy) const { return queue_[way][copy].begin; }
  double last_end() const { return last_end_; }
  bool competes() const { return competes_; }
  // For compute that begins at the time of the last advance(): the share of its speed that it has, and until when
  // that holds. Then the progress of copies up to a time no later than that.
  double compute_speed() const { return idle() ? 1 : busy_; }
  double next_change() const;
  void advance_beside_compute(double until);

 private:
  struct Copy {
    double latency, bytes, ready, begin, end;
  };
  static void begin(Copy&, double now);
  bool idle() const { return head_[0] == queue_[0].size() && head_[1] == queue_[1].size(); }
  // Of the copies at the heads of the queues: their rates once the latency is spent, and the seconds to the next
  // change.
  struct Moving {
    std::array<double, 2> speed{}, left = {kNever, kNever};
  };
  Moving moving(bool beside_compute) const;
  void step(double until, bool beside_compute = false);

  std::array<double, 2> rate_;
  double latency_, both_, busy_, busy_rate_, now_ = 0, last_end_ = 0;
  bool competes_;
  std::array<std::vector<Copy>, 2> queue_;
  std::array<size_t, 2> head_ = {0, 0};
};

// When compute of so many seconds ends if it begins now, with the copies that are under way on the links.
double compute_end(std::vector<Lanes>& lanes, double now, double seconds);

}  // namespace cairn::plan
