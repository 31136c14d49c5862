#include "runtime/plan/local_search/local_search.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/checked.h"

namespace cairn::plan {
namespace {

constexpr size_t kMaxMoves = 20;  // moves that a step of a descent prices
constexpr int kPerturbations = 3;

// For annealing: how much a peak over the budget weighs.
constexpr double kOverweight = .7;
constexpr double kExpRounding = 1e-9;  // relative error of exponentials
constexpr int64_t kRelaxWork = 100'000;

}  // namespace

LocalSearch::LocalSearch(const Problem& p, const Index& index, const Intervals& intervals, const Rules& rules,
                         Evaluator& evaluate, Archive& archive)
    : p_(p),
      index_(index),
      intervals_(intervals),
      rules_(rules),
      evaluate_(evaluate),
      archive_(archive),
      last_use_(p.values.size(), -1),
      blocked_(intervals.all.size(), -1),
      links_(static_cast<int32_t>(p.links.size())) {
  for (size_t g = 0; g < intervals.all.size(); ++g)
    if (rules.free[g] && (rules.remade[g] || p.values[intervals.all[g].value].bytes >= kPageBytes))
      free_intervals_.push_back(static_cast<int32_t>(g));
}

void LocalSearch::restart() {
  state_ = kSeed;
  round_ = 0;
  std::fill(blocked_.begin(), blocked_.end(), -1);
  use_links(true);
}

// splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
uint64_t LocalSearch::random() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

bool LocalSearch::price(Candidate& c) {
  const RetentionPricer::Price price = evaluate_.price(c.retention_points);
  c.cost = price.valid ? complete(c, price) : Cost{};
  if (c.cost.valid) note(c);
  return c.cost.valid;
}

void LocalSearch::note(const Candidate& c) {
  if (archive_.wants(c.cost.seconds, c.cost.peak_bytes)) archive_.add(c.retention_points, c.pace, c.cost);
}

// The sequence of runs is made only where it is needed: to simulate copies, and for the archive's hash of the order.
Cost LocalSearch::complete(const Candidate& c, const RetentionPricer::Price& price) {
  made_ = price.copies || archive_.wants(price.seconds, price.peak_bytes);
  if (!made_) return {true, price.seconds, price.peak_bytes};
  return evaluate_.after_price(c.retention_points, c.pace, tried_);
}

// Makes the sequence of the retention points that were priced last.
void LocalSearch::make_sequence(const Candidate& c) {
  if (made_)
    std::swap(sequence_, tried_);
  else
    evaluate_.after_price(c.retention_points, c.pace, sequence_);
  made_ = false;
}

// Moves that could lower the peak: values alive at the fullest item that the item does not use.
std::vector<LocalSearch::Move> LocalSearch::moves_at_peak(const Candidate& c) {
  std::vector<Move> moves;
  const int32_t item = sequence_.peak_item;
  if (item < 0) return moves;
  std::fill(last_use_.begin(), last_use_.end(), -1);
  for (int32_t i = 0; i < item; ++i) {
    for (int32_t v : index_.inputs[sequence_.ops[i]]) last_use_[v] = sequence_.anchor[i];
    for (int32_t v : index_.outputs[sequence_.ops[i]]) last_use_[v] = sequence_.anchor[i];
  }
  for (int32_t v : index_.inputs[sequence_.ops[item]]) last_use_[v] = -1;
  for (int32_t v : index_.outputs[sequence_.ops[item]]) last_use_[v] = -1;
  const int32_t here = sequence_.anchor[item];
  for (const Residency& residency : sequence_.residencies) {
    const int32_t v = residency.value;
    if (residency.begin >= item || residency.end <= item || last_use_[v] < 0 || p_.values[v].bytes == 0)
      continue;
    // Both uses lie within one group of runs.
    if (last_use_[v] >= here && sequence_.anchor[residency.end] == here) continue;
    const int32_t interval = intervals_.at(v, last_use_[v]);
    if (interval < 0 || !rules_.free[interval] || blocked_[interval] == round_) continue;
    const auto bytes = static_cast<double>(p_.values[v].bytes);
    const double seconds = p_.ops[index_.maker[v]].seconds;
    // The value is dropped after its last use and kept once it is recomputed; or it is offloaded.
    if (rules_.remade[interval] &&
        (c.retention_points[interval] < 0 || held_from(c.retention_points[interval]) <= last_use_[v]))
      moves.push_back({interval, last_use_[v] + 1, bytes / (seconds + 1e-12)});
    if (may_send(interval))
      for (int32_t l = 0; l < links_; ++l)
        if (c.retention_points[interval] >= 0)
          moves.push_back({interval, over_link(l), bytes / (seconds / 8 + 1e-12)});
  }
  std::stable_sort(moves.begin(), moves.end(),
                   [](const Move& a, const Move& b) { return a.estimate > b.estimate; });
  if (moves.size() > kMaxMoves && !thorough_) moves.resize(kMaxMoves);
  return moves;
}

bool LocalSearch::descend(Candidate& c, int64_t budget, int64_t work) {
  const int64_t until = evaluate_.work() + work;
  if (!price(c)) return false;
  while (c.cost.peak_bytes > budget) {
    if (evaluate_.work() > until) return false;
    make_sequence(c);
    const double excess = sequence_.excess(budget) + static_cast<double>(c.cost.peak_bytes - budget);
    const std::vector<Move> moves = moves_at_peak(c);
    double best = 0;
    Move chosen{-1, 0, 0};
    for (size_t k = 0; k < moves.size() && (k < kMaxMoves || chosen.interval < 0); ++k) {
      const Move& move = moves[k];
      const int32_t before = c.retention_points[move.interval];
      c.retention_points[move.interval] = move.retention_point;
      if (const RetentionPricer::Price price = evaluate_.price(c.retention_points); price.valid) {
        const double over = evaluate_.priced().excess(budget);
        const auto gain = [&](double seconds, int64_t peak) {
          const double left = over + static_cast<double>(std::max<int64_t>(0, peak - budget));
          const double added = std::max(seconds - c.cost.seconds, 1e-3 * p_.ops[0].seconds + 1e-15);
          return (excess - left) / added;
        };
        const auto fresh = [&](double seconds, int64_t peak) {
          return (peak < c.cost.peak_bytes || seconds < c.cost.seconds) && archive_.wants(seconds, peak);
        };
        if (gain(price.seconds, price.peak_bytes) > best || fresh(price.seconds, price.peak_bytes)) {
          const Cost cost = complete(c, price);
          if (const double found = gain(cost.seconds, cost.peak_bytes); found > best) {
            best = found;
            chosen = move;
          }
          if (fresh(cost.seconds, cost.peak_bytes)) archive_.add(c.retention_points, c.pace, cost);
          made_ = false;
        }
      }
      c.retention_points[move.interval] = before;
    }
    if (chosen.interval < 0) return false;
    c.retention_points[chosen.interval] = chosen.retention_point;
    if (!price(c)) return false;
  }
  return true;
}

void LocalSearch::relax(Candidate& c, int64_t budget, int64_t until) {
  std::vector<Move> given;
  for (int32_t g : free_intervals_)
    if (c.retention_points[g] != rules_.base[g])
      given.push_back({g, rules_.base[g], p_.ops[index_.maker[intervals_.all[g].value]].seconds});
  std::stable_sort(given.begin(), given.end(),
                   [](const Move& a, const Move& b) { return a.estimate > b.estimate; });
  for (const Move& move : given) {
    // Keeps the value throughout, or from when it is recomputed.
    for (int32_t retention_point :
         {move.retention_point, intervals_.all[move.interval].begin + 1, p_.backward_begin}) {
      if (evaluate_.work() > until) return;
      const int32_t before = c.retention_points[move.interval];
      if (retention_point == before ||
          (retention_point != move.retention_point && before < retention_point) ||
          !rules_.allows(move.interval, retention_point))
        continue;
      c.retention_points[move.interval] = retention_point;
      const auto good = [&](double seconds, int64_t peak) {
        return peak <= budget &&
               (seconds < c.cost.seconds || (seconds == c.cost.seconds && peak <= c.cost.peak_bytes));
      };
      const RetentionPricer::Price price = evaluate_.price(c.retention_points, c.cost.seconds);
      if (price.valid && good(price.seconds, price.peak_bytes)) {
        const Cost cost = complete(c, price);
        if (good(cost.seconds, cost.peak_bytes)) {
          c.cost = cost;
          note(c);
          break;
        }
      }
      c.retention_points[move.interval] = before;
    }
  }
}

// Plans that keep almost nothing, from which relax() starts. Either the values saved for backward are dropped, or all
// values are dropped after each use. Recomputed values are kept, or not.
std::vector<RetentionPoints> LocalSearch::minimal() const {
  std::vector<RetentionPoints> all(4, rules_.base);
  for (int32_t g : free_intervals_) {
    if (!rules_.remade[g]) continue;
    const Intervals::Interval& interval = intervals_.all[g];
    if (rules_.across[interval.value] == g) {
      all[0][g] = p_.backward_begin;
      all[1][g] = kNever;
    }
    if (interval.end == kNever) {
      all[1][g] = all[3][g] = kNever;
      continue;
    }
    all[2][g] = interval.begin + 1;
    all[3][g] = kNever;
  }
  return all;
}

void LocalSearch::perturb(Candidate& c) {
  std::vector<int32_t> given;
  for (int32_t g : free_intervals_)
    if (c.retention_points[g] != rules_.base[g]) given.push_back(g);
  const int count = 1 + static_cast<int>(random() % kPerturbations);
  if (!given.empty() && chance(70)) {
    // Keeps a few neighbours again, and excludes them from the descent that follows.
    const size_t first = random() % given.size();
    for (int k = 0; k < count; ++k) {
      const size_t near = chance(70) ? first + static_cast<size_t>(k) : random() % given.size();
      if (near >= given.size()) continue;
      c.retention_points[given[near]] = rules_.base[given[near]];
      blocked_[given[near]] = round_;
    }
    return;
  }
  if (free_intervals_.empty()) return;
  for (int k = 0; k < count; ++k) {
    const int32_t g = free_intervals_[random() % free_intervals_.size()];
    if (!rules_.remade[g]) {
      if (links_ > 0) c.retention_points[g] = random_link();
      continue;
    }
    const Intervals::Interval& interval = intervals_.all[g];
    const int32_t end = interval.end == kNever ? static_cast<int32_t>(p_.ops.size()) : interval.end;
    const int32_t from = std::max(interval.begin + 1, chance(60) ? p_.backward_begin : 0);
    c.retention_points[g] = chance(15) ? kNever
                            : chance(70) || end <= from
                                ? from
                                : from + static_cast<int32_t>(random() % static_cast<uint64_t>(end - from));
  }
}

double LocalSearch::energy(double seconds, int64_t peak, int64_t budget) const {
  return seconds / index_.total_seconds +
         kOverweight * static_cast<double>(std::max<int64_t>(0, peak - budget)) /
             static_cast<double>(std::max<int64_t>(1, budget - index_.persistent_bytes));
}

// Whether annealing accepts `c`, which was priced last. If so, `cost` and tried_ are those of `c`. Copies are
// simulated only where their least cost does not decide.
bool LocalSearch::accept(const Candidate& c, const RetentionPricer::Price& price, double now, double heat,
                         int64_t budget, Cost& cost) {
  const auto draw = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  const double least = energy(price.seconds, price.peak_bytes, budget);
  double drawn = -1;
  if (least > now) {
    drawn = draw();
    if (drawn >= std::exp((now - least) / heat) * (price.copies ? 1 + kExpRounding : 1)) return false;
  }
  cost = evaluate_.after_price(c.retention_points, c.pace, tried_);
  if (!price.copies) return true;
  const double then = energy(cost.seconds, cost.peak_bytes, budget);
  return then <= now || (drawn < 0 ? draw() : drawn) < std::exp((now - then) / heat);
}

void LocalSearch::anneal(Candidate c, int64_t budget, int64_t work) {
  if (free_intervals_.empty()) return;
  c.cost = evaluate_(c.retention_points, c.pace, sequence_);
  if (!c.cost.valid) return;
  note(c);
  const int64_t from = evaluate_.work(), until = from + work;
  const double scale = index_.total_seconds;
  double now = energy(c.cost.seconds, c.cost.peak_bytes, budget);
  std::vector<int32_t> trace = evaluate_.trace_of(c.retention_points);
  std::vector<std::pair<int32_t, int32_t>> undo;
  while (evaluate_.work() < until) {
    const double done = static_cast<double>(evaluate_.work() - from) / static_cast<double>(work);
    const double heat = kHot * std::pow(kCold / kHot, done) / static_cast<double>(p_.ops.size());
    undo.clear();
    change_something(c, budget, undo);
    const RetentionPricer::Price price =
        evaluate_.price(c.retention_points, (now + kSurelyNot * heat) * scale);
    if (price.valid && evaluate_.priced().trace() == trace) {  // the change has no effect
      note(c);
    } else if (Cost cost; price.valid && accept(c, price, now, heat, budget, cost)) {
      now = energy(cost.seconds, cost.peak_bytes, budget);
      c.cost = cost;
      trace = evaluate_.priced().trace();
      std::swap(sequence_, tried_);
      note(c);
    } else {
      for (; !undo.empty(); undo.pop_back()) c.retention_points[undo.back().first] = undo.back().second;
    }
  }
}

void LocalSearch::search(Candidate& best, int64_t budget, int64_t work) {
  const int64_t until = evaluate_.work() + work;
  if (free_intervals_.empty()) return;
  relax(best, budget, std::max(until, evaluate_.work() + kRelaxWork));
  while (evaluate_.work() < until) {
    ++round_;
    Candidate c = best;
    perturb(c);
    if (!price(c)) continue;
    if (c.cost.peak_bytes > budget && !descend(c, budget)) continue;
    relax(c, budget, until);
    if (c.cost.seconds < best.cost.seconds ||
        (c.cost.seconds == best.cost.seconds && c.cost.peak_bytes <= best.cost.peak_bytes))
      best = std::move(c);
  }
}

void LocalSearch::shrink(Candidate& best, int64_t work) {
  const int64_t until = evaluate_.work() + work;
  if (free_intervals_.empty()) return;
  while (evaluate_.work() < until) {
    ++round_;
    Candidate c = best;
    if (round_ > 1) perturb(c);
    if (!price(c) ||
        (c.cost.peak_bytes >= best.cost.peak_bytes &&
         !descend(c, best.cost.peak_bytes - 1, thorough_ ? until - evaluate_.work() : kUnlimited)))
      continue;
    best = std::move(c);
  }
}

}  // namespace cairn::plan
