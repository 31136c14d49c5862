#include "runtime/plan/bound/program_point.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

namespace cairn::plan {
namespace {

constexpr int kCuts = 60, kPointRounds = 20, kBisections = 100;  // limits of searches, which end long before
constexpr double kGolden = 0.6180339887498949;                   // the golden section
constexpr int64_t kItemsPerWork = 8;                             // an item is looked at faster than an arc
constexpr int64_t kMinParts = 100;  // work per arc below which the search does not raise the bound
constexpr double kSame = 1e-11;     // relative difference of equal sums

}  // namespace

void Remake::restart() {
  cuts_.clear();
  cuts_.push_back(closure_.cut(0));
}

const Cut& Remake::line(double available) const {
  const Cut* best = &cuts_[0];
  for (const Cut& cut : cuts_)
    if (cut.below(available) > best->below(available)) best = &cut;
  return *best;
}

size_t Remake::first_within(double available) const {
  size_t i = 0;
  while (i < cuts_.size() && cuts_[i].bytes > available) ++i;
  return i;
}

bool Remake::refine(double available) {
  if (available >= cuts_[0].bytes) return false;
  bool added = false;
  // The highest price that can matter: all the seconds for one byte. If even that frees too little, no plan fits.
  const double limit = closure_.total_seconds();
  while (cuts_.back().bytes > available && cuts_.back().price < limit) {
    const double price = std::max({4 * cuts_.back().price, closure_.dearest(), 1e-9 * limit,
                                   std::numeric_limits<double>::min()});  // rises for subnormal seconds
    cuts_.push_back(closure_.cut(std::min(price, limit)));
    added = true;
  }
  for (int k = 0; k < kCuts; ++k) {
    // The line through the two cuts around these bytes lies above the function. The line of the same slope that
    // touches the function is found by the next cut.
    const size_t i = first_within(available);
    if (i == cuts_.size()) return added;
    const Cut &more = cuts_[i - 1], &less = cuts_[i];
    const double price = (less.seconds - more.seconds) / (more.bytes - less.bytes);
    if (!(price > more.price && price < less.price)) return added;
    const Cut cut = closure_.cut(price);
    const bool flat = cut.flow >= (less.seconds + price * less.bytes) * (1 - kSame);
    const bool between = cut.bytes < more.bytes && cut.bytes > less.bytes;
    added = true;
    cuts_.insert(cuts_.begin() + static_cast<int64_t>(i), cut);
    if (flat || !between) return added;
  }
  return added;
}

int32_t Remake::undecided(double available) {
  const size_t i = first_within(available);
  if (i == 0 || i == cuts_.size() || cuts_[i].bytes == available) return -1;
  closure_.cut(cuts_[i - 1].price);
  std::vector<uint8_t> remade(static_cast<size_t>(closure_.ops()));
  for (int32_t k = 0; k < closure_.ops(); ++k) remade[k] = closure_.remade(k);
  closure_.cut(cuts_[i].price);
  int32_t longest = -1;
  for (int32_t k = 0; k < closure_.ops(); ++k)
    if (closure_.remade(k) && !remade[k] && (longest < 0 || closure_.seconds(k) > closure_.seconds(longest)))
      longest = k;
  return longest;
}

ProgramPoint::ProgramPoint(const Problem& p, const Index& index, int32_t at, double before,
                           int64_t budget_bytes, const HomeReads& homes, double late)
    : closure_(p, index, at),
      remake_(closure_),
      room_(static_cast<double>(budget_bytes - index.persistent_bytes - p.ops[at].workspace_bytes -
                                closure_.busy_bytes() - homes.bytes(static_cast<size_t>(at)))),
      late_(late),
      before_(before + late),
      after_(index.total_seconds - before),
      home_(least_home_seconds(homes, budget_bytes)) {
  // A latency per copy is at least this much per byte of the largest value.
  const auto largest = static_cast<double>(std::max(closure_.largest_bytes(), homes.largest_bytes));
  const auto rate = [&](double bytes_per_second, double latency) {
    return largest > 0 ? 1 / (1 / bytes_per_second + latency / largest) : bytes_per_second;
  };
  for (size_t l = 0; l < p.links.size(); ++l) {
    const Link& link = p.links[l];
    tiers_.push_back(
        {static_cast<double>(link.capacity_bytes), rate(link.out_bytes_per_second, link.latency_seconds),
         rate(link.in_bytes_per_second, link.latency_seconds),
         homes.after.empty() ? 0 : static_cast<double>(homes.after[l][static_cast<size_t>(at)])});
  }
  if (!homes.values.empty())
    crossing_.emplace(p, at, before, after_,
                      room_ + static_cast<double>(homes.bytes(static_cast<size_t>(at))),
                      static_cast<double>(budget_bytes - index.persistent_bytes - homes.last_workspace_bytes),
                      largest, homes, late_);
}

// growth: how many more bytes are available per second of extra.
double ProgramPoint::available(double stall, double extra, double* growth) const {
  double bytes = room_;
  for (const Tier& t : tiers_) {
    const double in = t.in * (after_ + extra),
                 other = t.home + std::min(t.capacity, t.out * (before_ + stall));
    bytes += std::min(in, other);
    if (growth && in < other) *growth += t.in;
  }
  return bytes;
}

// The root of remake(available(stall, extra)) - extra, convex and falling in extra: Newton's steps come from
// the left and never pass it.
double ProgramPoint::extra_after(double stall, double more_room) const {
  double extra = 0;
  for (int step = 0; step < kBisections; ++step) {
    double growth = 0;
    const double bytes = more_room + available(stall, extra, &growth);
    const Cut& line = remake_.line(bytes);
    ++work_;
    const double missing = line.below(bytes) - extra;
    if (!(missing > 0)) break;
    const double next = extra + missing / (1 + line.price * growth);
    if (!(next > extra)) break;
    extra = next;
  }
  return extra;
}

// The least stall + extra with extra >= remake(available(stall, extra)), by the lines found so far.
ProgramPoint::Answer ProgramPoint::best(double more_room) const {
  const double most = extra_after(0, more_room);
  double stall = 0;
  if (!tiers_.empty() && most > 0) {
    // stall + extra_after(stall) is convex: a projection of a linear program.
    const auto sum = [&](double s) { return s + extra_after(s, more_room); };
    // By the golden section, one of the two points in between is looked at again.
    double low = 0, high = most, a = high - kGolden * (high - low), b = low + kGolden * (high - low);
    double at_a = sum(a), at_b = sum(b);
    for (int step = 0; step < kBisections && high - low > 1e-14 * most; ++step) {
      if (at_a <= at_b) {
        high = std::exchange(b, a);
        at_b = at_a;
        a = high - kGolden * (high - low);
        at_a = sum(a);
      } else {
        low = std::exchange(a, b);
        at_a = at_b;
        b = low + kGolden * (high - low);
        at_b = sum(b);
      }
    }
    for (double s : {low, high})
      if (sum(s) < sum(stall)) stall = s;
  }
  const double extra = extra_after(stall, more_room);
  return {stall + extra, more_room + available(stall, extra), {}};
}

ProgramPoint::Answer ProgramPoint::solve() {
  Answer answer = best(0);
  for (int round = 0; round < kPointRounds && remake_.refine(answer.available); ++round) answer = best(0);
  answer.seconds += std::max(home_, late_);  // the home_seconds may pass before the first op
  if (!crossing_) return answer;
  for (int round = 0; round < kPointRounds; ++round) {
    Crossing::Answer crossed = crossing_->least(remake_.lines());
    work_ += crossed.work;
    answer.seconds = std::max(answer.seconds, crossed.seconds);
    answer.here = std::move(crossed.here);
    if (!remake_.refine(crossed.available)) break;
  }
  return answer;
}

double ProgramPoint::byte_price() const {
  const double step = std::max(1.0, 1e-6 * room_);
  return std::max(0.0, (best(0).seconds - best(step).seconds) / step);
}

double ProgramPoint::solve_whole(int64_t work_limit) {
  const Answer answer = solve();
  if (tiers_.empty()) {
    const std::vector<OptionSet> option_sets = closure_.option_sets();
    if (!option_sets.empty()) {
      work_ += work_limit;
      return choose_least(option_sets, room_, remake_price(answer), answer.seconds,
                          kItemsPerWork * work_limit);
    }
  }
  return work_limit < kMinParts * closure_.size() ? answer.seconds : branch(work_limit);
}

double ProgramPoint::branch(int64_t work_limit) {
  // A subset of the plans: those that make the choices on the way to the root of the search tree. It has a bound, and
  // the op by which it is split.
  struct Part {
    double bound;
    int32_t parent, op;
    Closure::Decision decision;
    int32_t split;
  };
  std::vector<Part> parts;
  const auto later = [&](int32_t a, int32_t b) { return parts[a].bound > parts[b].bound; };
  std::priority_queue<int32_t, std::vector<int32_t>, decltype(later)> open(later);
  const auto add = [&](int32_t parent, int32_t op, Closure::Decision decision) {
    if (op >= 0) closure_.fix(op, decision);
    remake_.restart();
    const Answer answer = solve();
    // A subset of plans is never better than the set.
    const double known = parent >= 0 ? parts[parent].bound : 0;
    parts.push_back(
        {std::max(known, answer.seconds), parent, op, decision, remake_.undecided(answer.available)});
    if (op >= 0) closure_.fix(op, Closure::Decision::kFree);
    open.push(static_cast<int32_t>(parts.size()) - 1);
  };
  const auto fix_all = [&](int32_t part, bool free) {
    for (int32_t i = part; i > 0; i = parts[i].parent)
      closure_.fix(parts[i].op, free ? Closure::Decision::kFree : parts[i].decision);
  };
  const int64_t stop = work() + work_limit;
  add(-1, -1, Closure::Decision::kFree);
  while (work() < stop) {
    const int32_t part = open.top(), op = parts[part].split;
    if (op < 0) break;
    open.pop();
    fix_all(part, false);
    for (const auto decision : {Closure::Decision::kRemade, Closure::Decision::kStays})
      add(part, op, decision);
    fix_all(part, true);
  }
  return parts[open.top()].bound;
}

}  // namespace cairn::plan
