// The bound at several program points at once. A value on the device at one point was there at the point before, or
// was recomputed in between. README.md, "Several points".
#pragma once
#include <deque>
#include <vector>

#include "runtime/plan/bound/stretch.h"

namespace cairn::plan {

class SeveralPoints {
 public:
  // points: ascending. about: seconds that set the length of the steps, such as the best bound of a single point.
  SeveralPoints(const Problem&, const Index&, const std::vector<int32_t>& points, int64_t budget_bytes,
                double about);

  // Adds one point to those of `fewer`, and begins with their prices.
  SeveralPoints(const SeveralPoints& fewer, int32_t more, int64_t budget_bytes);

  // Raises the bound by at most so many steps of a subgradient method. Returns the seconds added at least: each
  // step's prices give a bound, and the best one counts.
  double raise(int steps);
  const std::vector<int32_t>& points() const { return points_; }
  double seconds() const { return best_; }
  int64_t size() const;  // arcs that one step looks at
  int64_t work() const;  // arcs looked at so far

 private:
  double at_prices();
  std::vector<int32_t> with(int32_t more) const;

  double about_;
  const Problem* p_;
  const Index* index_;
  std::vector<int32_t> points_;
  std::deque<Stretch> stretches_;
  // Per point and value: whether a value on the device at the next point has to be there at this one, or recomputed
  // in between. Where this is false, links_ has no meaning.
  std::vector<std::vector<bool>> linked_;
  std::vector<double> rooms_, prices_, price_steps_;     // per point: bytes, seconds per byte
  std::vector<std::vector<double>> links_, link_steps_;  // per point and value: seconds per byte
  std::vector<double> best_prices_;
  std::vector<std::vector<double>> best_links_;
  std::vector<double> directions_;
  std::vector<std::vector<double>> link_directions_;
  std::vector<double> charges_, fines_;
  double best_ = 0, scale_ = 1;
};

// The best bound, in added seconds, of some points that it picks; 0 if the work does not suffice for a few of them.
// single: the bounds of single points, as seconds and op.
double several_points_seconds(const Problem&, const Index&, int64_t budget_bytes,
                              std::vector<std::pair<double, int32_t>> single, int64_t work);

}  // namespace cairn::plan
