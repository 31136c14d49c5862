// Plans of several graphs for one store. What persists lies at the same places in all of them.
#pragma once
#include <functional>
#include <map>
#include <span>

#include "runtime/compile/compile.h"
#include "runtime/compile/residency/vocabulary_parts.h"

namespace cairn::engine {

class SetCompiler {
 public:
  // kInvalidArgument: a graph and the first one do not fit together; names what differs.
  SetCompiler(std::span<const ProgramGraph> graphs, device::Device& device, const PlanOptions& options);

  // Every graph lowered, with one layout of what persists (a single graph has none).
  std::vector<Lowered> lower_all(const graph::JointOptions& joint);
  // The same for the primary plan alone.
  Lowered lower_primary(const graph::JointOptions& joint);

  // The plan that needs the most memory with everything kept; of those that train, if one does.
  size_t primary() const { return primary_; }

  // Weights that may be split in every program.
  PartUnits part_units(const graph::JointOptions& joint) const;

  // Calls solve(). Where there are several programs, its kOverBudget names this one.
  void named(size_t i, const std::function<void()>& solve) const;

  // All plans, in the order of the graphs. The primary one is compiled already: what is offloaded or not packed
  // there is offloaded and not packed in the others, too. kOverBudget names the graph.
  std::vector<std::shared_ptr<const CompiledPlan>> with_others(std::shared_ptr<const CompiledPlan> primary,
                                                               int64_t budget_bytes);

 private:
  using Joints = std::vector<std::shared_ptr<const graph::JointGraph>>;
  Lowered like_primary(const CompiledPlan& primary, size_t i, int64_t budget_bytes) const;
  void choose_primary(std::span<const Lowered> plans);
  Joints derive_all(const graph::JointOptions& joint) const;
  Lowered lowered(const Joints& joints, std::shared_ptr<const StoreLayout> layout, size_t i) const;

  const std::span<const ProgramGraph> graphs_;
  device::Device& device_;
  PlanOptions options_;  // as given, with resolved_region_policies()
  size_t primary_ = 0;
  std::map<const StoreLayout*, Joints> joints_;  // the graphs that a layout was made for
};

}  // namespace cairn::engine
