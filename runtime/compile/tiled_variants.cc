// Rows in tiles as a form of all variants: searched where no plan fits without tiles, or the fastest one computes
// much again.
#include <algorithm>

#include "runtime/compile/tiles/tiles.h"
#include "runtime/compile/variants.h"
#include "runtime/plan/index.h"

namespace cairn::engine {
namespace {

// A plan that spends such a share of the ops' seconds on computing again may be slower than one in tiles. Where
// values may be offloaded, these seconds are mostly the copies', and to look at all variants once more takes long.
constexpr double kMuchAgain = 0.5;
constexpr int64_t kMostTiles = 1024;  // what is left of the rows' values is then little beside weights

class WithTiles {
 public:
  using Solve = std::function<Planned(const std::shared_ptr<const Lowered>&, const Relower&)>;

  WithTiles(const Relower& again, device::Device& device, const PlanOptions& options, Solve solve)
      : again_(again), device_(device), options_(options), solve_(std::move(solve)) {}

  Planned run(const std::shared_ptr<const Lowered>& whole) {
    const int64_t forced = options_.forced.row_tiles;
    if (forced < 2) attempt(whole, again_);
    if (forced > 1) attempt_tiles(whole, forced);
    const bool enough = best_ && (best_->problem.budget_bytes == 0 || !slow(*best_));
    if (forced == 0 && !enough) search(whole);
    if (!best_) throw *over_;
    return std::move(*best_);
  }

 private:
  static bool slow(const Planned& plan) {
    return plan.problem.links.empty() &&
           plan.plan.predicted_seconds > plan.problem.op_seconds() * (1 + kMuchAgain);
  }
  std::shared_ptr<const Lowered> tiled(const std::shared_ptr<const Lowered>& whole, int64_t count) const {
    std::optional<Lowered> plan = with_tiles(*whole, device_, options_, count);
    return plan ? std::make_shared<const Lowered>(std::move(*plan)) : nullptr;
  }

  // More and more tiles, until a plan fits. Where none does, those with which ops need the least say what would.
  void search(const std::shared_ptr<const Lowered>& whole) {
    const bool fitted = best_.has_value();
    int64_t least = plan::least_budget(whole->problem), most = 1, of_least = 1;
    for (int64_t count = 2; count <= kMostTiles; count *= 2) {
      const std::shared_ptr<const Lowered> plan = tiled(whole, count);
      if (plan == nullptr || most_tiles(*plan) <= most) break;
      most = most_tiles(*plan);
      const int64_t needs = plan::least_budget(plan->problem);
      if (needs < least) least = needs, of_least = count;
      if (needs > whole->problem.budget_bytes) continue;
      attempt_tiles(whole, count);
      if (best_) return;
    }
    if (!fitted && of_least > 1 && least > whole->problem.budget_bytes) attempt_tiles(whole, of_least);
  }

  void attempt_tiles(const std::shared_ptr<const Lowered>& whole, int64_t count) {
    const Relower again = [this, count](const graph::JointOptions& joint) {
      const std::shared_ptr<const Lowered> plan = again_(joint);
      const std::shared_ptr<const Lowered> tiles = tiled(plan, count);
      return tiles != nullptr ? tiles : plan;
    };
    const std::shared_ptr<const Lowered> tiles = tiled(whole, count);
    attempt(tiles != nullptr ? tiles : whole, again);
  }
  // With the bound of other variants that were tried as well.
  static plan::Plan bounded(plan::Plan plan, double other) {
    plan.bound_seconds = std::min(plan.bound_seconds, other);
    plan.gap =
        plan.bound_seconds > 0 ? (plan.predicted_seconds - plan.bound_seconds) / plan.bound_seconds : 0;
    return plan;
  }
  void attempt(const std::shared_ptr<const Lowered>& from, const Relower& again) {
    try {
      Planned plan = solve_(from, again);
      const double micro_steps = std::max<double>(1, options_.micro_steps);
      const auto seconds = [&](const Planned& of) {
        return of.plan.predicted_seconds + of.update_seconds / micro_steps;
      };
      if (!best_ || seconds(plan) < seconds(*best_)) {
        if (best_) plan.plan = bounded(std::move(plan.plan), best_->plan.bound_seconds);
        best_ = std::move(plan);
      } else {
        best_->plan = bounded(std::move(best_->plan), plan.plan.bound_seconds);
      }
    } catch (const Error& error) {
      if (error.code() != Code::kOverBudget || error.fault() == nullptr) throw;
      const auto least = [](const Error& of) { return of.fault()->smallest_budget_bytes; };
      if (!over_ || least(error) < least(*over_)) over_ = error;
    }
  }

  const Relower& again_;
  device::Device& device_;
  const PlanOptions& options_;
  const Solve solve_;
  std::optional<Planned> best_;
  std::optional<Error> over_;  // names the smallest budget so far
};

}  // namespace

Planned solve_with_tiles(std::shared_ptr<const Lowered> lowered, const Relower& again, const FindParts& parts,
                         const graph::JointOptions& joint, device::Device& device, const PlanOptions& options,
                         plan::SolverCache& cache) {
  const auto solve = [&](const std::shared_ptr<const Lowered>& from, const Relower& lower) {
    return solve_variants(from, lower, parts, joint, device, options, cache);
  };
  return WithTiles(again, device, options, solve).run(lowered);
}

}  // namespace cairn::engine
