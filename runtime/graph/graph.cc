#include "runtime/graph/graph.h"

#include "runtime/graph/shapes.h"
#include "runtime/ops/known.h"

namespace cairn::graph {
namespace {

constexpr size_t kMaxName = 4096;

void check_name(const std::string& name, std::string_view what) {
  require(!name.empty(), Code::kInvalidArgument, what, " has no name");
  require(name.size() <= kMaxName, Code::kInvalidArgument, what, " name is longer than ", kMaxName, " bytes");
  for (unsigned char c : name)
    require(c >= 0x20, Code::kInvalidArgument, what, " name holds a control character");
}

}  // namespace

void Graph::building() const {
  require(!frozen_, Code::kWrongState, "the graph is frozen; building needs a graph that is not");
}

ValueId Graph::find(std::string_view name) const {
  auto it = by_name_.find(std::string(name));
  return it == by_name_.end() ? kNone : it->second;
}

ValueId Graph::add_value(Value value) {
  check_name(value.name, "value");
  require(!by_name_.contains(value.name), Code::kInvalidArgument, "a value named '", value.name,
          "' exists already");
  const auto id = static_cast<ValueId>(values_.size());
  values_.push_back(std::move(value));
  by_name_.emplace(values_.back().name, id);
  return id;
}

ValueId Graph::input(std::string name, TensorDesc desc) {
  building();
  require(desc.dtype < DType::kOpaque, Code::kInvalidArgument, "input '", name, "' has no dtype");
  desc.bytes();
  room_for_values(name);
  Value value;
  value.name = std::move(name);
  value.desc = desc;
  value.kind = ValueKind::kInput;
  return add_value(std::move(value));
}

ValueId Graph::parameter(std::string name, TensorDesc desc, ParameterOptions options) {
  building();
  require(desc.dtype == DType::kF32 || desc.dtype == DType::kF64, Code::kInvalidArgument, "parameter '", name,
          "' is ", dtype_name(desc.dtype), "; parameters are f32 (or f64)");
  require(options.init <= Init::kUniform, Code::kInvalidArgument, "parameter '", name, "': unknown init");
  desc.bytes();
  room_for_values(name);
  Value value;
  value.name = std::move(name);
  value.desc = desc;
  value.kind = ValueKind::kParameter;
  value.parameter = options;
  value.region = open_.empty() ? -1 : open_.back();
  return add_value(std::move(value));
}

int Graph::custom(CustomOp op) {
  building();
  check_name(op.name, "custom op");
  require(ops::find(op.name) == nullptr, Code::kInvalidArgument, "'", op.name, "' is a built-in op");
  for (const CustomOp& other : customs_)
    require(other.name != op.name, Code::kInvalidArgument, "a custom op named '", op.name,
            "' exists already");
  require(op.inputs >= 1 && op.inputs <= 4 && op.outputs >= 1 && op.outputs <= 4, Code::kInvalidArgument,
          "custom op '", op.name, "' has ", op.inputs, " inputs and ", op.outputs,
          " outputs; 1 to 4 are allowed");
  require(op.shape && op.forward, Code::kInvalidArgument, "custom op '", op.name,
          "' needs the callbacks shape and forward");
  customs_.push_back(std::move(op));
  return static_cast<int>(customs_.size()) - 1;
}

std::vector<ValueId> Graph::op(std::string_view name, std::vector<ValueId> in, Attrs attrs) {
  building();
  Op node;
  const ops::OpRow* row = ops::find(name);
  if (row != nullptr && row->is(ops::INTERNAL)) row = nullptr;
  if (row == nullptr) {
    int index = -1;
    for (size_t i = 0; i < customs_.size(); ++i)
      if (customs_[i].name == name) index = static_cast<int>(i);
    require(index >= 0, Code::kNotFound, "unknown op '", name, "'", index >= 0 ? "" : ops::known_ops(name));
    const CustomOp& custom = customs_[index];
    require(static_cast<int>(in.size()) == custom.inputs, Code::kInvalidArgument, name, ": takes ",
            custom.inputs, " inputs, got ", in.size());
    require(attrs.items().empty(), Code::kInvalidArgument, name, ": custom ops take no attributes");
    attrs = {
        {"custom", int64_t{index}}, {"inputs", int64_t{custom.inputs}}, {"outputs", int64_t{custom.outputs}}};
    row = &ops::row(ops::OpCode::k_custom);
  } else {
    require(row->code != ops::OpCode::k_custom, Code::kNotFound, "unknown op 'custom'");
    require(!(row->is(ops::RNG) && attrs.has("rng")), Code::kInvalidArgument, name,
            ": attribute 'rng' is set by the graph");
    ops::check_attrs(*row, attrs);
    if (row->is(ops::RNG)) attrs.set("rng", static_cast<int64_t>(ops_.size()));
  }
  require(in.size() <= row->inputs.size(), Code::kInvalidArgument, name, ": takes at most ",
          row->inputs.size(), " inputs, got ", in.size());
  room_for_values(name);
  in.resize(row->inputs.size(), kNone);
  std::vector<TensorDesc> descs(in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i] == kNone) {
      require(row->inputs[i].optional, Code::kInvalidArgument, name, ": input '", row->inputs[i].name,
              "' is missing");
      continue;
    }
    require(in[i] >= 0 && in[i] < static_cast<ValueId>(values_.size()), Code::kInvalidArgument, name,
            ": input '", row->inputs[i].name, "' is not a value of this graph");
    descs[i] = values_[in[i]].desc;
  }
  node.code = row->code;
  node.attrs = std::move(attrs);
  node.in = std::move(in);
  node.region = open_.empty() ? -1 : open_.back();
  const std::vector<TensorDesc> out = infer_shapes(*this, *row, node.attrs, node.in, descs);

  const auto index = static_cast<int32_t>(ops_.size());
  node.name = cat(node.region < 0 ? "" : regions_[node.region].name + "/", name, "_", index);
  std::vector<Value> made;
  for (size_t i = 0; i < out.size(); ++i) {
    Value value;
    value.name = i == 0 ? node.name : cat(node.name, ".", row->outputs[i].name);
    require(!by_name_.contains(value.name), Code::kInvalidArgument, "a value named '", value.name,
            "' exists already");
    value.desc = out[i];
    value.producer = index;
    value.region = node.region;
    made.push_back(std::move(value));
  }
  for (Value& value : made) node.out.push_back(add_value(std::move(value)));
  node.out.resize(row->outputs.size(), kNone);
  ops_.push_back(std::move(node));
  return ops_.back().out;
}

void Graph::name_value(ValueId value, std::string name) {
  building();
  require(value >= 0 && value < static_cast<ValueId>(values_.size()), Code::kInvalidArgument,
          "not a value of this graph");
  if (values_[value].name == name) return;
  check_name(name, "value");
  require(!by_name_.contains(name), Code::kInvalidArgument, "a value named '", name, "' exists already");
  by_name_.erase(values_[value].name);
  values_[value].name = std::move(name);
  by_name_.emplace(values_[value].name, value);
}

RegionId Graph::region_begin(std::string name, plan::Policy policy, std::string offload_tier) {
  building();
  check_name(name, "region");
  require(name.find('/') == std::string::npos, Code::kInvalidArgument, "region name '", name,
          "' holds a '/'");
  require(policy <= plan::Policy::kOffload, Code::kInvalidArgument, "region '", name, "': unknown policy ",
          static_cast<uint32_t>(policy));
  require(regions_.size() < kMaxRegions, Code::kInvalidArgument, "region '", name, "': a graph has at most ",
          kMaxRegions, " regions, and this one has as many; is a count of layers too large?");
  require(static_cast<int>(open_.size()) < kMaxRegionDepth, Code::kInvalidArgument, "region '", name,
          "' would nest deeper than ", kMaxRegionDepth);
  Region region;
  region.parent = open_.empty() ? -1 : open_.back();
  region.name = region.parent < 0 ? name : regions_[region.parent].name + "/" + name;
  region.policy = policy;
  region.offload_tier = std::move(offload_tier);
  region.depth = static_cast<int>(open_.size()) + 1;
  for (const Region& other : regions_)
    require(other.name != region.name, Code::kInvalidArgument, "a region named '", region.name,
            "' exists already");
  regions_.push_back(std::move(region));
  open_.push_back(static_cast<RegionId>(regions_.size()) - 1);
  return open_.back();
}

void Graph::region_end(RegionId region) {
  building();
  require(!open_.empty(), Code::kWrongState, "no region is open");
  require(open_.back() == region, Code::kWrongState, "region '",
          region >= 0 && region < static_cast<RegionId>(regions_.size()) ? regions_[region].name
                                                                         : std::string("?"),
          "' is not the innermost open one; that is '", regions_[open_.back()].name, "'");
  open_.pop_back();
}

void Graph::room_for_values(std::string_view what) const {
  require(values_.size() < kMaxValues, Code::kInvalidArgument, what, ": a graph has at most ", kMaxValues,
          " values, and this one has as many; is a count of layers too large?");
}

}  // namespace cairn::graph
