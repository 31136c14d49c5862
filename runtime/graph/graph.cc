#include "runtime/graph/graph.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "runtime/base/text/name.h"
#include "runtime/graph/adapters/builder.h"
#include "runtime/graph/shapes.h"
#include "runtime/ops/known.h"

namespace cairn::graph {
namespace {

// Names that a host gives: the rule of all names, and none that a checkpoint would hold twice.
void check_given(const Graph& graph, const std::string& name, ValueKind kind, std::string_view what) {
  check_name(name, what);
  const auto clash = [&](const std::string& parameter, const std::string& state) {
    fail(Code::kInvalidArgument, "'", state, "' is what a checkpoint calls a part of parameter '", parameter,
         "': name one of them otherwise");
  };
  for (const std::string_view suffix : kStateSuffixes) {
    const std::string longer = cat(name, suffix);
    if (kind == ValueKind::kParameter && graph.find(longer) != kNone) clash(name, longer);
    if (!name.ends_with(suffix)) continue;
    const std::string stem = name.substr(0, name.size() - suffix.size());
    const ValueId owner = graph.find(stem);
    if (owner != kNone && graph.values()[owner].kind == ValueKind::kParameter) clash(stem, name);
  }
}

// Room for `more` elements, growing as push_back does.
template <class T>
void make_room(std::vector<T>& list, size_t more) {
  if (list.capacity() - list.size() < more) list.reserve(std::max(list.size() + more, 2 * list.size()));
}
void make_room(Names& map, size_t more) {
  const size_t wanted = map.size() + more;
  if (static_cast<double>(wanted) > static_cast<double>(map.bucket_count()) * map.max_load_factor())
    map.reserve(std::max(wanted, 2 * map.size()));
}

// Into room that is there.
template <class T>
void move_in(std::vector<T>& list, std::vector<T>& from) noexcept {
  static_assert(std::is_nothrow_move_constructible_v<T>);
  for (T& item : from) list.push_back(std::move(item));
}

}  // namespace

void Graph::building() const {
  require(!frozen_, Code::kWrongState, "the graph is frozen; building needs a graph that is not");
}

ValueId Graph::find(std::string_view name) const noexcept {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? kNone : it->second;
}

void Graph::commit(Addition&& addition) {
  Names names;
  auto id = static_cast<ValueId>(values_.size());
  for (const Value& value : addition.values) {
    require(!by_name_.contains(value.name) && names.emplace(value.name, id++).second, Code::kInvalidArgument,
            "a value named '", value.name, "' exists already");
  }
  make_room(values_, addition.values.size());
  make_room(ops_, addition.ops.size());
  make_room(regions_, addition.regions.size());
  make_room(open_, addition.regions.size());
  make_room(customs_, addition.customs.size());
  make_room(by_name_, names.size());
  // From here on nothing fails.
  while (!names.empty()) by_name_.insert(names.extract(names.begin()));
  move_in(values_, addition.values);
  move_in(ops_, addition.ops);
  for (size_t i = 0; i < addition.regions.size(); ++i)
    open_.push_back(static_cast<RegionId>(regions_.size() + i));
  move_in(regions_, addition.regions);
  move_in(customs_, addition.customs);
}

ValueId Graph::add_value(Value value) {
  Addition addition;
  addition.values.push_back(std::move(value));
  commit(std::move(addition));
  return static_cast<ValueId>(values_.size()) - 1;
}

ValueId Graph::input(std::string name, TensorDesc desc) {
  building();
  check_given(*this, name, ValueKind::kInput, "input");
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
  check_given(*this, name, ValueKind::kParameter, "parameter");
  require(desc.dtype == DType::kF32 || desc.dtype == DType::kF64, Code::kInvalidArgument, "parameter '", name,
          "' is ", dtype_name(desc.dtype), "; parameters are f32 (or f64)");
  require(options.init <= kLastInit, Code::kInvalidArgument, "parameter '", name, "': unknown init");
  require(options.init != Init::kOrthogonal || desc.shape.rank >= 2, Code::kInvalidArgument, "parameter '",
          name, "' is ", to_string(desc.shape), "; an orthogonal start needs two dimensions or more");
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

ValueId Graph::resident(std::string name, ValueKind kind, TensorDesc desc, double fill) {
  building();
  require(kind == ValueKind::kStatistic || kind == ValueKind::kCache, Code::kInvalidArgument, "'", name,
          "': a value that goes on from run to run is a statistic or a cache");
  const std::string_view what = value_kind_name(kind);
  check_given(*this, name, kind, what);
  require(is_float(desc.dtype), Code::kInvalidArgument, what, " '", name, "' is ", dtype_name(desc.dtype),
          "; it holds real numbers");
  require(kind == ValueKind::kCache || desc.dtype == DType::kF32 || desc.dtype == DType::kF64,
          Code::kInvalidArgument, "statistic '", name, "' is ", dtype_name(desc.dtype),
          "; statistics are f32 (or f64)");
  require(std::isfinite(fill), Code::kInvalidArgument, what, " '", name, "' begins as ", fill,
          "; it must be finite");
  desc.bytes();
  room_for_values(name);
  Value value;
  value.name = std::move(name);
  value.desc = desc;
  value.kind = kind;
  value.parameter = {.frozen = true, .decay = false, .init = Init::kConstant, .init_scale = fill};
  value.region = open_.empty() ? -1 : open_.back();
  return add_value(std::move(value));
}

// An op changes what was declared to be changed so, and no two move one statistic.
void Graph::check_residents(const ops::OpRow& row, const std::vector<ValueId>& in) const {
  for (size_t i = 0; i < in.size(); ++i) {
    const ops::OperandRole role = row.inputs[i].role;
    const bool moved = role == ops::OperandRole::kMoved;
    if (in[i] == kNone || (!moved && role != ops::OperandRole::kInto)) continue;
    const Value& value = values_[in[i]];
    require(value.kind == (moved ? ValueKind::kStatistic : ValueKind::kCache), Code::kInvalidArgument,
            row.name, ": '", value.name, "' is no ", moved ? "statistic" : "cache",
            "; declare one as a resident");
    for (const Op& op : ops_)
      for (size_t k = 0; moved && k < op.in.size(); ++k)
        require(op.in[k] != in[i] || ops::row(op.code).inputs[k].role != role, Code::kInvalidArgument,
                row.name, ": '", op.name, "' moves '", value.name,
                "' already; a statistic is moved by one op");
  }
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
  Addition addition;
  addition.customs.push_back(std::move(op));
  commit(std::move(addition));
  return static_cast<int>(customs_.size()) - 1;
}

bool Graph::waits_for_customs() const {
  return std::any_of(customs_.begin(), customs_.end(), [](const CustomOp& op) { return !op.bound; });
}

void Graph::bind(CustomOp op) {
  const auto place =
      std::find_if(customs_.begin(), customs_.end(), [&](const CustomOp& c) { return c.name == op.name; });
  require(place != customs_.end() && !place->bound, Code::kNotFound, "no custom op '", op.name,
          "' of this graph waits for its callbacks");
  require(op.inputs == place->inputs && op.outputs == place->outputs, Code::kInvalidArgument, "custom op '",
          op.name, "' has ", op.inputs, " inputs and ", op.outputs, " outputs, in the file ", place->inputs,
          " and ", place->outputs);
  for (const Op& node : ops_) {
    if (node.code != ops::OpCode::k_custom || &customs_[node.attrs.integer("custom")] != &*place) continue;
    std::vector<TensorDesc> in, out(static_cast<size_t>(op.outputs));
    for (int i = 0; i < op.inputs; ++i) in.push_back(values_[node.in[i]].desc);
    require(op.shape(in, out), Code::kInvalidArgument, op.name,
            ": its shape callback refused the inputs of '", node.name, "'");
    for (int i = 0; i < op.outputs; ++i)
      require(out[i] == values_[node.out[i]].desc, Code::kInvalidArgument, "custom op '", op.name, "' makes ",
              to_string(out[i]), " of '", node.name, "', which is ", to_string(values_[node.out[i]].desc),
              " in the file");
  }
  *place = std::move(op);
}

void Graph::unknown_op(std::string_view name) const {
  std::vector<std::string> own;
  for (const CustomOp& custom : customs_) own.push_back(custom.name);
  fail(Code::kNotFound, "unknown op '", name, "'", ops::known_ops(name, own));
}

void Graph::take_back(size_t values, size_t ops) noexcept {
  for (size_t v = values; v < values_.size(); ++v) by_name_.erase(by_name_.find(values_[v].name));
  values_.erase(values_.begin() + static_cast<std::ptrdiff_t>(values), values_.end());
  ops_.erase(ops_.begin() + static_cast<std::ptrdiff_t>(ops), ops_.end());
}

std::vector<ValueId> Graph::op(std::string_view name, std::vector<ValueId> in, Attrs attrs) {
  building();
  if (adapters_.rules.empty()) return plain_op(name, std::move(in), std::move(attrs));
  return AdapterBuilder(*this).op(name, std::move(in), std::move(attrs));
}

std::vector<ValueId> Graph::plain_op(std::string_view name, std::vector<ValueId> in, Attrs attrs) {
  Op node;
  const ops::OpRow* row = ops::find(name);
  if (row != nullptr && row->is(ops::INTERNAL)) row = nullptr;
  if (row == nullptr) {
    int index = -1;
    for (size_t i = 0; i < customs_.size(); ++i)
      if (customs_[i].name == name) index = static_cast<int>(i);
    if (index < 0) unknown_op(name);
    const CustomOp& custom = customs_[index];
    require(static_cast<int>(in.size()) == custom.inputs, Code::kInvalidArgument, name, ": takes ",
            custom.inputs, " inputs, got ", in.size());
    require(attrs.items().empty(), Code::kInvalidArgument, name, ": custom ops take no attributes");
    attrs = {
        {"custom", int64_t{index}}, {"inputs", int64_t{custom.inputs}}, {"outputs", int64_t{custom.outputs}}};
    row = &ops::row(ops::OpCode::k_custom);
  } else {
    if (row->code == ops::OpCode::k_custom) unknown_op(name);
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
  check_residents(*row, in);
  node.code = row->code;
  node.attrs = std::move(attrs);
  // Stored and hashed as it is: as before the row had the operand.
  while (!in.empty() && in.back() == kNone && row->inputs[in.size() - 1].later) {
    in.pop_back();
    descs.pop_back();
  }
  node.in = std::move(in);
  node.region = open_.empty() ? -1 : open_.back();
  std::vector<TensorDesc> out = infer_shapes(*this, *row, node.attrs, node.in, descs);
  if (row->operand(ops::OperandRole::kMoved) >= 0)
    out.clear();  // sums of a step, which nobody reads in its midst

  const auto index = static_cast<int32_t>(ops_.size());
  node.name = cat(node.region < 0 ? "" : regions_[node.region].name + "/", name, "_", index);
  Addition addition;
  for (size_t i = 0; i < out.size(); ++i) {
    Value value;
    value.name = i == 0 ? node.name : cat(node.name, ".", row->outputs[i].name);
    value.desc = out[i];
    value.producer = index;
    value.region = node.region;
    node.out.push_back(static_cast<ValueId>(values_.size() + i));
    addition.values.push_back(std::move(value));
  }
  // Stored and hashed as it is: a loss has no place for hits that it does not count, as before it could.
  if (!row->is(ops::LOSS)) node.out.resize(row->outputs.size(), kNone);
  std::vector<ValueId> made = node.out;
  addition.ops.push_back(std::move(node));
  commit(std::move(addition));
  return made;
}

void Graph::name_value(ValueId value, std::string name) {
  building();
  require(value >= 0 && value < static_cast<ValueId>(values_.size()), Code::kInvalidArgument,
          "not a value of this graph");
  if (values_[value].name == name) return;
  check_given(*this, name, values_[value].kind, "value");
  require(!by_name_.contains(name), Code::kInvalidArgument, "a value named '", name, "' exists already");
  std::string key = name;
  // From here on nothing fails: the entry changes its key, and the table has had room for it.
  auto entry = by_name_.extract(values_[value].name);
  entry.key() = std::move(key);
  by_name_.insert(std::move(entry));
  values_[value].name = std::move(name);
}

RegionId Graph::region_begin(std::string name, Policy policy, std::string offload_tier) {
  building();
  check_name(name, "region");
  require(name.find('/') == std::string::npos, Code::kInvalidArgument, "region name '", name,
          "' holds a '/'");
  require(policy <= Policy::kOffload, Code::kInvalidArgument, "region '", name, "': unknown policy ",
          static_cast<uint32_t>(policy));
  require(regions_.size() < kMaxRegions, Code::kInvalidArgument, "region '", name, "': a graph has at most ",
          kMaxRegions, " regions, and this one has as many; is a count of layers too large?");
  require(static_cast<int>(open_.size()) < kMaxRegionDepth, Code::kInvalidArgument, "region '", name,
          "' would nest deeper than ", kMaxRegionDepth);
  Region region;
  region.parent = open_.empty() ? -1 : open_.back();
  region.name = region.parent < 0 ? name : regions_[region.parent].name + "/" + name;
  require(region.name.size() <= kMaxNameBytes, Code::kInvalidArgument, "region '", name.substr(0, 64),
          "': its path has ", region.name.size(), " bytes; give it and those around it names that are ",
          kMaxNameBytes, " bytes or fewer together");
  region.policy = policy;
  region.offload_tier = std::move(offload_tier);
  region.depth = static_cast<int>(open_.size()) + 1;
  for (const Region& other : regions_)
    require(other.name != region.name, Code::kInvalidArgument, "a region named '", region.name,
            "' exists already");
  Addition addition;
  addition.regions.push_back(std::move(region));
  commit(std::move(addition));
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
