// The planner's output: immutable once made, readable, serialisable. The steps define the plan completely; everything
// else explains them.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/plan/problem.h"

namespace cairn::plan {

enum class StepKind : uint8_t { kRun, kFree, kOut, kWaitOut, kIn, kWaitIn, kDrop };

// kRun: index is an op, offsets are the device offsets of its outputs that are not persistent, in the order of
// Op::outputs (-1 for persistent ones). For other kinds, index is a value, tier indexes Problem::links, and offset is
// the device offset (kIn). tier_offset: the copy's place in that tier's arena (kOut, kIn, kDrop). A value that lives
// in its tier is fetched by kIn, and kFree alone ends its residency on the device. If an op has changed it, kOut
// copies it back to its tier first. Its copy in the tier is never dropped.
struct Step {
  StepKind kind = StepKind::kRun;
  int32_t index = -1;
  int32_t tier = -1;
  int64_t offset = -1;  // kIn: device offset; kRun: workspace offset
  int64_t tier_offset = -1;
  std::vector<int64_t> offsets;  // kRun only: one per output
};

enum class Decision : uint8_t { kKeep = 0, kRecompute = 1, kOffload = 2, kPersistent = 3 };

struct ValuePlan {
  Decision decision = Decision::kKeep;
  int32_t tier = -1;                        // kOffload: index into Problem::links
  int64_t offset = -1;                      // first device offset
  int32_t first_step = -1, last_step = -1;  // device lifetime over all residencies
  std::string reason;
};

// Bytes of values that backward needs, by the decision about them.
struct Totals {
  int64_t keep_bytes = 0;
  int64_t recompute_bytes = 0;
  std::vector<int64_t> offload_bytes;  // per link: bytes offloaded over it
};

struct Plan {
  int64_t budget_bytes = 0;
  int64_t arena_bytes = 0;                // highest end of any device allocation, persistent values included
  int64_t device_peak_bytes = 0;          // most bytes alive at once
  std::vector<int64_t> tier_peak_bytes;   // per link: most bytes of copies held at once
  std::vector<int64_t> tier_arena_bytes;  // per link: height of its arena
  double predicted_seconds = 0, keep_all_seconds = 0, bound_seconds = 0, gap = 0, solve_seconds = 0;
  std::vector<int64_t> value_offsets;  // persistent values kept on the device: device offset; others -1
  std::vector<int64_t> home_offsets;  // values that live in their tier: place in that tier's arena; others -1
  std::vector<ValuePlan> values;      // one per Problem::values
  std::vector<Step> steps;
  Totals totals;
  int32_t peak_step = -1;  // the step whose allocation sets the arena's height
};

// Solves the problem: a plan with arena_bytes <= problem.budget_bytes, or Error(kOverBudget) whose fault
// names the smallest budget that would do and whose message names the op at the peak and the five largest
// values alive there. Pure and deterministic (solve_seconds excepted). budget_bytes == 0 in the problem means
// "no limit".
Plan solve(const Problem&);

// A plan per budget (0: no limit; problem.budget_bytes is ignored), nothing where none fits. The plans are the same
// as those of one solve() per budget, but a small problem is searched only once.
inline constexpr size_t kSmallProblem = 160;  // problems of at most so many ops
// For so few ops, a search for all budgets takes less time than one for a single budget.
inline constexpr size_t kTinyProblem = 48;
std::vector<std::optional<Plan>> solve_all(const Problem&, const std::vector<int64_t>& budgets);

// Replays the steps by the rules of the plan form, independently of the solver: allocation overlaps,
// liveness, copies in flight, order, budgets, claimed peaks. Returns "" or the first violation.
std::string violation(const Problem&, const Plan&);

// Event simulation of the steps: compute lane and two copy lanes per link. ready: per value, no copy of it to the
// device begins sooner; empty: no limits.
struct Timeline {
  double seconds = 0, stall_seconds = 0, recompute_seconds = 0;
  std::vector<std::array<double, 2>> step_span;  // begin, end of each step on its lane
};
Timeline simulate(const Problem&, const Plan&, const std::vector<double>& ready = {});

std::string to_json(const Problem&);
std::string to_json(const Problem&, const Plan&, bool with_steps);
Problem problem_from_json(std::string_view text);  // kInvalidArgument / kCorruptFile naming the place

// One self-contained HTML page: seconds over the budget, memory over time by category, lanes, the values at the peak,
// a table of values. The curve solves the problem once per budget.
struct ReportOptions {
  std::string title;
  std::vector<std::string> facts;       // below the title of the page: "word: text"
  std::vector<std::string> categories;  // category name per value index (same length as values), may be empty
  int curve_budgets = -1;               // -1: as many as the problem's size allows; 0: no curve
  const Problem* other_form =
      nullptr;  // that what people do by hand may have, too (runtime/report/baselines.h)
};
std::string to_html(const Problem&, const Plan&, const ReportOptions&);
// The memory timeline alone, as an SVG picture.
std::string to_svg(const Problem&, const Plan&, const ReportOptions&);

}  // namespace cairn::plan
