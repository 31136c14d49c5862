#include "runtime/plan/bound/bound.h"

#include <algorithm>
#include <limits>

#include "runtime/plan/bound/program_point.h"
#include "runtime/plan/bound/several_points.h"
#include "runtime/plan/plan.h"

namespace cairn::plan {
namespace {

constexpr double kSumRounding = 1e-9;  // allowance for the searches' and the sums' floating-point error
// Limits of the arcs, nodes and lines looked at, of about 10 ns each: for shares of ops, per op, and for ops in one
// piece.
constexpr int64_t kWork = 6'000'000, kWorkPerOp = 300, kWholeWork = 1'500'000;
constexpr int64_t kSeveralWork = 250'000'000;  // limit for a bound of several points
constexpr int64_t kLookWork = 10;              // per op before a program point, to set it up
constexpr size_t kRoughPoints = 12;            // program points of the rough bound
constexpr size_t kPointsBehind = 2;            // where ops have a time before which they do not begin
constexpr size_t kWholeMoments = 4;
constexpr int64_t kMinWork = 25;  // per op, for a search over ops in one piece

// Bytes that need a place at each op when every value is kept until its last use.
std::vector<int64_t> pressures(const Problem& p, const Index& index, const HomeReads& homes) {
  const size_t ops = p.ops.size();
  std::vector<int64_t> bytes(ops + 1, 0);
  for (size_t v = 0; v < p.values.size(); ++v) {
    if (p.values[v].persistent || index.maker[v] < 0) continue;
    const auto readers = index.readers[static_cast<int64_t>(v)];
    const int32_t last = std::max(index.maker[v], readers.empty() ? -1 : readers.back());
    bytes[static_cast<size_t>(index.maker[v])] += p.values[v].bytes;
    bytes[static_cast<size_t>(last) + 1] -= p.values[v].bytes;
  }
  for (size_t i = 1; i < ops; ++i) bytes[i] += bytes[i - 1];
  bytes.pop_back();
  for (size_t i = 0; i < ops; ++i)
    bytes[i] += p.ops[i].workspace_bytes + index.persistent_bytes + homes.bytes(i);
  return bytes;
}

// Ops over the budget in the order in which they are looked at: the one with the highest excess, the beginning of
// backward, then the peaks among their neighbours and the rest, each by falling excess. Before the first op nothing
// can be missing but values that may live in a tier.
std::vector<int32_t> points(const Problem& p, const std::vector<int64_t>& pressure, int64_t budget,
                            bool homes) {
  std::vector<int32_t> order;
  const auto ops = static_cast<int32_t>(p.ops.size());
  std::vector<uint8_t> rank(p.ops.size(), 2);
  for (int32_t i = homes ? 0 : 1; i < ops; ++i) {
    if (pressure[i] <= budget) continue;
    order.push_back(i);
    if ((i == 0 || pressure[i] >= pressure[i - 1]) && (i + 1 == ops || pressure[i] > pressure[i + 1]))
      rank[i] = 1;
  }
  if (order.empty()) return order;
  rank[*std::max_element(order.begin(), order.end(),
                         [&](int32_t a, int32_t b) { return pressure[a] < pressure[b]; })] = 0;
  if (p.backward_begin < ops) rank[p.backward_begin] = 0;
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return rank[a] != rank[b] ? rank[a] < rank[b] : pressure[a] > pressure[b];
  });
  return order;
}

// Seconds of all ops before each one.
std::vector<double> seconds_before(const Problem& p) {
  std::vector<double> before(p.ops.size() + 1, 0);
  for (size_t i = 0; i < p.ops.size(); ++i) before[i + 1] = before[i] + p.ops[i].seconds;
  return before;
}

// One for small problems, as starting another thread takes as long as the work.
int threads_for(const Problem& p, int threads) {
  return p.ops.size() > kSmallProblem ? std::min(threads, usable_processors()) : 1;
}

struct Looked {
  double seconds = 0;
  int64_t work = 0;
};

// Bounds of single program points, as many as the work limit allows: the seconds that each adds, where that is more
// than the parameter `home`. Ends at one that adds `enough`.
std::vector<Bound> of_points(const Problem& p, const Index& index, int64_t budget_bytes,
                             const HomeReads& homes, double home, const std::vector<double>& before,
                             double enough, int most_threads) {
  std::vector<Bound> found;
  int64_t work = kWork + kWorkPerOp * static_cast<int64_t>(p.ops.size());
  const std::vector<int32_t> order =
      points(p, pressures(p, index, homes), budget_bytes, !homes.after.empty());
  const int threads = threads_for(p, most_threads);
  // On one thread, points are looked at one by one, so that none is looked at in vain.
  const size_t at_once = threads > 1 ? 2 * static_cast<size_t>(threads) : 1;
  std::vector<Looked> looked;
  for (size_t k = 0; k < order.size() && (k < 2 || work > 0); ++k) {
    const int32_t at = order[k];
    if (k == looked.size()) {
      const size_t more = std::min(order.size() - k, k == 0 ? std::min<size_t>(2, at_once) : at_once);
      looked.resize(k + more);
      in_parallel(threads, more, [&](size_t i) {
        const int32_t point_at = order[k + i];
        ProgramPoint point(p, index, point_at, before[point_at], budget_bytes, homes);
        looked[k + i].seconds = point.solve().seconds;
        looked[k + i].work = point.work();
      });
    }
    const double seconds = looked[k].seconds;
    if (seconds > home) found.push_back({seconds, at});
    if (seconds >= enough) break;
    work -= looked[k].work + kLookWork * at;
  }
  return found;
}

}  // namespace

double least_home_seconds(const HomeReads& homes, int64_t budget_bytes) {
  double seconds = 0;
  std::vector<const HomeReads::Value*> dear;
  for (const HomeReads::Value& value : homes.values) {
    if (value.may_stay && value.bytes == 0) continue;
    seconds += value.home_seconds;
    if (value.may_stay) dear.push_back(&value);
  }
  const auto per_byte = [](const HomeReads::Value* value) {
    return value->home_seconds / static_cast<double>(value->bytes);
  };
  std::stable_sort(dear.begin(), dear.end(),
                   [&](const auto* a, const auto* b) { return per_byte(a) > per_byte(b); });
  double room =
      budget_bytes > 0 ? static_cast<double>(budget_bytes) : std::numeric_limits<double>::infinity();
  for (const HomeReads::Value* value : dear) {
    if (!(room > 0)) break;
    seconds -= per_byte(value) * std::min(room, static_cast<double>(value->bytes));
    room -= static_cast<double>(value->bytes);
  }
  return seconds;
}

Bound lower_bound(const Problem& p, const Index& index, int64_t budget_bytes, const HomeReads& homes,
                  double enough, int threads) {
  const double home = least_home_seconds(homes, budget_bytes);
  Bound none{index.total_seconds + home, -1, 0, 0};
  if (budget_bytes == 0) return none;
  const std::vector<double> before = seconds_before(p);
  const double enough_added = (enough - index.total_seconds) / (1 - kSumRounding);
  std::vector<Bound> found = of_points(p, index, budget_bytes, homes, home, before, enough_added, threads);
  if (found.empty()) return none;
  const auto higher = [](const Bound& a, const Bound& b) {
    return a.seconds != b.seconds ? a.seconds > b.seconds : a.point < b.point;
  };
  std::sort(found.begin(), found.end(), higher);
  if (found.size() > kWholeMoments) found.resize(kWholeMoments);
  int64_t work = kWholeWork;
  for (size_t k = 0; k < found.size() && found[0].seconds < enough_added; ++k) {
    const int32_t at = found[k].point;
    const int64_t share = work / static_cast<int64_t>(found.size() - k);
    if (share < kMinWork * at) continue;  // too little work to raise the bound
    ProgramPoint point(p, index, at, before[at], budget_bytes, homes);
    found[k].seconds = std::max(found[k].seconds, point.solve_whole(share));
    work -= point.work();
  }
  Bound best = *std::min_element(found.begin(), found.end(), higher);
  ProgramPoint point(p, index, best.point, before[best.point], budget_bytes, homes);
  const ProgramPoint::Answer answer = point.solve();
  best.byte_price = point.byte_price();
  best.remake_price = point.remake_price(answer);
  best.seconds = index.total_seconds + best.seconds * (1 - kSumRounding);
  return best;
}

double lower_bound_seconds_behind(const Problem& p, const Index& index, int64_t budget_bytes,
                                  const HomeReads& homes, const std::vector<double>& earliest, int threads) {
  const std::vector<double> before = seconds_before(p);
  const auto late = [&](int32_t op) { return std::max(0.0, earliest[op] - before[op]); };
  double most = least_home_seconds(homes, budget_bytes);
  for (int32_t op = 0; op < static_cast<int32_t>(p.ops.size()); ++op) most = std::max(most, late(op));
  if (budget_bytes > 0) {
    std::vector<int32_t> order = points(p, pressures(p, index, homes), budget_bytes, !homes.after.empty());
    order.resize(std::min(order.size(), kPointsBehind));
    std::vector<double> seconds(order.size());
    in_parallel(threads_for(p, threads), order.size(), [&](size_t k) {
      const int32_t at = order[k];
      seconds[k] = ProgramPoint(p, index, at, before[at], budget_bytes, homes, late(at)).solve().seconds;
    });
    for (const double point : seconds) most = std::max(most, point);
  }
  return index.total_seconds + most * (1 - kSumRounding);
}

double several_points_bound_seconds(const Problem& p, const Index& index, int64_t budget_bytes, int threads) {
  if (budget_bytes == 0 || !p.links.empty()) return index.total_seconds;
  std::vector<std::pair<double, int32_t>> single;
  for (const Bound& bound : of_points(p, index, budget_bytes, {}, 0, seconds_before(p),
                                      std::numeric_limits<double>::infinity(), threads))
    single.emplace_back(bound.seconds, bound.point);
  return index.total_seconds +
         several_points_seconds(p, index, budget_bytes, std::move(single), kSeveralWork) * (1 - kSumRounding);
}

double rough_bound_seconds(const Problem& p, const Index& index, int64_t budget_bytes) {
  if (budget_bytes == 0) return index.total_seconds;
  const std::vector<double> before = seconds_before(p);
  std::vector<int32_t> order = points(p, pressures(p, index, {}), budget_bytes, false);
  order.resize(std::min(order.size(), kRoughPoints));
  double most = 0;
  for (const int32_t at : order)
    most = std::max(most, ProgramPoint(p, index, at, before[at], budget_bytes).solve().seconds);
  return index.total_seconds + most * (1 - kSumRounding);
}

std::vector<double> shares_here(const Problem& p, const Index& index, int64_t budget_bytes,
                                const HomeReads& homes) {
  if (budget_bytes == 0 || p.backward_begin >= static_cast<int32_t>(p.ops.size())) return {};
  return ProgramPoint(p, index, p.backward_begin, index.forward_seconds, budget_bytes, homes).solve().here;
}

double lower_bound_seconds(const Problem& p, const Index& index, int64_t budget_bytes, const HomeReads& homes,
                           double enough, int threads) {
  return lower_bound(p, index, budget_bytes, homes, enough, threads).seconds;
}

}  // namespace cairn::plan
