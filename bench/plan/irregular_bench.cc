// How good plans are for graphs that are no chain of blocks, and how long they take: one line of a Markdown table per
// problem.
//   bench_irregular [KIND/SIZE ...]      default: every kind of bench/plan/irregular.h at two sizes, and random/3000
// Columns: ops; the smallest budget that is named, as a share of the activations of keeping everything, and the
// processor seconds until it is; at the greater of 25 % and 1.2 times the smallest (random: 60 %): the gap to the
// bound and processor seconds; seconds against keeping everything at 1.3 and 1.02 times the smallest; the largest
// step up from one budget to a higher one among 9 between the smallest and everything. Graphs without a backward
// half: the slowdown at 90 and 80 % of their peak instead of the gap, the seconds of both.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "bench/arguments.h"
#include "bench/plan/irregular.h"
#include "bench/plan/problems.h"
#include "runtime/base/error.h"
#include "runtime/plan/plan.h"

namespace cairn::bench {
namespace {

using plan::Plan;
using plan::Problem;

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Point {
  bool fits = false;
  int64_t smallest = 0;
  double slowdown = 0, gap = 0, seconds = 0;
};

Point plan_at(Problem& p, int64_t budget) {
  p.budget_bytes = budget;
  Point point;
  const double start = processor_seconds();
  try {
    const Plan plan = plan::solve(p);
    point.seconds = processor_seconds() - start;
    const std::string wrong = violation(p, plan);
    require(wrong.empty(), Code::kInternal, wrong);
    point.fits = true;
    point.slowdown = plan.predicted_seconds / plan.keep_all_seconds;
    point.gap = plan.gap;
  } catch (const Error& e) {
    if (e.code() != Code::kOverBudget || e.fault() == nullptr) throw;
    point.seconds = processor_seconds() - start;
    point.smallest = static_cast<int64_t>(e.fault()->smallest_budget_bytes);
  }
  return point;
}

std::string times(const Point& point) {
  return point.fits ? cat(point.slowdown, "x") : std::string("refused");
}

void row(const std::string& kind, int size) {
  Problem p = make_problem(kind, size);
  const int64_t fixed = p.persistent_bytes();
  const int64_t all = plan::solve(p).device_peak_bytes - fixed;
  const Point least = plan_at(p, 1);
  const int64_t smallest = least.smallest - fixed;
  const auto at = [&](double bytes) { return plan_at(p, fixed + static_cast<int64_t>(bytes)); };
  const bool no_backward = p.backward_begin == static_cast<int32_t>(p.ops.size());
  const double whole = static_cast<double>(all), low = static_cast<double>(smallest);
  std::printf("| %s/%d | %zu | %.2f %% | %.1f | ", kind.c_str(), size, p.ops.size(), 100 * low / whole,
              least.seconds);
  std::fflush(stdout);
  if (no_backward) {
    const Point high = at(.9 * whole), lower = at(.8 * whole);
    std::printf("90 %%: %s, 80 %%: %s | %.1f, %.1f | ", times(high).c_str(), times(lower).c_str(),
                high.seconds, lower.seconds);
  } else {
    const Point main = at(std::max((kind == "random" ? .6 : .25) * whole, 1.2 * low));
    std::printf("%s %.2f %% | %.1f | ", times(main).c_str(), 100 * main.gap, main.seconds);
  }
  std::fflush(stdout);
  const Point above = at(1.3 * low), close = at(1.02 * low);
  std::printf("%s | %s | ", times(above).c_str(), times(close).c_str());
  std::fflush(stdout);
  double step = 0, before = 0, worst_seconds = 0;
  for (int k = 0; k < 9; ++k) {
    const Point point = at(low + (whole - low) * k * k / 81.0);
    worst_seconds = std::max(worst_seconds, point.seconds);
    if (before > 0 && point.fits) step = std::max(step, point.slowdown / before - 1);
    if (point.fits) before = point.slowdown;
  }
  std::printf("%.2f %% | %.1f |\n", 100 * step, worst_seconds);
  std::fflush(stdout);
}

}  // namespace
}  // namespace cairn::bench

int main(int argc, char** argv) {
  std::vector<std::pair<std::string, int>> rows = {
      {"unet_attention", 2},   {"unet_attention", 4},   {"dense", 10},     {"dense", 24},
      {"encoder_decoder", 20}, {"encoder_decoder", 48}, {"experts", 6},    {"experts", 24},
      {"recurrent", 60},       {"recurrent", 200},      {"inception", 12}, {"inception", 36},
      {"layered", 100},        {"layered", 300},        {"layered", 1000}, {"random", 300},
      {"random", 3000}};
  std::vector<std::string> kinds = cairn::bench::irregular_kinds();
  kinds.insert(kinds.end(), {"random", "chain", "transformer", "unet"});
  std::string known;
  for (const std::string& kind : kinds) known += " " + kind;
  const cairn::bench::Arguments arguments(argc, argv,
                                          "bench_irregular [KIND/SIZE ...]\nKIND: one of" + known);
  const auto& words = arguments.words(SIZE_MAX);
  if (!words.empty()) rows.clear();
  for (const std::string& word : words) {
    const size_t slash = word.find('/');
    const std::string kind = word.substr(0, slash);
    if (slash == std::string::npos || std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
      arguments.refuse("problem", word, "KIND/SIZE with a KIND of" + known);
    rows.emplace_back(kind, arguments.whole_of("size of " + kind, word.substr(slash + 1)));
  }
  std::printf(
      "| problem | ops | smallest | s | slowdown, gap | s | at 1.3x | at 1.02x | step up | slowest s |\n");
  std::printf("|---|---|---|---|---|---|---|---|---|---|\n");
  for (const auto& [kind, size] : rows) cairn::bench::row(kind, size);
  return 0;
}
