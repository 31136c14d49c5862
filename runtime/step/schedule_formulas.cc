#include "runtime/step/schedule_formulas.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "runtime/base/error.h"

namespace cairn::step {
namespace {

constexpr double kOtherTimescale = 10000;  // of inverse_sqrt where there is no warm-up
constexpr double kDecayShare = 0.1;        // of wsd where decay_steps is 0

// How much of the stretch is over at step t.
double share_of(const Stretch& s, double t) { return std::min(1.0, t / std::max(1.0, s.length)); }

double half_cosine(double share) { return 0.5 * (1.0 + std::cos(std::numbers::pi * share)); }

// The minimum at 0, the rate at 1.
double above_minimum(const Stretch& s, double height) {
  return s.minimum_rate + (s.rate - s.minimum_rate) * height;
}

enum OneCycle { kStart, kDivide, kFinalDivide, kAnneal, kThreePhases, kFixedMomentum, kLow, kHigh };

struct Phase {
  double end;  // its last step
  double from, to;
  double momentum_from, momentum_to;
};

double annealed(bool linear, double from, double to, double share) {
  return linear ? from + (to - from) * share : to + (from - to) * half_cosine(share);
}

}  // namespace

namespace formulas {

SchedulePoint constant(const Stretch& s, double) { return {s.rate * s.values[0]}; }

SchedulePoint cosine(const Stretch& s, double t) {
  const double first = s.values[0], multiplier = s.values[1];
  if (first == 0) return {above_minimum(s, half_cosine(share_of(s, t)))};
  double cycle = first;
  if (multiplier == 1) {
    t = std::fmod(t, cycle);
  } else {
    for (; t >= cycle; cycle *= multiplier) t -= cycle;
  }
  return {above_minimum(s, half_cosine(t / cycle))};
}

SchedulePoint linear(const Stretch& s, double t) {
  const double from = s.rate * s.values[0], to = s.values[1] > 0 ? s.rate * s.values[1] : s.minimum_rate;
  return {to + (from - to) * (1.0 - share_of(s, t))};
}

SchedulePoint step(const Stretch& s, double t) {
  return {s.rate * std::pow(s.values[1], std::floor(t / s.values[0]))};
}

SchedulePoint multistep(const Stretch& s, double t) {
  const auto passed = std::upper_bound(s.list.begin(), s.list.end(), t) - s.list.begin();
  return {s.rate * std::pow(s.values[1], static_cast<double>(passed))};
}

// Phases as torch.optim.lr_scheduler.OneCycleLR has them: the peak is a step that may lie between two.
SchedulePoint onecycle(const Stretch& s, double t) {
  const auto v = s.values;
  const double begin = s.rate / v[kDivide], bottom = begin / v[kFinalDivide];
  const double peak = v[kStart] * s.length - 1, last = std::max(1.0, s.length - 1), high = v[kHigh],
               low = v[kLow];
  const Phase two[] = {{peak, begin, s.rate, high, low}, {last, s.rate, bottom, low, high}};
  const Phase three[] = {{peak, begin, s.rate, high, low},
                         {2 * peak, s.rate, begin, low, high},
                         {last, begin, bottom, high, high}};
  const std::span<const Phase> phases = v[kThreePhases] != 0 ? std::span<const Phase>(three) : two;
  double first = 0;
  size_t p = 0;
  for (; p + 1 < phases.size() && t > phases[p].end; ++p) first = phases[p].end;
  const Phase& phase = phases[p];
  const double length = phase.end - first;
  const double share = length > 0 ? std::min(1.0, (t - first) / length) : 1.0;
  const bool linear = v[kAnneal] != 0;
  SchedulePoint point{annealed(linear, phase.from, phase.to, share)};
  if (v[kFixedMomentum] == 0)
    point.momentum = annealed(linear, phase.momentum_from, phase.momentum_to, share);
  return point;
}

SchedulePoint wsd(const Stretch& s, double t) {
  const double decay = s.values[0] > 0 ? s.values[0] : std::max(1.0, std::floor(kDecayShare * s.length));
  const double share = std::clamp((t - (s.length - decay)) / decay, 0.0, 1.0);
  const double heights[] = {1.0 - share, half_cosine(share), 1.0 - std::sqrt(share)};
  return {share == 0 ? s.rate : above_minimum(s, heights[static_cast<size_t>(s.values[1])])};
}

SchedulePoint inverse_sqrt(const Stretch& s, double t) {
  const double scale = s.values[0] > 0 ? s.values[0] : s.warmup > 0 ? s.warmup : kOtherTimescale;
  return {s.rate / std::sqrt((t + scale) / scale)};
}

SchedulePoint polynomial(const Stretch& s, double t) {
  return {above_minimum(s, std::pow(1.0 - share_of(s, t), s.values[0]))};
}

}  // namespace formulas

namespace least_steps {

double no_end(std::span<const double>) { return 0; }
double one_step(std::span<const double>) { return 1; }
double two_steps(std::span<const double>) { return 2; }
double cosine_steps(std::span<const double> values) { return values[0] > 0 ? 0 : 1; }
double wsd_steps(std::span<const double> values) { return std::max(1.0, values[0]); }

}  // namespace least_steps

namespace schedule_rules {

void nothing(std::span<const double>) {}

void onecycle_rules(std::span<const double> v) {
  require(v[kThreePhases] == 0 || v[kStart] <= 0.5, Code::kInvalidArgument, "onecycle: pct_start is ",
          v[kStart], "; with three_phase, which falls as long as it climbs, it must be at most 0.5");
  require(v[kLow] <= v[kHigh], Code::kInvalidArgument, "onecycle: base_momentum ", v[kLow],
          " is above max_momentum ", v[kHigh], "; it must be the smaller one");
}

}  // namespace schedule_rules
}  // namespace cairn::step
