#include "runtime/plan/residency/home_solver.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "runtime/base/text/cat.h"
#include "runtime/plan/bound/bound.h"
#include "runtime/plan/explain.h"
#include "runtime/plan/residency/exposed.h"
#include "runtime/plan/residency/placement.h"
#include "runtime/plan/residency/spread.h"
#include "runtime/plan/residency/traffic.h"
#include "runtime/plan/residency/trials.h"
#include "runtime/plan/text.h"

namespace cairn::plan {
namespace {

constexpr double kNone = 1e-6;  // lower shares of values count as zero
// A plan of a small problem is compared with those for lower budgets, so that more memory is never slower. Each of
// these budgets is a constant factor below the one before.
constexpr double kRung = 1.0625, kFineRung = 1.015625;  // the finer factor is for problems of few ops
constexpr size_t kMostRungs = 8;                        // budgets tried below one budget
constexpr int kIdleRungs = 3;                           // in a row without a gain, of more than a few ops
// A copy is exposed if no op hides so large a share of it. Exposed values are kept first if they take this share of
// all seconds.
constexpr double kExposed = 0.5, kWorthALead = 0.005;
constexpr size_t kMostTurns = 6;   // orders besides the one of the bound's program
constexpr size_t kFewValues = 10;  // that may be kept: for more, no other orders are tried
// Where a tier has little room: so many budgets below the smallest plan are tried.
constexpr int kSmallerWhereTight = 64;
constexpr size_t kMostPlacements = 96;  // of small problems, kept from one budget to the next

int64_t most_alive(const Problem& resolved, const Plan& plan) {
  std::vector<uint8_t> here(resolved.values.size(), 0);
  int64_t alive = resolved.persistent_bytes(), most = alive;
  const auto take = [&](int32_t v) {
    if (resolved.values[v].persistent || here[v]) return;
    here[v] = 1;
    alive += resolved.values[v].bytes;
  };
  for (const Step& step : plan.steps) {
    int64_t workspace = 0;
    if (step.kind == StepKind::kRun) {
      for (const int32_t v : resolved.ops[step.index].outputs) take(v);
      workspace = resolved.ops[step.index].workspace_bytes;
    } else if (step.kind == StepKind::kIn) {
      take(step.index);
    } else if (step.kind == StepKind::kFree) {
      here[step.index] = 0;
      alive -= resolved.values[step.index].bytes;
    }
    most = std::max(most, alive + workspace);
  }
  return most;
}

// Whether a tier, without the values that live there, is too small for all other values together.
bool a_tier_is_tight(const Problem& p) {
  int64_t made = 0;
  std::vector<int64_t> room;
  for (const Link& link : p.links) room.push_back(link.capacity_bytes);
  for (const Value& value : p.values) {
    if (value.home >= 0)
      room[static_cast<size_t>(value.home)] -= value.bytes;
    else if (!value.persistent)
      made += value.bytes;
  }
  return std::any_of(room.begin(), room.end(), [&](int64_t bytes) { return bytes < made; });
}

Problem with_links(Problem p, const std::vector<Link>& links) {
  p.links = links;
  return p;
}

}  // namespace

HomeSolver::HomeSolver(const Problem& p, int threads)
    : p_(p),
      threads_(threads),
      resolved_(resolve_homes(p, std::vector<bool>(p.values.size(), true))),
      all_away_(with_links(without_homes(resolved_), p.links)),  // what is kept takes no room in a tier
      index_(all_away_),
      homes_(home_reads(p)),
      ends_(p) {
  std::vector<int64_t> uses(p.values.size(), 0);
  for (const Op& op : p.ops)
    for (const auto* list : {&op.inputs, &op.outputs})
      for (const int32_t v : *list) ++uses[v];
  std::vector<int64_t> room;
  for (const Link& link : p.links) room.push_back(link.capacity_bytes);
  for (const Value& value : p.values)
    if (value.at_home()) room[value.home] -= value.bytes;
  std::vector<int32_t> may_stay;
  for (size_t v = 0; v < p.values.size(); ++v) {
    may_stay_.push_back(p.values[v].home >= 0 && p.values[v].persistent);
    if (may_stay_[v]) may_stay.push_back(static_cast<int32_t>(v));
  }
  std::vector<int32_t> dearest;
  for (const size_t k : spread(may_stay.size())) dearest.push_back(may_stay[k]);
  const auto seconds_per_byte = [&](int32_t v) {
    const Value& value = p.values[v];
    const Link& link = p.links[value.home];
    if (value.bytes == 0) return 0.0;
    const auto bytes = static_cast<double>(value.bytes), copies = static_cast<double>(uses[v]);
    return copies / link.in_bytes_per_second + (copies * link.latency_seconds + value.home_seconds) / bytes;
  };
  std::stable_sort(dearest.begin(), dearest.end(),
                   [&](int32_t a, int32_t b) { return seconds_per_byte(a) > seconds_per_byte(b); });
  // If a tier has no room for all its values, the most expensive ones to fetch are kept.
  fits_.assign(p.values.size(), true);
  for (size_t k = dearest.size(); k-- > 0;) {
    const int32_t v = dearest[k];
    int64_t& left = room[p.values[v].home];
    fits_[v] = p.values[v].bytes <= left;
    if (fits_[v]) left -= p.values[v].bytes;
  }
  std::copy_if(dearest.begin(), dearest.end(), std::back_inserter(dearest_),
               [&](int32_t v) { return fits_[v]; });
}

HomeSolver::~HomeSolver() = default;

// The orders in which values are kept. The first is that of the bound's program, after the values whose copies no op
// hides. For few ops, other orders begin with one value or another. These cover all sets of three values and most of
// four; more values make up for one another.
std::vector<HomeSolver::Order> HomeSolver::orders_for(int64_t budget_bytes) const {
  std::vector<Order> orders = {exposed_first(order_by_bound(budget_bytes))};
  const size_t count = dearest_.size(),
               turns = p_.ops.size() <= kTinyProblem && count <= kFewValues ? std::min(count, kMostTurns) : 0;
  for (size_t turn = 0; turn < turns; ++turn) {
    Order order = dearest_;
    std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(turn * count / turns),
                order.end());
    orders.push_back(std::move(order));
  }
  return orders;
}

// In the bound's program, a share of the values of each kind is on the device where backward begins. The order keeps
// these shares, however many values are kept. The values that the program keeps none of come last.
HomeSolver::Order HomeSolver::order_by_bound(int64_t budget_bytes) const {
  const std::vector<double> here = shares_here(all_away_, index_, budget_bytes, homes_);
  std::vector<double> share(p_.values.size(), -1);
  for (size_t i = 0; i < here.size(); ++i) share[static_cast<size_t>(homes_.values[i].value)] = here[i];
  std::map<double, std::vector<int32_t>, std::greater<>> kinds;
  for (const int32_t v : dearest_) kinds[share[static_cast<size_t>(v)]].push_back(v);
  std::vector<std::pair<double, int32_t>> turns;
  const double none = std::numeric_limits<double>::infinity();
  for (const auto& [part, values] : kinds)
    for (size_t k = 0; k < values.size(); ++k) {
      const double turn = static_cast<double>(k + 1) / (part * static_cast<double>(values.size()));
      turns.emplace_back(part > 1 - kNone ? 0 : part > kNone ? turn : none, values[k]);
    }
  if (kinds.size() < 2) return dearest_;
  std::stable_sort(turns.begin(), turns.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  Order order;
  for (const auto& [turn, v] : turns) order.push_back(v);
  return order;
}

// The bound counts what crosses before and after one program point. It does not include that the first and last
// copies have no ops that hide them.
HomeSolver::Order HomeSolver::exposed_first(Order order) const {
  const std::vector<double> exposed = exposed_seconds(resolved_);
  const auto stays = [&](int32_t v) {
    const Link& link = p_.links[p_.values[v].home];
    const double copy = static_cast<double>(p_.values[v].bytes) / link.in_bytes_per_second;
    return exposed[v] > kExposed * copy && exposed[v] > kWorthALead * index_.total_seconds;
  };
  std::stable_partition(order.begin(), order.end(), stays);
  return order;
}

// The placement that keeps the first values of the order, so many as `stay` says.
Placement& HomeSolver::placed(const Order& order, size_t stay) {
  std::vector<bool> away = fits_;
  for (size_t k = 0; k < stay; ++k) away[order[k]] = false;
  std::unique_ptr<Placement>& known = placed_[away];
  if (known == nullptr) known = std::make_unique<Placement>(p_, away, threads_);
  return *known;
}

std::optional<Plan> HomeSolver::solve(int64_t budget_bytes, double limit, Effort effort) {
  // A placement answers the same whatever was asked before. Placements are cached as far as that is worth the memory.
  if (is_small() ? placed_.size() > kMostPlacements : placed_for_ != budget_bytes) placed_.clear();
  placed_for_ = budget_bytes;
  std::optional<Found> best = search(budget_bytes, limit, effort);
  // A quick search only ranks problems; it does not need the fastest plan.
  if (is_small() && effort == Effort::kWhole && budget_bytes > 0 &&
      (best || limit < std::numeric_limits<double>::infinity()))
    climb_down(best, limit, budget_bytes);
  if (!best) return {};
  return finish(*best->placement, std::move(best->plan), budget_bytes);
}

// Looks for a faster plan at smaller budgets. Such a plan replaces `best`, which may be empty.
void HomeSolver::climb_down(std::optional<Found>& best, double limit, int64_t budget_bytes) {
  const bool tiny = p_.ops.size() <= kTinyProblem;
  int idle = 0;
  for (const int64_t less : rungs_below(budget_bytes)) {
    if (best) limit = best->seconds;
    const double enough = limit * (1 - Trials::kWorthIt);
    if (least_seconds(less, enough) >= enough || (!tiny && idle == kIdleRungs)) break;
    std::optional<Found> found = search(less, limit, tiny ? Effort::kWhole : Effort::kQuick);
    idle = found ? 0 : idle + 1;
    if (found) best = std::move(found);
  }
}

// Smaller budgets, the largest first. They are the same numbers for every budget.
std::vector<int64_t> HomeSolver::rungs_below(int64_t budget_bytes) {
  std::vector<int64_t> rungs;
  const double step = p_.ops.size() <= kTinyProblem ? kFineRung : kRung;
  auto rung = static_cast<double>(std::max<int64_t>(1, placed(dearest_, 0).least_bytes()));
  for (; rung < static_cast<double>(budget_bytes); rung *= step) rungs.push_back(static_cast<int64_t>(rung));
  std::reverse(rungs.begin(), rungs.end());
  rungs.resize(std::min(rungs.size(), kMostRungs));
  return rungs;
}

std::optional<HomeSolver::Found> HomeSolver::search(int64_t budget_bytes, double limit, Effort effort) {
  std::optional<Found> best;
  const double least = least_seconds(budget_bytes, limit);
  if (least >= limit * (1 - Trials::kEqual)) return best;
  for (const Order& order : orders_for(budget_bytes)) {
    if (std::optional<Found> found = search(order, budget_bytes, limit, effort)) best = std::move(found);
    if (best) limit = best->seconds;
    if (least >= limit * (1 - Trials::kWorthIt)) break;
  }
  return best;
}

std::optional<HomeSolver::Found> HomeSolver::search(const Order& order, int64_t budget_bytes, double limit,
                                                    Effort effort) {
  const auto placed_by = [&](size_t stay) -> Placement& { return placed(order, stay); };
  const auto too_large = [&](size_t stay) {
    return budget_bytes > 0 && placed_by(stay).least_bytes() > budget_bytes;
  };
  size_t most = order.size(), too_many = order.size() + 1;
  if (too_large(most)) {
    for (most = 0, too_many = order.size(); too_many - most > 1;) {
      const size_t middle = most + (too_many - most) / 2;
      (too_large(middle) ? too_many : most) = middle;
    }
  }
  std::vector<size_t> bytes = {0};
  for (const int32_t v : order) bytes.push_back(bytes.back() + static_cast<size_t>(p_.values[v].bytes));
  Trials trials(placed_by, std::move(bytes), budget_bytes, limit);
  trials.run_up_to(most, effort);
  if (!trials.found()) return {};
  return Found{&placed_by(trials.best_stay()), std::move(trials.best()), trials.best_seconds()};
}

Plan HomeSolver::smallest() {
  Placement& at = placed(dearest_, 0);
  // Every value fetched for each use.
  const Plan plan = at.smallest_without();
  Plan lowest = finish(at, at.stalled(plan), plan.arena_bytes);
  // Where a tier has no room for all that could be offloaded, a value kept on the device may free more memory than it
  // takes.
  if (!is_small() || !a_tier_is_tight(p_)) return lowest;
  const int64_t least = least_bytes(all_away_, index_);
  int64_t step = 1;
  for (int round = 0; round < kSmallerWhereTight && lowest.arena_bytes > least; ++round) {
    const int64_t budget = std::max(least, lowest.arena_bytes - step);
    std::optional<Plan> lower = solve(budget, std::numeric_limits<double>::infinity(), Effort::kWhole);
    if (!lower && lowest.arena_bytes - budget <= 1) break;
    step = lower ? 2 * step : std::max<int64_t>(1, step / 4);
    if (lower) lowest = std::move(*lower);
  }
  return lowest;
}

double HomeSolver::least_seconds(int64_t budget_bytes, double enough) {
  Least& known = least_seconds_[budget_bytes];
  if (known.raised || known.seconds >= enough) return known.seconds;
  known.seconds =
      least_link_seconds(resolved_, budget_bytes, may_stay_) + least_home_seconds(homes_, budget_bytes);
  if (known.seconds >= enough) return known.seconds;
  const double bound = lower_bound_seconds(all_away_, index_, budget_bytes, homes_, enough, threads_);
  known.seconds = std::max(known.seconds, bound);
  known.raised = bound < enough;
  if (known.raised)
    known.seconds = std::max(known.seconds, ends_.least_seconds(budget_bytes, {}, threads_) +
                                                least_home_seconds(homes_, budget_bytes));
  return known.seconds;
}

double HomeSolver::least_seconds_behind(int64_t budget_bytes, const std::vector<double>& earliest,
                                        bool home_costs) {
  HomeReads homes = homes_;
  if (!home_costs)
    for (HomeReads::Value& value : homes.values) value.home_seconds = 0;
  const double bound = lower_bound_seconds_behind(all_away_, index_, budget_bytes, homes, earliest, threads_);
  return std::max(bound, ends_.least_seconds(budget_bytes, earliest, threads_));
}

Plan HomeSolver::finish(const Placement& at, Plan plan, int64_t budget_bytes) {
  explain(at.resolved(), at.index(), Rules(at.resolved(), at.index(), Intervals(at.resolved(), at.index())),
          plan);
  plan.budget_bytes = budget_bytes;
  plan.device_peak_bytes = most_alive(at.resolved(), plan);
  plan.predicted_seconds = simulate(at.resolved(), plan).seconds;
  plan.keep_all_seconds = at.index().total_seconds;
  plan.bound_seconds = std::max(0.0, least_seconds(budget_bytes) - at.home_seconds());
  plan.gap = plan.bound_seconds > 0 ? (plan.predicted_seconds - plan.bound_seconds) / plan.bound_seconds : 0;
  for (Step& step : plan.steps) {
    if (step.kind != StepKind::kRun) continue;
    std::vector<int64_t> offsets;  // of values kept on the device, too
    size_t next = 0;
    for (const int32_t v : p_.ops[step.index].outputs)
      offsets.push_back(p_.values[v].home >= 0 && at.resolved().values[v].persistent ? -1
                                                                                     : step.offsets[next++]);
    step.offsets = std::move(offsets);
  }
  std::vector<int> fetched(p_.values.size(), 0), sent(p_.values.size(), 0);
  struct Seen {
    int32_t first = -1, last = -1;  // steps of the value that are not runs
    int64_t offset = -1;
  };
  std::vector<Seen> seen(p_.values.size());
  for (int32_t s = 0; s < static_cast<int32_t>(plan.steps.size()); ++s) {
    const Step& step = plan.steps[s];
    if (step.kind == StepKind::kRun) continue;
    Seen& value = seen[step.index];
    if (value.first < 0) value.first = s;
    value.last = s;
    if (step.kind == StepKind::kIn && value.offset < 0) value.offset = step.offset;
    if (step.kind == StepKind::kIn) ++fetched[step.index];
    if (step.kind == StepKind::kOut) ++sent[step.index];
  }
  for (size_t v = 0; v < p_.values.size(); ++v) {
    if (!at.resolved().values[v].at_home()) continue;
    const int32_t home = at.resolved().values[v].home;
    ValuePlan& value = plan.values[v];
    value.decision = Decision::kOffload;
    value.tier = home;
    value.offset = seen[v].offset;
    value.first_step = seen[v].first;
    value.last_step = seen[v].last;
    value.reason = cat("lives in the tier '", p_.links[home].tier, "': fetched ", fetched[v],
                       " times, brought back ", sent[v], " times");
    plan.tier_peak_bytes[home] += p_.values[v].bytes;
  }
  return plan;
}

}  // namespace cairn::plan
