// Plans of several graphs for one store: what they keep lies at the same places in all of them. Internal to
// runtime/compile.
#pragma once
#include <functional>
#include <map>
#include <span>

#include "runtime/compile/homes/vocabulary_parts.h"

namespace cairn::engine {

class SetCompiler {
 public:
  // kInvalidArgument: a graph does not go with the first one; names what differs.
  SetCompiler(std::span<const ProgramGraph> graphs, device::Device& device, const PlanOptions& options);

  // Every graph lowered, with one layout of what persists; or that of `only` alone. A single graph has no
  // layout.
  std::vector<std::shared_ptr<CompiledPlan>> lower_all(const graph::JointOptions& joint);
  std::vector<std::shared_ptr<CompiledPlan>> lower_all(const graph::JointOptions& joint, size_t only);

  // The plan that needs the most with everything kept, of those that train if one does.
  size_t primary() const { return primary_; }

  // Weights that may go in parts in every program.
  PartUnits part_units(const graph::JointOptions& joint) const;

  // solve(), where kOverBudget names the program, if there are several.
  void named(size_t i, const std::function<void()>& solve) const;

  // All plans, in the order of the graphs, beside the primary one, which is solved and assembled: what left
  // the device or is not packed there, is and does so in the others, too. kOverBudget names the graph.
  std::vector<std::shared_ptr<const CompiledPlan>> beside(std::shared_ptr<const CompiledPlan> primary,
                                                          int64_t budget_bytes);

 private:
  using Joints = std::vector<std::shared_ptr<const graph::JointGraph>>;
  void choose_primary(std::span<const std::shared_ptr<CompiledPlan>> plans);
  Joints derive_all(const graph::JointOptions& joint) const;
  std::shared_ptr<CompiledPlan> lowered(const Joints& joints, std::shared_ptr<const StoreLayout> layout,
                                        size_t i);

  const std::span<const ProgramGraph> graphs_;
  device::Device& device_;
  PlanOptions options_;  // as given, but for patterns of regions: resolved_region_policies()
  size_t primary_ = 0;
  std::map<const StoreLayout*, Joints> joints_;  // what a layout was made of
};

}  // namespace cairn::engine
