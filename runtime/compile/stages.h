// What a graph becomes on its way to programs. Each stage is made once, by a function that returns it, and const
// from then on; a variant is a stage of its own.
//
//   Lowered       the planner's problem, and which residents have left the device before it is solved
//   Planned       its solution: which of the others live in a tier as well
//   Placed        where all of them lie, to the byte
//   CompiledPlan  the programs
#pragma once
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "runtime/compile/options.h"
#include "runtime/compile/program.h"
#include "runtime/plan/plan.h"

namespace cairn::engine {

// Lists of values and of ops, which are short.
inline bool holds(const std::vector<int32_t>& list, int32_t v) {
  return std::find(list.begin(), list.end(), v) != list.end();
}
inline void add(std::vector<int32_t>& list, int32_t v) {
  if (!holds(list, v)) list.push_back(v);
}

// The place of a value that lives in a tier, not on the device.
struct OffloadedPlace {
  struct Extent {
    int64_t begin, bytes;  // a part of the value
    int64_t tier_offset;   // where it lies in the tier's arena
  };
  Tier tier;
  std::vector<Extent> extents;  // in order, without gaps; empty until the value is placed
};

// Who asks where a value is.
enum class Point : uint8_t {
  kMicroBatch,    // an op of the micro-batch
  kBetween,       // the host, between runs
  kDeviceUpdate,  // the norm, an update or packing on the device
  kHostUpdate,    // an update by the host's processors
};
struct Where {
  enum class Use : uint8_t {
    kOnDevice,  // it is in the device's arena
    kInPlace,   // it is in a tier, and kernels use it there
    kStreamed,  // it is in a tier, and copies bring it
  };
  Use use = Use::kOnDevice;
  Tier tier = Tier::kDevice;
  // Of its first byte in the tier's arena; -1: it is not known before the value is placed, or, of a value of a run,
  // only the plan's steps say it.
  int64_t offset = -1;
  std::span<const OffloadedPlace::Extent> extents = {};  // in a tier

  bool on_device() const { return use == Use::kOnDevice; }
  bool in_place() const { return use == Use::kInPlace; }
  bool streamed() const { return use == Use::kStreamed; }
};

// A gradient that the host's processors sum over the micro-batches of a step.
struct HostAdd {
  int32_t add = -1, squares = -1;  // CompiledPlan::kernels: of the sum, and of the sum of its squares
  int32_t squares_value = -1;      // the joint value of the latter; -1: backward makes no squares
  int64_t squares_place = -1;      // where the host writes them, on the host tier
};

// The persistent values of all plans of a set. They fill the arena of each plan from 0, in this order.
struct StoreLayout {
  struct Entry {
    std::string name;
    TensorDesc desc;
    graph::Role role;
    bool sliced = false;  // plans have its slices only (JointGraph::slices)
  };
  std::vector<Entry> values;
  std::vector<std::vector<int32_t>>
      entry_of;  // plan, joint value -> index into `values`; -1: it does not persist
  size_t plans = 0;
  size_t primary =
      0;  // the plan whose update the store runs; it also packs the weights that it shares with others
};

// An op of the problem whose joint ops run on one tile of their rows after the other (tiles/tiles.h).
struct TileOperand {
  int32_t value = -1;  // joint value; -1: left out
  TensorDesc desc;     // of the tile
  int64_t offset = 0;  // in the op's workspace, or from where the value begins
  bool interior = false;
};
struct TileLaunch {
  int32_t joint_op, kernel;
  uint32_t continues;  // outputs as bits: a sum that the tile before began
  std::vector<TileOperand> in, out;
};
struct Tiles {
  int64_t count;                                  // of tiles
  std::vector<TileLaunch> launches;               // in order
  int64_t scratch_offset = 0, scratch_bytes = 0;  // of the op's workspace: what kernels have for theirs
};

struct Lowered {
  // Whose plan it is, and for which device.
  std::shared_ptr<const graph::JointGraph> joint;
  std::shared_ptr<const StoreLayout> layout;  // nullptr: no set
  size_t index_in_set = 0;
  std::shared_ptr<const costs::Table> costs;  // the seconds' source; nullptr: the device's own rates
  int threads = 1;
  const kernels::Registry* registry = nullptr;
  std::string device;
  bool host_in_reach = false;  // kernels reach the host tier

  // The problem, and the maps between it and the joint graph.
  plan::Problem problem;
  std::vector<int32_t> problem_value;  // joint value -> problem value; -1: an alias, or not in the problem
  std::vector<int32_t> layout_value;   // entry of the layout -> problem value; -1: offloaded
  std::vector<std::vector<int32_t>> problem_op;  // problem op -> joint ops, in the order they run
  std::vector<Tier> link_tier;                   // problem link -> tier

  // Kernels, one per signature: that makes workspace known before planning.
  std::vector<std::shared_ptr<const kernels::Kernel>> kernels;
  std::set<int32_t> host_kernels;  // of these, the processor's, where the device has other kernels
  // Phase, op of the phase -> kernel; -1: an alias. A phase whose ops are one launch has one kernel.
  std::vector<std::vector<int32_t>> op_kernel = std::vector<std::vector<int32_t>>(graph::kPhaseCount);

  std::map<int32_t, std::shared_ptr<const Tiles>>
      tiles;                          // by the last one of the joint ops of an op of the problem
  size_t part_of(int32_t op) const {  // graph::Part of an op of the problem
    return static_cast<size_t>(
        joint->ops()[static_cast<size_t>(problem_op[static_cast<size_t>(op)].front())].part);
  }
  const Tiles* tiles_of(int32_t problem_op) const;  // nullptr: it goes without
  // Leaves the problem the ops of `order`, in that order, those of forward first. now: value -> its number from here on;
  // -1: no op of `order` uses it. Names stay unique, and what depends on ops is counted again: where backward begins, and
  // how many of them were measured.
  void keep_ops(const std::vector<int32_t>& order, const std::vector<int32_t>& now);

  // What the cost model knows.
  std::vector<bool> op_measured;  // joint op -> its seconds come from the profile
  int64_t measured_ops = 0;       // ops of the problem of which all seconds do
  int64_t in_place_ops = 0;       // joint ops that write over an input
  // Seconds around the problem: of packed weights, norm and update, once per step; of inputs and loss, per
  // micro-batch.
  double update_seconds = 0, host_seconds = 0;

  // Gradients are values of the problem that live from the op that writes them first to the problem's last op, which
  // stands for norm and update (residency/gradients.h).
  bool gradients_end = false;
  // The plan is for one micro-batch per update: gradients that live in a tier, or end with the step, are
  // overwritten.
  bool overwrites_gradients = false;

  // Residents in a tier that are no values of the problem: micro-batches do not use them, or use them in place.
  std::map<int32_t, OffloadedPlace> offloaded;
  // Residents in a tier that micro-batches fetch: values of the problem with a residency. Before the problem is
  // solved, those that may live there.
  std::map<int32_t, OffloadedPlace> homes;

  // Weights that the host's processors update (update/host_updates.h): their states, the weight and its gradient
  // live on the host tier or the disk. The next run begins with these updates, or, where updates are fused, they
  // run concurrently with backward, but for those of `host_deferred`.
  std::set<int32_t> host_updated, host_deferred;
  double host_memory_bytes_per_second = 0;  // the rate that times them; 0: not known
  std::optional<plan::Link>
      host_disk;                // the disk as the host reads and writes it, where these updates may use it
  int64_t host_ring_bytes = 0;  // of the host tier, through which values on the disk stream for them
  // Gradients that the host's processors sum (residency/host_adds.h), and the bytes of the host tier that this takes:
  // for what micro-batches send, then for a workspace.
  std::map<int32_t, HostAdd> host_added;
  int64_t add_ring_bytes = 0, add_workspace_bytes = 0;

  // Where a resident is for whoever asks at this point. The offset is known of placed values only.
  Where where(int32_t value, Point point) const;
  bool streamed(int32_t value) const { return where(value, Point::kDeviceUpdate).streamed(); }

  bool reaches(Tier tier) const { return host_in_reach && tier == Tier::kHost; }
  bool streams() const;    // an update streams something
  Tier update_at() const;  // where updates run; on the host where they use something there in place
  bool on_host(const graph::JointOp& update) const {
    return host_updated.contains(update.out[update_op::kParameter]);
  }
  bool updates_beside_backward() const { return !host_updated.empty() && joint->grad_scale >= 0; }
  bool defers(const graph::JointOp& update) const {
    return on_host(update) &&
           (!updates_beside_backward() || host_deferred.contains(update.out[update_op::kParameter]));
  }
  bool defers_updates() const {
    return joint->updates_deferred ||
           (updates_beside_backward() ? !host_deferred.empty() : !host_updated.empty());
  }
  int64_t deferred_updates() const;  // parameters that the next micro-batch updates
  bool streams_on_host() const { return host_ring_bytes > 0; }
};

struct Planned : Lowered {
  Planned() = default;
  explicit Planned(Lowered lowered) : Lowered(std::move(lowered)) {}
  Planned(Lowered lowered, plan::Plan solved) : Lowered(std::move(lowered)), plan(std::move(solved)) {}

  plan::Plan plan;
  double host_wait_seconds =
      0;  // of update_seconds: a forward part or the end of a run waits for updates on the host
  // Without a budget: the problem with ops in place, or without them, whichever `problem` is not. nullptr: there is
  // none.
  std::shared_ptr<const plan::Problem> other_form;

  int64_t persistent_bytes() const;  // the end of the persistent values, which fill the arena from 0
};

struct Placed : Planned {
  Placed() = default;
  explicit Placed(Planned planned) : Planned(std::move(planned)) {}

  std::map<int32_t, int64_t>
      gradient_offsets;  // problem value -> device offset between runs of gradients that end
  std::array<int64_t, kTierCount> offloaded_bytes{};  // by tier, of `offloaded`; everything else lies above
  // Of the host tier: host_ring_bytes, add_ring_bytes, and copies of the numbers on the device that updates there
  // read.
  int64_t host_ring = -1, add_ring = -1;
  std::map<int32_t, int64_t> host_copies;

  Where where(int32_t value, Point point) const;

  int64_t home_bytes(Tier tier) const;
  int64_t resident_bytes(Tier tier) const {
    return offloaded_bytes[static_cast<size_t>(tier)] + home_bytes(tier);
  }
  // Above the persistent values, bytes in which nothing lives between runs and that no planned peak counts twice.
  struct FreeRange {
    int64_t offset, bytes;
  };
  FreeRange free_range() const;
};

// Everything that a session needs. Sessions share it.
struct CompiledPlan : Placed {
  CompiledPlan() = default;
  explicit CompiledPlan(Placed placed) : Placed(std::move(placed)) {}

  // By phase of the joint graph. Updates also pack what they update; the phase of repacking is for weights on the
  // device.
  std::vector<Program> programs = std::vector<Program>(graph::kPhaseCount);
  Program fetched_repack;  // packs weights that live in a tier, after the host wrote them
  // Parts of a micro-batch's program. The run begins with the first two: updates by the host of the step before,
  // and the device's updates next to them. It ends with the third: updates by the host concurrently with backward.
  Program host_program, beside_host_updates, beside_backward;
  std::map<int32_t, int32_t>
      host_done;  // joint value -> event of host_program from which on it may be copied
  // A kernel object runs on one thread at a time: sessions of this plan take turns.
  std::shared_ptr<std::mutex[]> kernel_locks;

  const Program& program(graph::PhaseIndex phase = graph::kMicroBatch) const { return programs[phase]; }
  Program& program(graph::PhaseIndex phase = graph::kMicroBatch) { return programs[phase]; }

  // Device bytes at the planned peak by category, which sum to arena_bytes. Inputs, scratch and outputs count as
  // activations, packed weights as parameters, gaps of the layout as workspace.
  struct Memory {
    int64_t parameters = 0, gradients = 0, optimizer = 0, activations = 0, workspace = 0;

    int64_t& of(graph::Counted counted) {
      int64_t* const entries[] = {&parameters, &gradients, &optimizer, &activations};
      return *entries[static_cast<size_t>(counted)];
    }
  };
  Memory memory_at_peak() const;
};

}  // namespace cairn::engine
