// Small problems have one set of good plans for all budgets. So more memory is never slower, and the smallest budget
// is exact.
#include "runtime/plan/search/search_all.h"

#include <algorithm>

#include "runtime/plan/bound/bound.h"
#include "runtime/plan/local_search/greedy.h"
#include "runtime/plan/structure/recursion.h"
#include "runtime/plan/structure/segments.h"

namespace cairn::plan {
namespace {

constexpr int kAllSubsets = 12;       // up to so many saved values, every subset is tried
constexpr int kSweepRounds = 4;       // rounds that adjust the target to the real arena
constexpr size_t kSweepOptions = 48;  // options per stage
constexpr int kSweepLayouts = 8;      // layouts tried for one peak
constexpr int32_t kSweepGroups = 96;  // groups of Segments
constexpr size_t kExactLayouts = 2;
constexpr int64_t kSweepTableWork = 600'000;
constexpr int kLevels = CAIRN_SEARCH_SHARE == 1 ? 28 : 7;  // budgets that the search aims at
constexpr int kSentLevels = 12;  // levels between offloading everything and recomputing everything
constexpr int64_t kMaxLevelWork = 600'000 / CAIRN_SEARCH_SHARE, kMinLevelWork = 8'000 / CAIRN_SEARCH_SHARE;
constexpr double kGreedyGap = 1e-4;                       // above the bound: greedy eviction is tried
constexpr int64_t kGreedyTimes = 4;                       // times the work of a level
constexpr double kFarLevel = .02, kFarLevelOfChain = .1;  // above the bound: annealed once more
constexpr int64_t kFarWork = 20;                          // times the work of a level, for that
constexpr int kFarInVain = 3;                             // after so many levels without a gain, that ends
constexpr double kEqual = 1e-9;                           // above the bound: the plan counts as optimal
constexpr double kWorthALevel = 1e-3;  // above the bound: less is not worth a search at another level
constexpr int64_t kLevelWork = 8;      // times the cube of the number of ops
// A link is wide if within a step it copies such a part of the bytes between the largest and the smallest plan. Then
// copies matter more than recompute, and plans without the link get less of the work.
constexpr double kWideLink = 0.25;
constexpr int64_t kBesideWideLink = 4;

// bytes * level / kLevels, where the product may overflow.
int64_t part(int64_t bytes, int level) { return bytes / kLevels * level + bytes % kLevels * level / kLevels; }

}  // namespace

void AllBudgets::run(int64_t below) {
  begin();
  aim_everywhere(alone_, below);
  if (!p_.links.empty()) {
    send_everything();
    aim_everywhere(p_, below);
  }
  for (int level = 0; level < kLevels && budget_at(level) < below; ++level) try_greedy(budget_at(level));
  search_layouts();
}

void AllBudgets::look() {
  begin();
  const auto descend = [&] {
    Candidate low = s_.archive.plans().begin()->second;
    s_.local_search.descend(low, 0);
    return s_.archive.plans().begin()->first;
  };
  least_ = least_alone_ = descend();
  if (p_.links.empty()) return;
  send_everything();
  least_ = descend();
}

int AllBudgets::levels() const { return kLevels; }

int64_t AllBudgets::budget_at(int level) const {
  return level < kLevels ? least_ + part(most_ - least_, level) : most_;
}

bool AllBudgets::near(int level, double gap) {
  const int64_t budget = budget_at(level);
  const Candidate* const known = s_.archive.within(budget);
  return known && known->cost.seconds <= s_.bound_seconds(budget) * (1 + gap);
}

// Searches the level above first: its plans may be the start of faster ones here.
void AllBudgets::aim_once(int level) {
  s_.local_search.restart();
  for (int at = near(level, kWorthALevel) ? level : level + 1; at >= level; --at) {
    const int64_t budget = budget_at(at);
    s_.local_search.use_links(false);
    if (budget >= least_alone_) aim_at(alone_, budget, has_wide_link(most_ - least_alone_));
    s_.local_search.use_links(true);
    if (!p_.links.empty()) aim_at(p_, budget, false);
  }
  try_greedy(budget_at(level));
  const Candidate* const found = s_.archive.within(budget_at(level));
  if (found && arena_of(*found) > s_.searched_capacity(*found)) search_layout(Candidate(*found));
}

// The start of a search without links.
void AllBudgets::begin() {
  s_.restart();
  try_subsets();
  most_ = s_.archive.plans().rbegin()->first;
  from_structure(most_ - s_.index.persistent_bytes, -1);
  minimal_.clear();
  high_.clear();
  in_vain_ = 0;
  for (RetentionPoints& t : s_.local_search.minimal())
    if (s_.try_retention(t, {})) minimal_.push_back({t, {}, s_.evaluate(t, {}, s_.sequence)});
  s_.local_search.use_links(false);
  alone_ = p_;
  alone_.links.clear();
}

void AllBudgets::send_everything() {
  s_.local_search.use_links(true);
  const Candidate made = s_.archive.plans().begin()->second;
  for (const Pace& pace : s_.paces()) s_.try_retention(s_.everything_sent(), pace);
  send_around_full(made);
  from_structure(most_ - s_.index.persistent_bytes, 0);
}

// Tries every set of values to recompute, if few values are saved. An arena does not follow from a peak. So the sets
// that may have the lowest arena among equally fast ones are laid out.
void AllBudgets::try_subsets() {
  std::vector<int32_t> saved;
  for (size_t v = 0; v < p_.values.size(); ++v)
    if (const int32_t g = s_.rules.across[v]; g >= 0 && s_.rules.remade[g] && p_.values[v].bytes > 0)
      saved.push_back(g);
  if (saved.size() > kAllSubsets) return;
  std::vector<Candidate> all;
  for (uint32_t subset = 0; subset < 1u << saved.size(); ++subset) {
    RetentionPoints t = s_.rules.base;
    for (size_t k = 0; k < saved.size(); ++k)
      if (subset >> k & 1) t[saved[k]] = p_.backward_begin;
    const Cost cost = s_.evaluate(t, {}, s_.sequence);
    if (!cost.valid) continue;
    s_.archive.add(t, {}, cost);
    all.push_back({std::move(t), {}, cost});
  }
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    return a.cost.seconds != b.cost.seconds ? a.cost.seconds < b.cost.seconds
                                            : a.cost.peak_bytes < b.cost.peak_bytes;
  });
  int64_t lowest = std::numeric_limits<int64_t>::max();
  for (const Candidate& c : all) {
    if (c.cost.peak_bytes >= lowest) continue;
    const int64_t arena = s_.lay_out(c, c.cost.peak_bytes).arena_bytes;
    if (arena >= lowest) continue;
    lowest = arena;
    s_.archive.pin(c.retention_points, c.pace, c.cost);
  }
}

void AllBudgets::from_structure(int64_t room, int32_t link) {
  const Stages stages(p_, s_.index);
  far_level_ = stages.chain ? kFarLevelOfChain : kFarLevel;  // options of stages leave less to be found
  const OptionSets sets(p_, s_.index, s_.intervals, s_.rules, stages, link, kSweepOptions);
  std::optional<Segments> segments;
  if (link < 0 && !stages.chain && backward() && p_.ops.size() > kTinyProblem)
    segments.emplace(p_, s_.index, s_.intervals, s_.rules, kSweepGroups);
  for (int level = 1; level <= kLevels; ++level) {
    double price = 0;
    const Chosen chosen =
        choose_options(p_, stages, sets, part(room, level), link, {}, kSweepTableWork, price);
    if (chosen.found)
      for (const Pace& pace : s_.paces()) s_.try_retention(s_.retention_of(sets, chosen), pace);
    if (segments)
      if (const auto found = segments->plan(part(room, level))) s_.try_retention(*found, {});
    RetentionPoints t;
    if (link < 0 && recurse(p_, s_.index, s_.intervals, s_.rules, stages, part(room, level) / 2, t))
      s_.try_retention(t, {});
  }
}

// Levels between the lowest plan that recomputes everything and the one that offloads everything.
void AllBudgets::send_around_full(const Candidate& made) {
  if (p_.ops.size() <= kTinyProblem) return;
  const int64_t most = made.cost.peak_bytes, least = s_.archive.plans().begin()->first;
  for (int level = 0; level < kSentLevels; ++level)
    s_.send_around_full(made, least + (most - least) / kSentLevels * level);
}

// Searches at budgets between the lowest peak that can be found and that of keeping everything.
void AllBudgets::aim_everywhere(const Problem& bounded, int64_t below) {
  Candidate low = s_.archive.plans().begin()->second;
  s_.local_search.descend(low, 0);
  low = s_.archive.plans().begin()->second;
  s_.local_search.shrink(low, 4 * level_work());
  const int64_t least = s_.archive.plans().begin()->first;
  const bool rough = bounded.links.empty() && has_wide_link(most_ - least);
  for (int level = 0; level < kLevels; ++level) {
    const int64_t budget = least + part(most_ - least, level);
    if (budget >= below) return;
    aim_at(bounded, budget, rough);
  }
}

void AllBudgets::aim_at(const Problem& bounded, int64_t budget, bool rough) {
  const double bound = lower_bound_seconds(bounded, s_.index, budget);
  int64_t target = budget;
  for (int round = 0; round < kSweepRounds; ++round) {
    const Candidate* known = s_.archive.within(target);
    const bool optimal = known && known->cost.seconds <= bound * (1 + kEqual);
    const int64_t work = level_work() / (rough ? kBesideWideLink : 1);
    if (!optimal) aim(target, round == 0 ? work : work / 4);
    if (round == 0 && !rough) anneal_far(target, bound);
    const Candidate* found = s_.archive.within(target);
    if (!found) break;
    const int64_t arena = arena_of(*found), over = arena - budget;
    if (over <= 0) break;
    target = found->cost.peak_bytes - std::max<int64_t>(1, over / 2);
  }
}

// Greedy eviction comes last, so that the plans of other searches do not depend on it. With links, copies are better.
void AllBudgets::try_greedy(int64_t budget) {
  if (!backward() || !p_.links.empty()) return;
  const Candidate* const known = s_.archive.within(budget);
  if (known && known->cost.seconds <= s_.bound_seconds(budget) * (1 + kGreedyGap)) return;
  Greedy seeds(p_, s_.index, s_.intervals, s_.rules, s_.evaluate, s_.archive);
  int64_t target = budget;
  for (int round = 0; round < kSweepRounds; ++round) {
    const auto seconds = [&] {
      const Candidate* within = s_.archive.within(target);
      return within ? within->cost.seconds : std::numeric_limits<double>::infinity();
    };
    const double before = seconds();
    seeds.run(target, kGreedyTimes * level_work());
    if (seconds() < before) aim(target, level_work());
    const Candidate* found = s_.archive.within(target);
    const int64_t over = found ? arena_of(*found) - budget : 0;
    if (over <= 0) return;
    target = found->cost.peak_bytes - std::max<int64_t>(1, over / 2);
  }
}

void AllBudgets::aim(int64_t budget, int64_t work) {
  for (const Candidate& from : minimal_) {
    Candidate c = from;
    if (c.cost.peak_bytes <= budget) s_.local_search.search(c, budget, 0);
  }
  if (const Candidate* start = s_.archive.within(budget))
    s_.local_search.anneal(*start, budget, work * 3 / 10);
  const auto above = s_.archive.plans().upper_bound(budget);
  if (above != s_.archive.plans().end()) s_.local_search.anneal(above->second, budget, work * 3 / 10);
  if (const Candidate* start = s_.archive.within(budget)) {
    Candidate c = *start;
    s_.local_search.search(c, budget, work * 4 / 10);
  }
}

// For levels whose plans are far above the bound: annealing by excess, from a fast plan whose peak is a little too
// high. If that gained nothing at several budgets in a row, the bound is too low, as where a policy offloads values;
// then it is left out.
void AllBudgets::anneal_far(int64_t budget, double bound) {
  if (!backward() || p_.ops.size() <= kTinyProblem || in_vain_ == kFarInVain) return;
  const Candidate* const known = s_.archive.within(budget);
  const double before = known ? known->cost.seconds : std::numeric_limits<double>::infinity();
  if (before <= bound * (1 + far_level_)) return;
  const auto energy = [&](const auto& plan) {
    return s_.local_search.energy(plan.second.cost.seconds, plan.first, budget);
  };
  const auto& plans = s_.archive.plans();
  const auto least = std::min_element(plans.begin(), plans.end(),
                                      [&](const auto& a, const auto& b) { return energy(a) < energy(b); });
  s_.local_search.anneal_excess(Candidate(least->second), budget, kFarWork * level_work(),
                                LocalSearch::kAdaptive);
  const Candidate* const found = s_.archive.within(budget);
  in_vain_ = found && found->cost.seconds < before ? 0 : in_vain_ + 1;
}

// The last answer is cached: often the same plan is the best at the next budget.
int64_t AllBudgets::arena_of(const Candidate& c) {
  if (arena_ > 0 && c.retention_points == laid_out_.retention_points && c.pace == laid_out_.pace)
    return arena_;
  laid_out_ = c;
  arena_ = s_.lay_out(c, c.cost.peak_bytes).arena_bytes;
  if (arena_ > s_.searched_capacity(c)) high_.push_back(c);
  return arena_;
}

// The exact search for offsets, for plans whose arenas are much higher than their peaks: the plan with the lowest
// peak, and the fastest ones if no other plan is as fast in as few bytes.
void AllBudgets::search_layouts() {
  high_.push_back(s_.archive.plans().begin()->second);
  high_.push_back(s_.archive.plans().rbegin()->second);
  std::stable_sort(high_.begin(), high_.end(),
                   [](const Candidate& a, const Candidate& b) { return a.cost.seconds < b.cost.seconds; });
  const auto lowest = std::min_element(high_.begin(), high_.end(), [](const auto& a, const auto& b) {
    return a.cost.peak_bytes < b.cost.peak_bytes;
  });
  std::rotate(high_.begin(), lowest, lowest + 1);
  std::vector<std::pair<double, int64_t>> searched;
  for (const Candidate& c : high_) {
    if (searched.size() == kExactLayouts) return;
    const std::pair cost(c.cost.seconds, c.cost.peak_bytes);
    if (std::find(searched.begin(), searched.end(), cost) != searched.end()) continue;
    if (search_layout(c)) searched.push_back(cost);
  }
}

bool AllBudgets::search_layout(const Candidate& c) {
  const int64_t capacity = s_.searched_capacity(c);
  if (!Search::worth_searching(c, s_.fastest_within(capacity, capacity, kSweepLayouts))) return false;
  s_.lay_out_for_all(c);
  return true;
}

bool AllBudgets::has_wide_link(int64_t bytes) const {
  return std::any_of(p_.links.begin(), p_.links.end(), [&](const Link& link) {
    const double slower = std::min(link.in_bytes_per_second, link.out_bytes_per_second);
    const double taken = std::min(slower * s_.index.total_seconds, static_cast<double>(link.capacity_bytes));
    return taken >= kWideLink * static_cast<double>(bytes);
  });
}

int64_t AllBudgets::level_work() const {
  const auto ops = static_cast<int64_t>(p_.ops.size());
  return std::clamp<int64_t>(kLevelWork * ops * ops * ops, kMinLevelWork, kMaxLevelWork);
}

void search_all_budgets(Search& search) { AllBudgets(search).run(); }

}  // namespace cairn::plan
