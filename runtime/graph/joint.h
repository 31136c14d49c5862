// The joint graph: forward + backward + casts, packs and optimizer state, derived from a frozen
// graph. Immutable.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/lane.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/residents.h"
#include "runtime/ops/optimizers.h"

namespace cairn::graph {

struct JointValue {
  std::string name;
  TensorDesc desc;
  Role role = Role::kActivation;
  ValueId source = kNone;  // the forward value it is, or is the gradient / moment / pack of
  int32_t alias_of = -1;   // >= 0: same bytes as that value (reshape)
  RegionId region = -1;
};

// What an op of the micro-batch is a part of, where the graph has values of the effective batch (effective/sides.h): a step runs
// kGather for each of its micro-batches, then kLoss once, then kMicroBatch for each. Other graphs have the last one alone.
enum class Part : uint8_t { kGather, kLoss, kMicroBatch };
inline constexpr size_t kParts = 3;

struct JointOp {
  ops::OpCode code;
  std::string name;
  Attrs attrs;
  std::vector<int32_t> in, out;  // JointValue ids in row order, -1 where left out
  bool backward = false;         // of a micro-batch
  RegionId region = -1;
  uint32_t accumulates = 0;   // bit i: out[i] is a parameter's gradient, added to across micro-batches
  uint32_t first_writer = 0;  // bit i: overwrite out[i] in the first micro-batch of a step instead
  bool deferred = false;      // of a micro-batch: an update of the step before
  Part part = Part::kMicroBatch;
  int32_t forward = -1;   // a number of the forward op that it is, or whose gradient it is a part of
  int32_t amp_rule = -1;  // index into JointGraph::amp_rules: the one that chose its precision, if any
};

// When a phase's ops run.
enum class When : uint8_t {
  kWeightsDirty,  // before a micro-batch, where a parameter has changed
  kMicroBatch,    // every micro-batch
  kStep,          // once per optimizer step, behind its last micro-batch
  kStepIfFinite,  // then, where what that found is finite
};

struct Phase {
  std::string name;
  When when;
  Lane lane;  // on which its ops run
  std::vector<JointOp> ops;
};
// The phases of every joint graph, in order. A plan is made for kMicroBatch; between its runs, nothing but
// persistent values lives.
enum PhaseIndex : size_t { kRepack, kMicroBatch, kGradientNorm, kUpdate, kStatistics, kPhaseCount };

struct ParameterSlot {  // one per trainable or frozen parameter, in graph order
  ValueId source = kNone;
  int32_t value = -1, gradient = -1;  // gradient -1: frozen or without a path
  int32_t hyper = -1;                 // index into JointGraph::hypers; -1: never updated
  // Where updates are fused into backward, float64: the gradient's sum of squares, after the step. `fused`:
  // this parameter is updated by an op of the backward part, and its gradient lives only until then.
  // The same with JointOptions::squares_in_backward, after the last micro-batch.
  int32_t squares = -1;
  bool fused = false;
  // This parameter is updated by an op of the next micro-batch's forward part.
  bool deferred = false;
  // It is updated beside the backward part: JointOptions::updates_beside_backward.
  bool beside_backward = false;
};

// Parameters with hyper-parameters of their own. The first group has all that no other one names. Beside one
// whose optimizer does not take every parameter there is one with the rest (OptimizerRow::otherwise).
struct ParameterGroup {
  std::string pattern;  // "" for the first one; "PATTERN/OPTIMIZER" of a rest
  const ops::OptimizerRow* optimizer = nullptr;
  std::vector<double> hypers;  // as the optimizer's row
  std::vector<bool> given;     // of them, those that are no defaults of the row

  double hyper(std::string_view name) const;  // kInvalidArgument lists those it has
};
// What the updates of a group's parameters read. Scratch: update_op::kHyperSlots of float64.
struct HyperBlock {
  int32_t value;
  int32_t group;
  bool decays;  // false: for parameters that take no weight decay
};

// A derived weight that JointOptions::not_kept names: what reads it makes it, at every run, in its workspace
// (JointGraph::plain_uses) or by an op of the micro-batch.
struct NotKept {
  JointOp node;     // the op of kRepack that would have made it, without its output
  TensorDesc made;  // that output
  Role role;        // of it
};
// A weight, or a gradient, that the micro-batch has in parts: consecutive rows, each a value of its own. What is outside the
// micro-batch knows the whole, whose bytes these are, one behind the other.
struct Slices {
  int32_t whole;
  std::vector<int32_t> parts;
};

struct PlainUse {  // op `op` would read not_kept[pack] as its input `operand`
  int32_t op, operand, pack;
};

enum class AmpMode : uint32_t { kOff = 0, kBf16 = 1, kFp16 = 2 };

// Ops with another AMP class than their row's: those whose name (that of a custom op: its own) and one of
// whose regions' whole paths match, where * stands for any text and ? for one character. Of the rules that
// match an op the last one counts.
struct AmpRule {
  std::string op = {};      // "": any
  std::string region = {};  // "": anywhere
  std::string amp_class;    // a row of amp.def that rules may give, or "default": the op's own
};
inline constexpr std::string_view kAmpDefault = "default";
struct AmpChoice {
  ops::Amp amp_class;
  int32_t rule = -1;  // -1: as the op's row says
};
std::vector<AmpChoice> amp_choices(const Graph& graph, std::span<const AmpRule> rules);
// For graphs that are planned together. kInvalidArgument, naming what there is: no such class, a rule that
// names neither op nor region, or matches no op of any graph, or only ops whose types no class changes.
void check_amp_rules(std::span<const Graph* const> graphs, std::span<const AmpRule> rules);
std::string to_string(const AmpRule& rule);                  // for messages
std::string_view op_name(const Graph& graph, const Op& op);  // of its row, or a custom op's own; ended by NUL

struct JointGraph {
  std::shared_ptr<const Graph> forward;
  std::vector<JointValue> values;
  // kRepack: derived weights. kMicroBatch: forward then backward, in execution order; part after part. kGradientNorm: the sum
  // of squares of all gradients into `norm`. kUpdate: one op per parameter that has a gradient, in graph
  // order. kStatistics: one op per statistic that the micro-batch sums up.
  std::vector<Phase> phases = standard_phases();
  int32_t backward_begin = 0;      // first backward op
  int32_t loss = -1, weight = -1;  // float64 scalars (weight -1: 1 per micro-batch); role kOutput
  std::vector<ParameterSlot> parameters;
  std::vector<Resident> residents;  // by owner, those without one last; then by kind and value
  std::vector<ParameterGroup> groups;
  std::vector<HyperBlock> hypers;
  std::vector<NotKept> not_kept;
  std::vector<PlainUse> plain_uses;  // by op
  std::vector<Slices> slices;
  // > 1: so many micro-batches are an effective batch, which some of the values are of; the op's parts run apart.
  int64_t effective_steps = 1;
  int32_t norm = -1;                 // of the gradients; scratch, float64
  std::vector<int32_t> averages_of;  // parameters that have an average, kAverage
  // >= 0: updates are fused into backward. Scratch, float64: what gradients are multiplied by; not finite
  // where loss, weight or a gradient were not, and no parameter was updated from then on.
  int32_t grad_scale = -1;
  // Micro-batches leave ParameterSlot::squares of every gradient: those of the sum so far.
  bool squares_in_backward = false;
  // Micro-batches begin with updates of the step before, ParameterSlot::deferred.
  bool updates_deferred = false;
  // >= 0: fp16. Scratch, float64, written before each micro-batch: what gradients are multiplied by.
  int32_t loss_scale = -1;
  AmpMode amp = AmpMode::kOff;
  std::vector<AmpRule> amp_rules;
  std::vector<AmpChoice> amp_choices;  // by op of `forward`; what holds wherever `amp` is not off

  bool has_optimizer() const { return norm >= 0; }
  bool in_parts() const { return effective_steps > 1; }
  std::vector<JointOp>& ops(PhaseIndex phase = kMicroBatch) { return phases[phase].ops; }
  const std::vector<JointOp>& ops(PhaseIndex phase = kMicroBatch) const { return phases[phase].ops; }
  int32_t storage(int32_t value) const {  // follows aliases
    while (values[value].alias_of >= 0) value = values[value].alias_of;
    return value;
  }
  int32_t find(std::string_view name) const;  // -1 if there is none
  // Values of this kind that belong to a parameter: states in the order of the optimizer's row.
  std::vector<int32_t> owned(int32_t parameter, Role role) const;
  const ParameterSlot* slot_of(int32_t parameter) const;  // nullptr: it is none, or a slice of one
  bool updated(int32_t parameter) const;  // a step changes it, after its micro-batches or within them
  bool averages() const { return !averages_of.empty(); }
  int32_t low_of(int32_t parameter) const;       // lower half of a value that is split; -1: it is not
  const Slices* slices_of(int32_t whole) const;  // nullptr: it is in one piece

 private:
  static std::vector<Phase> standard_phases() {
    return {{"repack", When::kWeightsDirty, Lane::kCompute, {}},
            {"micro-batch", When::kMicroBatch, Lane::kCompute, {}},
            {"gradient norm", When::kStep, Lane::kCompute, {}},
            {"update", When::kStepIfFinite, Lane::kCompute, {}},
            {"statistics", When::kStepIfFinite, Lane::kCompute, {}}};
  }
};

// Parameters whose names match `pattern` (* any text, ? one character) take an optimizer of their own, or
// other hyper-parameters.
struct GroupOptions {
  std::string pattern;         // or that of a group's rest
  std::string optimizer = {};  // "": as all others
};
// One hyper-parameter of a group and of its rest, or of all groups whose optimizer has one of that name.
struct HyperSetting {
  std::optional<std::string> group;  // its pattern; "": of the parameters that no other group names
  std::string name;
  double value = 0;
};
struct OptimizerOptions {
  std::string name = "adamw";  // of a row of optimizers.def; "": none, gradients alone
  std::vector<GroupOptions> groups = {};
  std::vector<HyperSetting> hypers = {};
  // > 0: of every parameter that is updated, an average that moves after each applied update by 1 - decay towards it.
  double average_decay = 0;
};
// kInvalidArgument: no such group or hyper-parameter, a value out of range.
void apply(const HyperSetting& setting, std::vector<ParameterGroup>& groups);
// kInvalidArgument lists the groups.
const ParameterGroup& group_of_pattern(std::span<const ParameterGroup> groups, std::string_view pattern);

// What the parameters whose names match a pattern (* any text, ? one character) are stored as, in the place of
// JointOptions::parameters. Of the rules that match a parameter the last one counts.
struct FormatRule {
  std::string pattern;
  std::string format;  // a row of formats.def that trains, or that is dequantised, of frozen parameters
};
// For graphs that are planned together. kInvalidArgument, naming what there is: a format that is none of
// parameters, a pattern that matches no parameter of any graph, or only vectors, which stay as they are declared.
void check_format_rules(std::span<const Graph* const> graphs, std::span<const FormatRule> rules);

// How a backend packs a weight; see kernels::Registry::packed_bytes. A plain function, so that graph knows no
// kernel.
using PackedBytes = int64_t (*)(const TensorDesc& weight, std::string_view use, int64_t m, DType compute,
                                int threads);

using PartRows = std::map<std::string, std::vector<int64_t>>;
// A derived weight: the name of the parameter, and what it is for: "forward" or "input_grad" of one that is packed, the
// type of one that is decoded.
using DerivedUse = std::pair<std::string, std::string>;
DerivedUse use_of(const JointGraph& joint, const JointOp& node);  // node: an op of kRepack

struct JointOptions {
  AmpMode amp = AmpMode::kOff;
  std::vector<AmpRule> amp_rules = {};  // looked at by check_amp_rules()
  OptimizerOptions optimizer = {};
  PackedBytes packed_bytes = nullptr;  // nullptr: nothing is packed
  bool one_packed_form = false;        // the backend's "forward" pack serves every use and number of rows
  int threads = 1;
  bool fuse_update = false;  // parameters whose gradient one op writes are updated once nothing needs them
  // With fuse_update: parameters, by name, whose updates stay ops of kUpdate, for another processor to make beside backward as soon
  // as their gradients are there, which persist. What those updates read is there as well: ParameterSlot::squares, grad_scale.
  std::set<std::string> updates_beside_backward = {};
  // Micro-batches leave the squares of gradients for the norm, which has its own ops all the same. Not with weights in parts, or
  // updates fused into backward.
  bool squares_in_backward = false;
  // Parameters, by name, that are updated where the next micro-batch uses them first, if that is a forward op behind another
  // one. Not packed ones, and not with updates fused into backward.
  std::set<std::string> deferred_updates = {};
  // What float32 parameters of two or more dimensions are stored as. kBF16: ops that compute in it read them as
  // they lie, all others a float32 copy; updates, whose gradients and states stay float32, round
  // stochastically. kSplit: those that no op reads in float32 are the bfloat16 that ops read and, beside it, the 16
  // bits below (formats/split.h), which only updates read.
  DType parameters = DType::kF32;
  // For some of them another format. One that ops do not read is for frozen parameters: an op `dequantise` makes what
  // they read, a derived weight of the type that they would read otherwise.
  std::vector<FormatRule> formats = {};
  std::set<DerivedUse> not_kept = {};  // derived weights that ops make for themselves, at every run
  // Parameters, by name, that lookups and fused losses alone use, in parts, which begin at these rows, the first at 0. Not what
  // other ops use, either, nor what is updated within backward.
  PartRows parts = {};
};

// JointOptions::parts may name it.
bool slices_by_rows(const JointGraph& joint, const ParameterSlot& slot);

// Forward graph -> joint graph. kInvalidArgument: an optimizer or hyper-parameter that there is not, a group
// that matches no parameter, two that match the same one, parameters in bf16 without amp bf16. kUnsupported: an op without a gradient on a path
// that needs one (by name); fp16 without an optimizer, or with its updates fused into backward.
std::shared_ptr<const JointGraph> derive(std::shared_ptr<const Graph> graph, const JointOptions& options);

}  // namespace cairn::graph
