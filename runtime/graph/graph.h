// The forward model: values and ops with fixed shapes, nestable regions. Built node by node (each node is
// checked when it is added), frozen once, then immutable and shareable between threads.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/base/policy.h"
#include "runtime/graph/adapters.h"
#include "runtime/ops/ops.h"

namespace cairn::graph {

using ValueId = int32_t;   // index into Graph::values(); the C ABI adds 1
using RegionId = int32_t;  // index into Graph::regions(); -1: outside every region
inline constexpr ValueId kNone = -1;
inline constexpr int kMaxRegionDepth = 8;
// As many as the files of graphs hold; what an op makes together may pass the first by a few.
inline constexpr size_t kMaxValues = (1u << 20) - 64;
inline constexpr size_t kMaxRegions = 20000;

enum class ValueKind : uint8_t { kInput = 0, kParameter = 1, kActivation = 2, kStatistic = 3, kCache = 4 };
inline constexpr ValueKind kLastValueKind = ValueKind::kCache;

constexpr std::string_view value_kind_name(ValueKind kind) {
  constexpr std::string_view kNames[] = {"input", "parameter", "activation", "statistic", "cache"};
  return kNames[static_cast<size_t>(kind)];
}

// How a parameter starts: constant `a`, normal(0, a), uniform(-a, a), normal(0, a) within two deviations, or a times a
// matrix [first dimension, the others] of orthonormal rows or columns, whichever are fewer; drawn from (seed, parameter index).
// Of adapters alone, by the numbers of the weight of their module: the norms of its rows, or factors of its largest singular
// values, which it then has no more.
enum class Init : uint8_t {
  kConstant = 0,
  kNormal = 1,
  kUniform = 2,
  kTruncatedNormal = 3,
  kOrthogonal = 4,
  kRowNorms = 5,
  kPrincipal = 6
};
inline constexpr Init kLastGivenInit = Init::kOrthogonal, kLastInit = Init::kPrincipal;

struct ParameterOptions {
  bool frozen = false;  // no gradient, no optimizer state
  bool decay = true;    // weight decay applies
  Init init = Init::kConstant;
  double init_scale = 0;
};

struct Value {
  std::string name;
  TensorDesc desc;
  ValueKind kind = ValueKind::kActivation;
  ParameterOptions parameter;
  int32_t producer = -1;  // op, for activations
  RegionId region = -1;
};

struct Op {
  ops::OpCode code;
  std::string name;  // "h0/attn/linear_3"
  Attrs attrs;
  std::vector<ValueId> in, out;  // row order; kNone where left out
  RegionId region = -1;
};

struct Region {
  std::string name;  // full path
  RegionId parent = -1;
  Policy policy = Policy::kPlannerDecides;
  std::string offload_tier;  // for kOffload; "": host
  int depth = 1;
};

// A host's own op. Shapes and workspace are asked when the node is added / the plan is made; forward and
// backward run on a compute lane's thread. Callbacks return false to signal failure (the run is then
// poisoned).
struct CustomOp {
  std::string name;
  int inputs = 0, outputs = 0;  // 1..4 each
  bool recomputable = true;     // deterministic and without side effects
  bool bound = true;  // false: read from a file, which has its name but no callbacks; bind() sets these
  std::function<bool(std::span<const TensorDesc> in, std::span<TensorDesc> out)> shape;
  std::function<int64_t(std::span<const TensorDesc> in)> workspace_bytes;  // may be empty: 0
  std::function<bool(std::span<const Tensor> in, std::span<const Tensor> out, void* workspace)> forward;
  // in: x..., y..., dy... (dy absent: data nullptr); out: dx... (unwanted: data nullptr). Empty: no gradient.
  std::function<bool(std::span<const Tensor> in, std::span<const Tensor> out, void* workspace)> backward;
};

// Looked up by any kind of text without a copy of it.
struct NameHash {
  using is_transparent = void;
  size_t operator()(std::string_view name) const noexcept { return std::hash<std::string_view>()(name); }
};
using Names = std::unordered_map<std::string, ValueId, NameHash, std::equal_to<>>;

class Graph {
 public:
  // ---- building: until freeze(); kWrongState afterwards. On an error the graph is as before the call.
  ValueId input(std::string name, TensorDesc desc);
  ValueId parameter(std::string name, TensorDesc desc, ParameterOptions options);
  // A value that no gradient reaches and that goes on from run to run: kStatistic, which steps move (op running_mean), or
  // kCache, which runs change (op append). Where a session is initialised it is `fill`.
  ValueId resident(std::string name, ValueKind kind, TensorDesc desc, double fill = 0);
  // Adds an op by name. `in` may hold kNone for optional operands and may be shorter than the row. Returns
  // the outputs in row order, kNone for optional outputs this call does not make.
  std::vector<ValueId> op(std::string_view name, std::vector<ValueId> in, Attrs attrs = {});
  // From here on ops whose weights are those of modules that the rule names get an adapter; freeze() then freezes all
  // parameters but those of adapters and of modules that rules say are trained. kInvalidArgument: no such rule.
  void adapt(AdapterRule rule);
  void name_value(ValueId value, std::string name);
  int custom(CustomOp op);  // registers; its name can then be used in op()
  // Gives the op of its name that came from a file its callbacks; before a plan is made. kNotFound: none waits for them.
  // kInvalidArgument: it is another op, by what it takes and makes.
  void bind(CustomOp op);
  bool waits_for_customs() const;  // for bind()
  RegionId region_begin(std::string name, Policy policy, std::string offload_tier = {});
  void region_end(RegionId region);  // must be the innermost open one

  // Ends building. Training graphs: loss is a scalar (output 0 of a loss op, or any scalar); weight its
  // denominator (kNone: output 1 of the loss op, or 1). `outputs`: activations the host wants to read after a
  // run. kInvalidArgument: a region is open, loss is not a scalar, no parameter has a gradient path.
  void freeze(ValueId loss, ValueId weight, std::vector<ValueId> outputs);

  // ---- reading; any thread once frozen
  bool frozen() const { return frozen_; }
  const std::vector<Value>& values() const { return values_; }
  const std::vector<Op>& ops() const { return ops_; }
  const std::vector<Region>& regions() const { return regions_; }
  const std::vector<CustomOp>& customs() const { return customs_; }
  ValueId loss() const { return loss_; }
  ValueId weight() const { return weight_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }
  bool trains() const { return loss_ != kNone; }
  const Adapters& adapters() const { return adapters_; }  // as it was built; files do not hold it
  ValueId find(std::string_view name) const noexcept;     // kNone if there is none
  // Things worth telling: regions without a gradient path, parameters without a gradient.
  const std::vector<std::string>& notes() const { return notes_; }
  // XXH3-128 style digest of structure (names, shapes, ops, attributes, regions): two 64-bit halves as hex.
  std::string digest() const;

 private:
  friend class AdapterBuilder;
  // What one call adds, made and checked aside.
  struct Addition {
    std::vector<Value> values;
    std::vector<Op> ops;
    std::vector<Region> regions;  // they become the innermost open ones
    std::vector<CustomOp> customs;
  };

  void building() const;
  // op() as it stands in the table.
  std::vector<ValueId> plain_op(std::string_view name, std::vector<ValueId> in, Attrs attrs);
  // Takes back all values and ops from these numbers on. Nothing else was added meanwhile.
  void take_back(size_t values, size_t ops) noexcept;
  // The only way in: makes room for everything first, then moves it in by what cannot fail. So a call that
  // fails, for want of memory or because a name is taken, leaves the graph as it was.
  void commit(Addition&& addition);
  ValueId add_value(Value value);
  std::vector<std::string> gradient_notes(ValueId loss) const;
  void room_for_values(std::string_view what) const;  // for one more input, parameter or op
  void check_residents(const ops::OpRow& row, const std::vector<ValueId>& in) const;
  [[noreturn]] void unknown_op(std::string_view name) const;

  std::vector<Value> values_;
  Names by_name_;
  std::vector<Op> ops_;
  std::vector<Region> regions_;
  std::vector<CustomOp> customs_;
  std::vector<RegionId> open_;
  std::vector<ValueId> outputs_;
  std::vector<std::string> notes_;
  Adapters adapters_;
  ValueId loss_ = kNone, weight_ = kNone;
  bool frozen_ = false;
};

}  // namespace cairn::graph
