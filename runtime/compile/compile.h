// graph -> joint graph -> lowered -> planned -> placed -> compiled: the way of a graph to programs.
#pragma once
#include <span>

#include "runtime/compile/stages.h"

namespace cairn::engine {

// A plan for the graph and its programs. Nothing runs, no device memory is taken, no file is opened, nothing is
// measured. kInvalidArgument: a budget above the device's memory, a profile of another machine, an AMP rule that
// matches nothing, a region's policy that is none or goes to a tier that is not open. kNotFound: no region matches
// a pattern. kUnsupported: an op that the backend cannot run; names the AMP rule that asks for it, if one does.
// kIo: the disk tier takes no files.
std::shared_ptr<const CompiledPlan> compile(std::shared_ptr<const graph::Graph> graph, device::Device& device,
                                            const PlanOptions& options);

struct ProgramGraph {
  std::string name;
  std::shared_ptr<const graph::Graph> graph;
};
// Plans of several graphs over the same parameters. Their persistent values lie at the same places, so that
// sessions can share a store (Session::open). The first graph has all parameters; the others have some of them, and
// those that train have the same gradients. What is offloaded and which packed weights are kept is chosen once, for
// the plan that needs the most; the budget holds for each. kInvalidArgument: parameters differ (named), or a later
// graph trains and the first does not.
std::vector<std::shared_ptr<const CompiledPlan>> compile_set(std::span<const ProgramGraph> graphs,
                                                             device::Device& device,
                                                             const PlanOptions& options);

// Plans of these graphs may offload to the disk: whoever compiles asks the machine about it.
bool may_use_disk(std::span<const ProgramGraph> graphs, const PlanOptions& options);

// The plan is for the model of a device with its own memory. That device need not be present.
bool is_elsewhere(const PlanOptions& options);
// Whose kernels plans with these options use.
const kernels::Registry& registry_of(const device::Device& device, const PlanOptions& options);

// The stages, one function each.
struct LowerFrom {
  std::shared_ptr<const graph::JointGraph> joint;
  std::shared_ptr<const StoreLayout> layout = {};  // of a set of plans
  size_t index_in_set = 0;
};
Lowered lower(const LowerFrom& from, device::Device& device, const PlanOptions& options);
CompiledPlan assemble(Planned planned, device::Device& device);
// Of a set, a plan that is not the primary one: its residents lie where the primary plan puts them, and its repacking
// makes only packed weights that the primary's does not make.
CompiledPlan assemble_with(const CompiledPlan& primary, Planned planned);
// The program of a micro-batch alone.
Program micro_batch_program(const CompiledPlan& plan);

}  // namespace cairn::engine
