// Forward part of the joint graph. Mixed precision is decided here, op by op, from the AMP column of the op
// table and the plan's rules: dtype is part of every value, so a recomputed op cannot see another one.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "runtime/graph/effective/sides.h"
#include "runtime/graph/joint_builder.h"
#include "runtime/graph/shapes.h"

namespace cairn::graph {
namespace {

using ops::Amp;
using ops::OpCode;

// By ValueKind.
constexpr Role kRoleOf[] = {Role::kInput, Role::kParameter, Role::kActivation, Role::kStatistic,
                            Role::kCache};

class Forward {
 public:
  explicit Forward(JointBuilder& builder) : b_(builder), amp_(builder.joint.amp) {}

  void run() {
    const Graph& g = b_.forward;
    current_.assign(g.values().size(), -1);
    mark_needed();
    sides_ = find_sides(g, g.loss(), g.weight());
    b_.joint.effective_steps = sides_.micro_steps;
    for (size_t v = 0; v < g.values().size(); ++v) {
      const Value& value = g.values()[v];
      if (value.kind == ValueKind::kActivation) continue;
      const Role role = kRoleOf[static_cast<size_t>(value.kind)];
      TensorDesc desc = value.desc;
      // The upper half of one that is split.
      if (role == Role::kParameter)
        desc.dtype = b_.formats[v] == DType::kSplit ? DType::kBF16 : b_.formats[v];
      current_[v] = b_.add_value(value.name, desc, role, static_cast<ValueId>(v), value.region);
    }
    for (size_t i = 0; i < g.ops().size(); ++i) {
      part_ = part_of(i);
      if (needed_[i]) add(g.ops()[i], b_.joint.amp_choices[i]);
    }
    for (ValueId v : g.outputs()) keep(v);
    if (g.trains()) {
      if (std::find(g.outputs().begin(), g.outputs().end(), g.loss()) == g.outputs().end()) keep(g.loss());
      part_ = part_of_maker(g.loss());
      b_.joint.loss = scalar(current_[g.loss()]);
      if (g.weight() != kNone) b_.joint.weight = scalar(current_[g.weight()]);
    }
  }

 private:
  void mark_needed() {
    const Graph& g = b_.forward;
    std::vector<bool> wanted(g.values().size());
    for (ValueId v : g.outputs()) wanted[v] = true;
    if (g.loss() != kNone) wanted[g.loss()] = true;
    if (g.weight() != kNone) wanted[g.weight()] = true;
    needed_.assign(g.ops().size(), false);
    for (size_t i = g.ops().size(); i-- > 0;) {
      const Op& op = g.ops()[i];
      // Statistics move in training alone.
      bool any = ops::row(op.code).is(ops::EFFECT) && (g.trains() || statistic_of(op) == kNone);
      for (ValueId v : op.out) any = any || (v != kNone && wanted[v]);
      needed_[i] = any;
      if (any)
        for (ValueId v : op.in)
          if (v != kNone) wanted[v] = true;
    }
  }

  static ValueId statistic_of(const Op& op) {
    const int moved = ops::row(op.code).operand(ops::OperandRole::kMoved);
    return moved < 0 ? kNone : op.in[static_cast<size_t>(moved)];
  }

  // What the op changes in place of making a value; -1: it makes one. A step's sum has no other maker.
  int32_t changed(const Op& op, JointOp& node, const TensorDesc& sum) {
    const int into = ops::row(op.code).operand(ops::OperandRole::kInto);
    if (into >= 0)
      return std::exchange(node.in[static_cast<size_t>(into)], -1);  // the output is what it reads
    const ValueId statistic = statistic_of(op);
    if (statistic == kNone) return -1;
    return b_.add_value(cat(b_.forward.values()[statistic].name, "/sum"), sum, Role::kSum, statistic,
                        op.region);
  }

  Part part_of(size_t op) const { return sides_.effective[op] ? Part::kLoss : Part::kMicroBatch; }
  Part part_of_maker(ValueId v) const {
    const int32_t producer = b_.forward.values()[v].producer;
    return producer < 0 ? Part::kMicroBatch : part_of(static_cast<size_t>(producer));
  }
  static std::vector<int64_t> dims(const Shape& shape) { return {shape.span().begin(), shape.span().end()}; }

  // dtype the float activations of this op are to have; nothing: as they come.
  std::optional<DType> wanted_dtype(Amp amp_class, const Op& op) const {
    if (amp_ == AmpMode::kOff) return {};
    if (amp_class == Amp::FULL) return DType::kF32;
    if (amp_class == Amp::COMPUTE) return narrow_;
    if (amp_class != Amp::FOLLOW) return {};
    for (size_t i = 0; i < op.in.size(); ++i)
      if (op.in[i] != kNone && b_.desc(current_[op.in[i]]).dtype == narrow_ && !parameter(current_[op.in[i]]))
        return narrow_;
    return {};
  }

  static bool has_16_bits(DType type) { return type == DType::kBF16 || type == DType::kF16; }
  bool parameter(int32_t value) const { return b_.joint.values[value].role == Role::kParameter; }

  // Whether the op reads operand i, a parameter that is stored in the narrow type, so. dtype: that of its
  // activations; ops that take them as they come compute in the first one's, first.
  bool reads_narrow(const ops::OpRow& row, size_t i, const std::optional<DType>& dtype, DType first) const {
    const ops::Operand& operand = row.inputs[i];
    const bool narrow = dtype ? *dtype == narrow_ : i > 0 && operand.stays_full() && first == narrow_;
    return narrow && (operand.role == ops::OperandRole::kWeight || !operand.stays_full());
  }

  void add(const Op& op, const AmpChoice& choice) {
    const bool gathers = op.code == OpCode::k_effective && sides_.apart();
    const bool alias = op.code == OpCode::k_effective && !gathers;  // one micro-batch is the effective batch
    JointOp node;
    node.code = alias ? OpCode::k_reshape : op.code;
    node.name = op.name;
    node.attrs = alias ? Attrs{{"shape", dims(b_.desc(current_[op.in[0]]).shape)}} : op.attrs;
    const ops::OpRow& row = ops::row(node.code);
    node.part = part_;
    node.region = op.region;
    node.amp_rule = choice.rule;
    const std::optional<DType> dtype = wanted_dtype(choice.amp_class, op);
    std::vector<TensorDesc> descs(op.in.size());
    for (size_t i = 0; i < op.in.size(); ++i) {
      int32_t value = op.in[i] == kNone ? -1 : current_[op.in[i]];
      const bool blocks =
          value >= 0 && parameter(value) && format(b_.desc(value).dtype).read == Read::kDequantised;
      // The op decodes what it reads.
      if (blocks && row.inputs[i].role == ops::OperandRole::kWeight && !row.inputs[i].decoded) {
        node.in.push_back(value);
        descs[i] = b_.desc(value);
        continue;
      }
      if (blocks) {
        const bool narrow = amp_ == AmpMode::kBf16 && reads_narrow(row, i, dtype, descs[0].dtype);
        value = convert(OpCode::k_dequantise, value, narrow ? narrow_ : DType::kF32);
        if (narrow) {
          node.in.push_back(value);
          descs[i] = b_.desc(value);
          continue;
        }
      } else if (value >= 0 && parameter(value) && has_16_bits(b_.desc(value).dtype)) {
        if (b_.desc(value).dtype == narrow_ && reads_narrow(row, i, dtype, descs[0].dtype)) {
          node.in.push_back(value);
          descs[i] = b_.desc(value);
          continue;
        }
        value = cast(value, DType::kF32);
      }
      // An operand that may be float32 next to half activations may also be a half activation: a bias, the other term.
      if (value >= 0 && dtype && (!row.inputs[i].stays_full() || *dtype == DType::kF32)) {
        const DType is = b_.desc(value).dtype;
        if ((is == DType::kF32 || is == narrow_) && is != *dtype) value = cast(value, *dtype);
      } else if (value >= 0 && dtype && row.has_attr("dtype") && b_.desc(value).dtype == narrow_) {
        value = cast(value, DType::kF32);  // a table that is an activation: the lookup rounds its rows
      }
      node.in.push_back(value);
      if (value >= 0) descs[i] = b_.desc(value);
    }
    // No operand gives the output's dtype where it is an attribute: a table that is looked up is float32, its rows are not.
    const bool wide = descs[0].dtype == DType::kF32 || format(descs[0].dtype).read == Read::kDequantised;
    if (dtype && row.has_attr("dtype") && wide && !node.attrs.has("dtype"))
      node.attrs.set("dtype", std::string(dtype_name(*dtype)));
    const std::vector<TensorDesc> out = infer_shapes(b_.forward, row, node.attrs, node.in, descs);
    const int32_t resident = changed(op, node, out[0]);
    if (resident >= 0 && row.outputs[0].accumulates) node.accumulates = node.first_writer = 1;
    for (size_t i = 0; i < op.out.size(); ++i) {
      if (i == 0 && resident >= 0) {
        if (op.out[i] != kNone) current_[op.out[i]] = resident;
        node.out.push_back(resident);
        continue;
      }
      if (op.out[i] == kNone) {
        node.out.push_back(-1);
        continue;
      }
      const Value& value = b_.forward.values()[op.out[i]];
      const Role role = gathers ? Role::kEffective : Role::kActivation;
      const int32_t id = b_.add_value(value.name, out[i], role, op.out[i], op.region);
      current_[op.out[i]] = id;
      node.out.push_back(id);
    }
    if (row.is(ops::ALIAS)) b_.joint.values[node.out[0]].alias_of = node.in[0];
    b_.joint.ops().push_back(std::move(node));
  }

  int32_t cast(int32_t value, DType dtype) { return convert(OpCode::k_cast, value, dtype); }

  // code: k_cast, or k_dequantise of a parameter.
  int32_t convert(OpCode code, int32_t value, DType dtype) {
    if (b_.desc(value).dtype == dtype) return value;
    const Part part = code == OpCode::k_dequantise ? Part::kMicroBatch : part_;
    const auto key = std::make_tuple(value, dtype, part);
    if (auto it = casts_.find(key); it != casts_.end()) return it->second;
    const JointValue from = b_.joint.values[value];
    TensorDesc desc = from.desc;
    desc.dtype = dtype;
    JointOp node;
    node.code = code;
    node.name = cat(from.name, ".", dtype_name(dtype));
    node.attrs = {{"dtype", std::string(dtype_name(dtype))}};
    node.in = {value};
    node.region = from.region;
    node.part = part;
    node.out = {b_.add_value(node.name, desc, Role::kActivation, from.source, from.region)};
    const int32_t id = node.out[0];
    b_.joint.ops().push_back(std::move(node));
    if (!kind(from.role).is(APPENDED)) casts_.emplace(key, id);  // of a cache, the next one may differ
    return id;
  }

  // Outputs get bytes of their own, which the host can read, even where they are a view of another value.
  void output(int32_t value) {
    for (int32_t v = value;; v = b_.joint.values[v].alias_of) {
      if (!kind(b_.joint.values[v].role).is(PERSISTS)) b_.joint.values[v].role = Role::kOutput;
      if (b_.joint.values[v].alias_of < 0) break;
    }
  }

  // Makes a value an output, with the dtype that the graph declares, under the name that the host gave.
  void keep(ValueId v) {
    part_ = part_of_maker(v);
    const int32_t narrow = current_[v];
    // A parameter is read as what the graph declares anyway.
    const bool widens = b_.forward.values()[v].desc.dtype == DType::kF32 && !parameter(narrow);
    const int32_t kept = widens ? cast(narrow, DType::kF32) : narrow;
    if (kept != narrow) std::swap(b_.joint.values[kept].name, b_.joint.values[narrow].name);
    output(kept);
  }

  int32_t scalar(int32_t value) {
    const int32_t wide = cast(value, DType::kF64);
    output(wide);
    return wide;
  }

  JointBuilder& b_;
  AmpMode amp_;
  DType narrow_ = amp_ == AmpMode::kFp16 ? DType::kF16 : DType::kBF16;
  std::vector<int32_t> current_;  // forward value -> joint value
  std::vector<bool> needed_;
  std::map<std::tuple<int32_t, DType, Part>, int32_t> casts_;
  Sides sides_;
  Part part_ = Part::kMicroBatch;  // of the ops that are added
};

}  // namespace

namespace {

// Those that would be split, but are read in float32 where they are stored as bfloat16, stay float32.
void keep_wide(JointBuilder& builder) {
  std::vector<DType>& formats = builder.formats;
  if (std::ranges::find(formats, DType::kSplit) == formats.end()) return;
  JointBuilder trial(builder.joint.forward);
  trial.joint.amp = builder.joint.amp;
  trial.joint.amp_rules = builder.joint.amp_rules;
  trial.joint.amp_choices = builder.joint.amp_choices;
  trial.formats = formats;
  Forward(trial).run();
  for (const JointOp& op : trial.joint.ops()) {
    if (op.code != OpCode::k_cast) continue;
    const JointValue& from = trial.joint.values[op.in[0]];
    if (from.role != Role::kParameter || from.desc.dtype != DType::kBF16) continue;
    DType& chosen = formats[static_cast<size_t>(from.source)];
    if (chosen == DType::kSplit) chosen = DType::kF32;
  }
}

}  // namespace

void add_forward(JointBuilder& builder) {
  keep_wide(builder);
  Forward(builder).run();
}

}  // namespace cairn::graph
