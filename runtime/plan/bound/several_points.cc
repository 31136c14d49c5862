#include "runtime/plan/bound/several_points.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace cairn::plan {
namespace {

constexpr double kRounding = 1e-12;  // relative error of sums of up to 1e6 terms, generously
constexpr double kMomentum = .7;
// How far above the best bound the steps aim, first and last, and by how much that shrinks after steps that raised
// nothing.
constexpr double kAbove = .1, kLeastAbove = 1e-4, kNearer = .5;
constexpr int kPatience = 20;

}  // namespace

SeveralPoints::SeveralPoints(const Problem& p, const Index& index, const std::vector<int32_t>& points,
                             int64_t budget_bytes, double about)
    : about_(about),
      p_(&p),
      index_(&index),
      points_(points),
      charges_(p.values.size(), 0),
      fines_(p.values.size(), 0) {
  for (size_t k = 0; k < points.size(); ++k) {
    const int32_t at = points[k];
    const int32_t next = k + 1 < points.size() ? points[k + 1] : static_cast<int32_t>(p.ops.size());
    stretches_.emplace_back(p, index, at, next);
    rooms_.push_back(static_cast<double>(budget_bytes - index.persistent_bytes - p.ops[at].workspace_bytes -
                                         stretches_.back().busy_bytes()));
  }
  linked_.assign(points.size(), std::vector<bool>(p.values.size(), false));
  for (size_t k = 0; k + 1 < points.size(); ++k)
    for (int32_t v = 0; v < static_cast<int32_t>(p.values.size()); ++v)
      linked_[k][v] = stretches_[k].has(v) && !stretches_[k].busy(v) && !stretches_[k + 1].busy(v);
  prices_.assign(points.size(), 0);
  price_steps_ = prices_;
  links_.assign(points.size(), std::vector<double>(p.values.size(), 0));
  link_steps_ = links_;
  best_prices_ = prices_;
  best_links_ = links_;
  for (const Value& v : p.values)
    if (!v.persistent) scale_ = std::max(scale_, static_cast<double>(v.bytes));
}

SeveralPoints::SeveralPoints(const SeveralPoints& fewer, int32_t more, int64_t budget_bytes)
    : SeveralPoints(*fewer.p_, *fewer.index_, fewer.with(more), budget_bytes, fewer.about_) {
  size_t from = 0;
  for (size_t k = 0; k < points_.size(); ++k) {
    if (points_[k] == more) {
      // The new point inherits the link prices of the point before it.
      if (k > 0 && k + 1 < points_.size()) best_links_[k] = fewer.best_links_[from - 1];
      continue;
    }
    best_prices_[k] = fewer.best_prices_[from];
    best_links_[k] = fewer.best_links_[from++];
  }
  best_ = fewer.best_;
}

std::vector<int32_t> SeveralPoints::with(int32_t more) const {
  std::vector<int32_t> points = points_;
  points.insert(std::lower_bound(points.begin(), points.end(), more), more);
  return points;
}

// The bound that the prices give. Also computes, per point and value, by how much the rows with these prices are
// violated.
double SeveralPoints::at_prices() {
  const auto values = static_cast<int32_t>(p_->values.size());
  const auto bytes = [&](int32_t v) { return static_cast<double>(p_->values[v].bytes); };
  double sum = 0, taken = 0;
  // Per value: whether it was on the device, or recomputed, in the stretch before.
  std::vector<double> inside(p_->values.size(), 0);
  for (size_t k = 0; k < stretches_.size(); ++k) {
    Stretch& stretch = stretches_[k];
    for (int32_t v = 0; v < values; ++v) {
      if (!stretch.has(v) || stretch.busy(v)) continue;
      charges_[v] = bytes(v) * (prices_[k] + (k > 0 && linked_[k - 1][v] ? links_[k - 1][v] : 0));
      fines_[v] = linked_[k][v] ? bytes(v) * links_[k][v] : 0;
      taken += fines_[v];
    }
    sum += stretch.least(charges_, fines_);
    (rooms_[k] > 0 ? taken : sum) += prices_[k] * std::abs(rooms_[k]);
    double stays = 0;
    for (int32_t v = 0; v < values; ++v) {
      if (!stretch.has(v)) continue;
      const Stretch::Place place = stretch.place(v);
      const bool here = place == Stretch::Place::kStays;
      if (here) stays += bytes(v);
      if (k > 0) link_steps_[k - 1][v] = linked_[k - 1][v] ? here - inside[v] : 0;
      inside[v] = place != Stretch::Place::kMissing;
    }
    price_steps_[k] = (stays - rooms_[k]) / scale_;
  }
  return sum - taken - kRounding * (sum + taken);
}

// Polyak's steps, which aim a little above the best bound so far. The aim comes closer when steps raise nothing.
double SeveralPoints::raise(int steps) {
  const size_t count = stretches_.size();
  double above = kAbove * std::max(about_, best_);
  int failed = 0;
  std::vector<double> weights;
  for (const Value& v : p_->values)
    weights.push_back(std::sqrt(static_cast<double>(v.persistent ? 0 : v.bytes) / scale_));
  const auto restart = [&] {
    prices_ = best_prices_;
    links_ = best_links_;
    directions_.assign(count, 0);
    link_directions_.assign(count, std::vector<double>(weights.size(), 0));
  };
  restart();
  // The direction is averaged with the old one, but no price falls below zero.
  const auto turn = [&](double& direction, double towards, double price) {
    direction = towards + kMomentum * direction;
    if (price <= 0 && direction < 0) direction = 0;
    return direction * direction;
  };
  for (int step = 0; step < steps && above > kLeastAbove * std::max(about_, best_); ++step) {
    const double found = at_prices();
    if (found > best_) {
      best_ = found;
      best_prices_ = prices_;
      best_links_ = links_;
      failed = 0;
    } else if (++failed > kPatience) {
      above *= kNearer;
      failed = 0;
      restart();
      continue;
    }
    double norm = 0;
    for (size_t k = 0; k < count; ++k) {
      norm += turn(directions_[k], price_steps_[k], prices_[k]);
      if (k + 1 < count)
        for (size_t v = 0; v < weights.size(); ++v)
          if (links_[k][v] > 0 || link_steps_[k][v] != 0)
            norm += turn(link_directions_[k][v], link_steps_[k][v] * weights[v], links_[k][v]);
    }
    if (!(norm > 0)) break;
    const double length = (best_ + above - found) / norm / scale_;
    for (size_t k = 0; k < count; ++k) {
      prices_[k] = std::max(0.0, prices_[k] + length * directions_[k]);
      if (k + 1 < count)
        for (size_t v = 0; v < weights.size(); ++v)
          if (const double direction = link_directions_[k][v]; direction != 0)
            links_[k][v] = std::max(0.0, links_[k][v] + length * direction);
    }
  }
  return best_;
}

int64_t SeveralPoints::size() const {
  int64_t sum = 0;
  for (const Stretch& s : stretches_) sum += s.size();
  return sum;
}

int64_t SeveralPoints::work() const {
  int64_t sum = 0;
  for (const Stretch& s : stretches_) sum += s.work();
  return sum;
}

namespace {

constexpr size_t kMostPoints = 8, kCandidates = 24;
constexpr size_t kLongTrials = 3;
constexpr int64_t kLeastTrials = 4;
constexpr int kTrialSteps = 60, kLongSteps = 300, kLastSteps = 1500;
constexpr double kWorthIt = 1e-3;  // of the bound: a point that raises it by less is the last one

}  // namespace

double several_points_seconds(const Problem& p, const Index& index, int64_t budget_bytes,
                              std::vector<std::pair<double, int32_t>> single, int64_t work) {
  if (single.empty()) return 0;
  // Peaks among their neighbours first.
  std::sort(single.begin(), single.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  std::vector<std::pair<double, int32_t>> peaks;
  for (size_t k = 0; k < single.size(); ++k) {
    const double here = single[k].first;
    if ((k == 0 || here >= single[k - 1].first) && (k + 1 == single.size() || here > single[k + 1].first))
      peaks.push_back(single[k]);
  }
  const auto higher = [](const auto& a, const auto& b) { return a.first > b.first; };
  std::stable_sort(peaks.begin(), peaks.end(), higher);
  peaks.resize(std::min(peaks.size(), kCandidates));
  SeveralPoints best(p, index, {peaks[0].second}, budget_bytes, peaks[0].first);
  if (kLeastTrials * kLongSteps * best.size() > work) return 0;
  best.raise(kLongSteps);
  work -= best.work();
  const auto ops = static_cast<int32_t>(p.ops.size());
  while (best.points().size() < kMostPoints && work > 0) {
    const std::vector<int32_t> points = best.points();
    std::vector<int32_t> candidates;
    const auto consider = [&](int32_t at) {
      if (at > 0 && at < ops && std::find(points.begin(), points.end(), at) == points.end() &&
          std::find(candidates.begin(), candidates.end(), at) == candidates.end())
        candidates.push_back(at);
    };
    for (const auto& peak : peaks) consider(peak.second);
    for (const int32_t near : {-1, 0, 1}) consider(p.backward_begin + near);
    for (const int32_t at : points)
      for (const int32_t near : {-2, -1, 1, 2}) consider(at + near);
    std::vector<std::pair<double, int32_t>> found;
    for (const int32_t at : candidates) {
      if (work <= 0) break;
      SeveralPoints more(best, at, budget_bytes);
      found.emplace_back(more.raise(kTrialSteps), at);
      work -= more.work();
    }
    std::stable_sort(found.begin(), found.end(), higher);
    found.resize(std::min(found.size(), kLongTrials));
    const double before = best.seconds();
    std::optional<SeveralPoints> highest;
    for (const auto& [seconds, at] : found) {
      SeveralPoints more(best, at, budget_bytes);
      more.raise(kLongSteps);
      work -= more.work();
      if (!highest || more.seconds() > highest->seconds()) highest.emplace(std::move(more));
    }
    if (!highest) break;
    best = std::move(*highest);
    if (!(best.seconds() > before * (1 + kWorthIt))) break;
  }
  if (work > 0) best.raise(kLastSteps);
  return best.seconds();
}

}  // namespace cairn::plan
