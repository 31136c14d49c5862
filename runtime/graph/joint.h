// The joint graph: forward + backward + casts, packs and optimizer state, derived from a frozen graph.
// Immutable.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/graph/graph.h"

namespace cairn::graph {

enum class Role : uint8_t {
  kInput,       // written by the host before a micro-batch
  kParameter,   // float32 master
  kGradient,    // float32 sum over the effective batch
  kOptimizer,   // moments
  kPacked,      // a backend's form of a weight, made whenever that changed
  kScratch,     // small persistent things: hyper-parameters, partial sums
  kOutput,      // activation the host may read after a run
  kActivation,  // forward values
  kBackward,    // gradients of activations
};
inline constexpr std::string_view kRoleNames[] = {"input",   "parameter", "gradient",   "optimizer", "packed",
                                                  "scratch", "output",    "activation", "backward"};
// Everything but activations and backward values stays on the device.
inline bool is_persistent(Role r) { return r < Role::kActivation; }

struct JointValue {
  std::string name;
  TensorDesc desc;
  Role role = Role::kActivation;
  ValueId source = kNone;  // the forward value it is, or is the gradient / moment / pack of
  int32_t alias_of = -1;   // >= 0: same bytes as that value (reshape)
  RegionId region = -1;
};

enum class Phase : uint8_t { kPrologue, kForward, kBackward, kUpdate };

struct JointOp {
  ops::OpCode code;
  std::string name;
  Attrs attrs;
  std::vector<int32_t> in, out;  // JointValue ids in row order, -1 where left out
  Phase phase = Phase::kForward;
  RegionId region = -1;
  uint32_t accumulates = 0;   // bit i: out[i] is a parameter's gradient, added to across micro-batches
  uint32_t first_writer = 0;  // bit i: overwrite out[i] in the first micro-batch of a step instead
};

struct ParameterSlot {  // one per trainable or frozen parameter, in graph order
  ValueId source = kNone;
  int32_t value = -1, gradient = -1;  // gradient -1: frozen or without a path
  std::vector<int32_t> moments;       // adamw: m, v
  std::vector<int32_t> packs;
  // Where updates are fused into backward, float64: the gradient's sum of squares, after the step. `fused`:
  // this parameter is updated by an op of the backward part, and its gradient lives only until then.
  int32_t squares = -1;
  bool fused = false;
};

// A pack that JointOptions::unpacked left out: ops pack the weight in their workspace, at every run.
struct LeftOutPack {
  JointOp node;       // the prologue's op that would have made it, without its output
  TensorDesc packed;  // that output
};
struct PlainUse {  // op `op` would read left_out[pack] as its input `operand`
  int32_t op, operand, pack;
};

struct JointGraph {
  std::shared_ptr<const Graph> forward;
  std::vector<JointValue> values;
  std::vector<JointOp> ops;        // forward then backward, in execution order; no prologue ops
  std::vector<JointOp> prologue;   // packs, made before a micro-batch where weights changed
  int32_t turnaround = 0;          // first backward op
  int32_t loss = -1, weight = -1;  // float64 scalars (weight -1: 1 per micro-batch); role kOutput
  std::vector<ParameterSlot> parameters;
  std::vector<LeftOutPack> left_out;
  std::vector<PlainUse> plain_uses;  // by op
  // Once per optimizer step, after the last micro-batch: the sum of squares of all gradients into `norm`,
  // then, where that is finite, one op per parameter that has moments, in graph order.
  std::vector<JointOp> norm_ops, update_ops;
  // Scratch of the optimizer: 8 float64 for parameters without weight decay, and with it; 1 float64.
  std::array<int32_t, 2> hyper{-1, -1};
  int32_t norm = -1;
  // >= 0: updates are fused into backward. Scratch, float64: what gradients are multiplied by; not finite
  // where loss, weight or a gradient were not, and no parameter was updated from then on.
  int32_t gate = -1;

  bool has_optimizer() const { return norm >= 0; }
  int32_t storage(int32_t value) const {  // follows aliases
    while (values[value].alias_of >= 0) value = values[value].alias_of;
    return value;
  }
  int32_t find(std::string_view name) const;  // -1 if there is none
};

enum class AmpMode : uint32_t { kOff = 0, kBf16 = 1, kFp16 = 2 };
enum class Optimizer : uint32_t { kNone = 0, kAdamW = 1 };

// How a backend packs a weight; see kernels::Registry::packed_bytes. A plain function, so that graph knows no
// kernel.
using PackedBytes = int64_t (*)(const TensorDesc& weight, std::string_view use, int64_t m, DType compute,
                                int threads);

using PackUse = std::pair<std::string, std::string>;  // name of a weight, use: "forward" | "input_grad"

struct JointOptions {
  AmpMode amp = AmpMode::kOff;
  Optimizer optimizer = Optimizer::kAdamW;
  PackedBytes packed_bytes = nullptr;  // nullptr: nothing is packed
  bool one_pack = false;               // the backend's "forward" pack serves every use and number of rows
  int threads = 1;
  bool fuse_update = false;    // parameters whose gradient one op writes are updated once nothing needs them
  std::set<PackUse> unpacked;  // not to be packed although the backend could
};

// Forward graph -> joint graph. kUnsupported: fp16; an op without a gradient on a path that needs one (by
// name).
std::shared_ptr<const JointGraph> derive(std::shared_ptr<const Graph> graph, const JointOptions& options);

}  // namespace cairn::graph
