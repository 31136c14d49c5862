// A plan compiled to a flat list of instructions over three queues. The engine only walks it: no decision is
// left, no memory is taken.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "runtime/costs/rate_source.h"
#include "runtime/costs/table.h"
#include "runtime/device/device.h"
#include "runtime/graph/joint.h"
#include "runtime/plan/plan.h"

namespace cairn::engine {

enum class Opcode : uint8_t { kLaunch, kCopy, kRecord, kWait, kBegin, kEnd };

// kLaunch: a = index into launches, on `lane`. kCopy: a = index into copies, on `lane`; one submission does the `count`
// copies that begin there. kRecord, kWait: a = event, on `lane` (in CompiledPlan::beside_backward a < 0: at the end of the last copy of
// problem value -1 - a). kBegin, kEnd: a range of a tier's arena
// comes to life or ends in program order (for the ledger): a = range.
struct Instruction {
  Opcode opcode;
  device::Lane lane;
  int32_t a;
};

// Of a step's micro-batches, by their place: the first one writes over what later ones add to.
enum class Micro : uint8_t { kAny, kFirst, kLater };

struct Launch {
  int32_t kernel;
  int32_t first_operand, inputs, outputs;  // Program::operands[first .. first + inputs + outputs)
  int64_t workspace_offset, workspace_bytes;
  Tier workspace_tier;
  uint32_t accumulates, first_writer;
  Micro micro;         // in which micro-batches of a step it runs
  bool deferred;       // an update of the step before, where there was one
  uint32_t in_place;   // Call::in_place
  uint32_t random_op;  // RandomKey::op
  int32_t joint_op;    // of the program's phase; for traces. -1 - a joint value: adds to that
  bool of_update;      // joint_op is of the updates' phase, whatever the program's is
};

struct Operand {  // a tensor at an offset of the arena, or of a tier that kernels reach; offset < 0: left out
  TensorDesc desc;
  int64_t offset = -1;
  Tier tier = Tier::kDevice;
  bool within = false;  // consecutive elements of a tensor: only that begins at a multiple of kAlignment
};

struct CopyJob {
  Tier to, from;
  int64_t to_offset, from_offset, bytes;
  int32_t value;              // of several neighbours moved as one, the first
  int32_t count = 1;          // of an instruction's first copy: how many it does
  Micro micro = Micro::kAny;  // in which it is done
  // Where deferred updates run alone, or are left out, copies for the rest are, too.
  enum class Serves : uint8_t { kRest, kUpdates, kBoth };
  Serves serves = Serves::kRest;
};

struct Range {
  Tier tier;
  int64_t offset, bytes;
};

struct Program {
  std::vector<Instruction> code;
  std::vector<Launch> launches;
  std::vector<Operand> operands;
  std::vector<CopyJob> copies;
  std::vector<Range> ranges;
  int32_t events = 0;
};

// A value that persists in a lower tier, not on the device: where its parts lie there.
struct OffloadedPlace {
  struct Extent {
    int64_t begin, bytes;  // part of the value
    int64_t tier_offset;
  };
  Tier tier;
  std::vector<Extent> extents;  // in order, without holes
};

// How the host adds what a micro-batch sends to a gradient, and makes the squares of the sum, where backward has those.
struct HostAdd {
  int32_t add = -1, squares = -1;  // CompiledPlan::kernels
  int32_t squares_value = -1;      // joint value; -1: there are none
  int64_t squares_place = -1;      // on the host tier
};

// What plans that were made together keep in the same bytes: the persistent values of all of them, in one
// order, which fill the arena of each from 0.
struct StoreLayout {
  struct Entry {
    std::string name;
    TensorDesc desc;
    graph::Role role;
    bool sliced = false;  // JointGraph::slices: no plan has it whole
  };
  std::vector<Entry> values;
  std::vector<std::vector<int32_t>>
      entry_of;  // plan, joint value -> index into `values`; -1: it does not persist
  size_t plans = 0;
  size_t primary = 0;  // the plan that has the store's update and repacks what it shares with others
};

// A plan together with what it was made from. Immutable; shared by sessions.
struct CompiledPlan {
  std::shared_ptr<const graph::JointGraph> joint;
  std::shared_ptr<const StoreLayout> layout;  // nullptr: made alone
  size_t index_in_set = 0;
  std::vector<int32_t> layout_value;  // entry of the layout -> index into problem.values; -1: offloaded
  plan::Problem problem;
  // Without a budget: the same with ops in place, or without, whichever `problem` is not. nullptr: there are none.
  std::shared_ptr<const plan::Problem> other_form;
  // Joint storage value -> index into problem.values, -1 for aliases and offloaded state. Values that are made in place
  // of each other (in_place.h) have one index.
  std::vector<int32_t> problem_value;
  std::vector<std::vector<int32_t>> problem_op;  // problem op -> joint ops, in the order they run
  std::vector<Tier> link_tier;                   // problem link -> tier
  plan::Plan plan;
  // By phase of the joint graph. Updates make the packed weights of what they update, too; repacking is for
  // those on the device.
  std::vector<Program> programs = std::vector<Program>(graph::kPhaseCount);
  Program
      beside_host_updates;  // of the other parameters, where the host updates some: the next run has them, too
  Program fetched_repack;   // for weights that live in a tier, after the host wrote them
  // Joint value -> where it lives: what no op of a micro-batch touches, or uses where it lies, and is no value of the
  // problem.
  std::map<int32_t, OffloadedPlace> offloaded;
  // The same of values of the problem whose home is a tier, and which micro-batches fetch: weights, gradients.
  std::map<int32_t, OffloadedPlace> homes;
  // Weights whose updates the host's processors make: states, weight and gradient live on the host tier or the disk. The next run
  // begins with them, or, where updates are fused, they run beside backward (update/host_updates.h).
  std::set<int32_t> host_updated;
  double host_memory_bytes_per_second = 0;  // that they are timed by; 0: not known
  // The disk as the host reads and writes it, where they may use what lives there: it streams through a ring on the host tier.
  std::optional<plan::Link> host_disk;
  int64_t host_ring_bytes = 0, host_ring = -1;  // 0: nothing streams; where it lies
  // What they read of the device, hyper-parameters first of all -> where a copy lies on the host tier.
  std::map<int32_t, int64_t> host_copies;
  // Of those, where updates are fused: that the next run begins with all the same. Gradients of the others come while there is more
  // of backward to hide them behind.
  std::set<int32_t> host_deferred;
  Program host_program, beside_backward;  // the parts of a run that make them: of the run before, and its own
  // Gradients that live on the host and that its processors add up (homes/host_adds.h): a micro-batch sends its own.
  std::map<int32_t, HostAdd> host_added;
  // Of the host tier, where what micro-batches send waits to be added, then a workspace and the squares.
  int64_t add_ring_bytes = 0, add_workspace_bytes = 0, add_ring = -1;
  std::map<int32_t, int32_t>
      host_done;  // value they read or change -> event of that program: it may be copied
  bool on_host(const graph::JointOp& update) const {
    return host_updated.contains(update.out[update_op::kParameter]);
  }
  bool defers(const graph::JointOp& update) const {
    return on_host(update) &&
           (!updates_beside_backward() || host_deferred.contains(update.out[update_op::kParameter]));
  }
  bool streams_on_host() const { return host_ring_bytes > 0; }
  bool updates_beside_backward() const { return !host_updated.empty() && joint->grad_scale >= 0; }
  // It is for one micro-batch per update: gradients that live in a tier, or end with the step, are written over, not added to.
  bool overwrites_gradients = false;
  // Gradients are values of the problem that live from backward to its last op, which stands for norm and update (homes/gradients.h).
  bool gradients_end = false;
  std::map<int32_t, int64_t> gradient_offsets;  // problem value of one -> where it lies then
  std::array<int64_t, kTierCount>
      offloaded_bytes{};  // per tier: of offloaded state; copies of activations lie above
  std::vector<std::shared_ptr<const kernels::Kernel>> kernels;  // one per distinct signature
  std::set<int32_t> host_kernels;  // of these: the processor's, beside a device of others
  // Phase, op of the phase -> kernel, -1 for aliases. A phase whose ops are one launch has one kernel.
  std::vector<std::vector<int32_t>> op_kernel = std::vector<std::vector<int32_t>>(graph::kPhaseCount);
  // A kernel object runs on one thread at a time; sessions that share this plan take turns per kernel.
  std::shared_ptr<std::mutex[]> kernel_locks;
  std::shared_ptr<const costs::Table> costs;  // that it was made with; nullptr: the device's own rates
  int threads = 1;
  const kernels::Registry* registry = nullptr;  // that its kernels are from
  std::string device;
  // Kernels reach the host tier: updates, their norm, packing, and ops that add to gradients use what lives there where it
  // lies. Else copies bring it to the device.
  bool host_in_reach = false;
  bool reaches(Tier tier) const { return host_in_reach && tier == Tier::kHost; }
  // Of a storage value; nullptr: it does not live in a tier.
  const OffloadedPlace* away(int32_t value) const {
    const auto home = homes.find(value);
    if (home != homes.end()) return &home->second;
    const auto found = offloaded.find(value);
    return found != offloaded.end() ? &found->second : nullptr;
  }
  // Of those, the one that kernels around micro-batches use where it lies; or that copies bring to them.
  const OffloadedPlace* in_place(int32_t value) const {
    const OffloadedPlace* const place = away(value);
    return place != nullptr && reaches(place->tier) ? place : nullptr;
  }
  const OffloadedPlace* streamed(int32_t value) const {
    const OffloadedPlace* const place = away(value);
    return place != nullptr && !reaches(place->tier) ? place : nullptr;
  }
  bool streams() const;  // something of an update does
  // Where updates run: on the host where something lives there that they use where it lies.
  Tier update_at() const;
  int64_t deferred_updates() const;  // parameters that the next micro-batch updates
  bool defers_updates() const {
    return joint->updates_deferred ||
           (updates_beside_backward() ? !host_deferred.empty() : !host_updated.empty());
  }
  // Of all that lives in the tier between micro-batches; homes come behind offloaded state.
  int64_t home_bytes(Tier tier) const;
  int64_t resident_bytes(Tier tier) const {
    return offloaded_bytes[static_cast<size_t>(tier)] + home_bytes(tier);
  }
  const Program& program(graph::PhaseIndex phase = graph::kMicroBatch) const { return programs[phase]; }
  Program& program(graph::PhaseIndex phase = graph::kMicroBatch) { return programs[phase]; }

  // What the cost model says beside the problem's seconds: of the packed weights, the norm and the update,
  // once per step; of inputs in and loss out, once per micro-batch. No plan changes these.
  double update_seconds = 0, host_seconds = 0;
  double host_wait_seconds =
      0;  // of update_seconds: the next forward part, or the end of a run, waits for updates on the host
  std::vector<bool> op_measured;  // joint op -> its seconds come from the profile
  int64_t measured_ops = 0;       // ops of the problem of which all do
  int64_t in_place_ops = 0;       // joint ops that write over an input

  // Device bytes at the plan's peak by category (parameters, gradients, optimizer, activations, workspace);
  // inputs, scratch and outputs count as activations, packed weights as parameters. Sums to arena_bytes (gaps
  // of the layout count as workspace).
  struct Memory {
    int64_t parameters = 0, gradients = 0, optimizer = 0, activations = 0, workspace = 0;
  };
  Memory memory_at_peak() const;
  // End of the persistent values, which fill the arena from 0.
  int64_t persistent_bytes() const;
  // Device offset between micro-batches of what lives there then, by problem value; -1: it does not.
  int64_t offset_between_steps(int32_t stored) const;
  // Above what persists, a range in which nothing lives between micro-batches, and that no measured peak counts twice.
  struct FreeRange {
    int64_t offset, bytes;
  };
  FreeRange free_range() const;
};

// A policy for the regions whose paths match a pattern (region_pattern.h), in the place of the graph's own.
struct RegionPolicy {
  std::string pattern;
  Policy policy = Policy::kKeep;  // not kPlannerDecides
  std::optional<Tier> tier = {};  // with kOffload; nothing: the plan's first
};

struct PlanOptions {
  int64_t budget_bytes = 0;  // 0: none
  bool smallest_budget =
      false;  // instead, the smallest that a plan fits; kOverBudget: that is above the device's memory
  double budget_share = 0;  // > 0: share of the keep-everything plan's arena, instead of budget_bytes
  graph::AmpMode amp = graph::AmpMode::kOff;
  std::vector<graph::AmpRule> amp_rules = {};
  DType parameters = DType::kF32;  // JointOptions::parameters
  std::vector<graph::FormatRule> formats = {};
  graph::OptimizerOptions optimizer = {};
  // For regions that have no policy of their own and lie in none that has one (region_policies.h). Values outside
  // regions stay with the planner.
  Policy policy = Policy::kPlannerDecides;
  // Of those that match a region, the last counts.
  std::vector<RegionPolicy> region_policies = {};
  // Where offloading may go, preferred first; the first serves kOffload. Empty: host, if a region or the
  // policy asks for offloading or the host link has a stated rate. A CPU's host tier is otherwise the same
  // memory under another name: leaving for it saves nothing.
  std::vector<Tier> tiers = {};
  double link_bytes_per_second = 0;  // for the cost model; 0: measured default
  // A profile, or the model of a device that is not there: the plan is then for that one, and no session runs
  // it. nullptr: the device's own rates.
  std::shared_ptr<const costs::Table> costs = {};
  bool force_costs = false;  // take a profile that was measured on another machine
  // Where the rates of a disk tier come from that `costs` says nothing of: DiskRequest::how (costs/disk_rates.h), and
  // what the host's memory gives beside a GPU. kRatesModel: a guess that is the same everywhere, and no updates on the host.
  std::string disk_rates{costs::kRatesModel};
  // Micro-batches per update that the plan is for: what an update costs is shared by so many. 0: 1.
  uint32_t micro_steps = 0;
  // Parameters are updated inside the backward part, as soon as nothing needs them, so that their gradients
  // need not outlive that. For one micro-batch per update and no clipping, which would need the norm of all
  // gradients first. The price: a gradient that is not finite is found after other parameters were updated.
  bool fuse_update = false;
  // Parts of a weight that lookups and the fused loss alone use, with tiers: each lives there and is on the device for its ops,
  // with the same bits. 0: as many as the other ops' working sets ask for, where a budget cannot be met otherwise.
  // Else so many of every such weight, at any budget.
  int64_t vocabulary_parts = 0;
  // For tests and measurements: what lives on the host tier is brought to the device for updates although kernels reach
  // it there.
  bool update_on_device = false;
  // Updates in the forward part of the next micro-batch: kAlways where that is possible, for tests.
  enum class Defer : uint8_t { kWhereFaster, kNever, kAlways };
  Defer defer_updates = Defer::kWhereFaster;
  // Updates by the host's processors, beside a device that has its own memory.
  Defer host_updates = Defer::kWhereFaster;
  double host_update_share = 1;  // with kAlways: of what may be updated there
  // With kAlways, where updates are fused: of those, that are deferred.
  double host_deferred_share = 0;
  // Sums of gradients by the host's processors, beside such a device; kAlways: of all that may be, whatever it takes.
  Defer host_adds = Defer::kWhereFaster;
};

// graph -> joint -> problem -> plan -> program. Nothing runs, nothing is allocated on the device.
// kInvalidArgument: a budget above the device's memory, a profile of another machine, an AMP rule that matches
// nothing, a region's policy that is none or goes to a tier that is not open. kNotFound: no region matches a pattern. kUnsupported: an op that the backend cannot run; names the AMP rule that asks for it, if one does.
std::shared_ptr<const CompiledPlan> compile(std::shared_ptr<const graph::Graph> graph, device::Device& device,
                                            const PlanOptions& options);

// Several graphs on the same parameters: plans whose persistent values lie at the same places, so that
// sessions can share a store (Session::open). The first graph has all parameters; the others have some of
// them, and those that train have the same gradients. What leaves the device, and which packed weights are
// kept, is chosen once, for the plan that needs the most; the budget holds for each. kInvalidArgument:
// parameters differ (named), or a later graph trains and the first does not.
struct ProgramGraph {
  std::string name;
  std::shared_ptr<const graph::Graph> graph;
};
std::vector<std::shared_ptr<const CompiledPlan>> compile_set(std::span<const ProgramGraph> graphs,
                                                             device::Device& device,
                                                             const PlanOptions& options);

// The parts of compile(), for tests: joint graph -> problem (with kernels made, workspaces known).
void lower(CompiledPlan& plan, device::Device& device, const PlanOptions& options);
// Plans are for the model of a device with memory of its own, which need not be there.
bool is_elsewhere(const PlanOptions& options);
// Whose kernels plans with these options use.
const kernels::Registry& registry_of(const device::Device& device, const PlanOptions& options);
void assemble(CompiledPlan& plan);  // plan -> program of a micro-batch
// plan -> the other programs, and what lives where in the tiers; makes kernels.
void assemble_update(CompiledPlan& plan, device::Device& device);
// The same for a plan of a set beside its primary one: packed weights that the primary does not make.
void assemble_repack(CompiledPlan& plan, const CompiledPlan& primary, device::Device& device);

}  // namespace cairn::engine
