// What a caller asks of a plan.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/policy.h"
#include "runtime/costs/machine_facts.h"
#include "runtime/costs/table.h"
#include "runtime/graph/joint.h"

namespace cairn::engine {

// A policy for the regions whose paths match a pattern (region_pattern.h). It replaces the policy that the graph
// gives them.
struct RegionPolicy {
  std::string pattern;
  Policy policy = Policy::kKeep;  // not kPlannerDecides
  std::optional<Tier> tier = {};  // with kOffload; nothing: the first tier of the plan
};

// Decisions that tests force, so that small models take the paths of large ones. Users leave them to the planner.
struct ForcedChoices {
  enum class When : uint8_t { kWhereFaster, kNever, kAlways };
  // Copies bring the values on the host tier to the device for the update, although kernels could use them where
  // they lie.
  bool update_on_device = false;
  When defer_updates = When::kWhereFaster;  // updates become a part of the next micro-batch's forward
  When host_updates =
      When::kWhereFaster;          // updates by the host's processors, for a device with its own memory
  double host_update_share = 1;    // with kAlways: how much of what may be updated there
  double host_deferred_share = 0;  // with kAlways and fused updates: how many of those the next run makes
  When host_adds = When::kWhereFaster;  // gradients summed by the host's processors; kAlways: all that may be
  // Splits every weight that only lookups and the fused loss use into so many parts. 0: as few as let the budget be
  // met.
  int64_t vocabulary_parts = 0;
  // Groups of ops whose rows go in tiles do so in so many, or as many as there can be. 0: where that lets a budget be met or is
  // faster; 1: never.
  int64_t row_tiles = 0;
};

struct PlanOptions {
  int64_t budget_bytes = 0;  // of the device; 0: none
  // Instead of a budget: the smallest one that a plan fits. kOverBudget: it is above the device's memory.
  bool smallest_budget = false;
  double budget_share = 0;  // > 0, instead of budget_bytes: a share of what keeping everything takes
  graph::AmpMode amp = graph::AmpMode::kOff;
  std::vector<graph::AmpRule> amp_rules = {};
  DType parameters = DType::kF32;  // JointOptions::parameters
  std::vector<graph::FormatRule> formats = {};
  graph::OptimizerOptions optimizer = {};
  // For regions without a policy of their own and outside of every region that has one (region_policies.h). Values
  // outside of regions are the planner's to decide.
  Policy policy = Policy::kPlannerDecides;
  std::vector<RegionPolicy> region_policies = {};  // of those that match a region, the last one counts
  // Where values may be offloaded to, preferred tier first; kOffload means the first. Empty: the host, if a region
  // or the policy asks for offloading or the host link has a stated rate. (The host tier of a CPU is the same
  // memory under another name: offloading there frees nothing.)
  std::vector<Tier> tiers = {};
  double link_bytes_per_second = 0;  // the host link's rate for the cost model; 0: the measured one
  // A profile, or the model of a device that is not present: the plan is then for that device, and no session runs
  // it. nullptr: the rates of the device itself.
  std::shared_ptr<const costs::Table> costs = {};
  bool force_costs = false;  // accept a profile that was measured on another machine
  // What the machine around the device says; whoever compiles asks it before (costs::find_machine_facts).
  costs::MachineFacts machine = {};
  uint32_t micro_steps = 0;  // micro-batches per update, which share what an update costs; 0: 1
  // Backward updates each parameter as soon as nothing needs it any more, so that its gradient need not outlive that.
  // Only for one micro-batch per update and no clipping, which needs the norm of all gradients first. The price: a
  // gradient that is not finite is found after other parameters were updated.
  bool fuse_update = false;
  ForcedChoices forced = {};
};

}  // namespace cairn::engine
