// Models as files. The structure is stored as it is; reading it builds it again through Graph's own calls, so
// that every node is checked as if a host had added it.
#include "runtime/io/graph_file.h"

#include <algorithm>
#include <unordered_set>

#include "runtime/io/envelope.h"
#include "runtime/io/schema/graph_generated.h"

namespace cairn::io {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using graph::Graph;
using graph::ValueKind;

Offset<fb::Attr> encode_attr(FlatBufferBuilder& to, const std::string& name, const AttrValue& value) {
  const auto key = to.CreateString(name);
  flatbuffers::Offset<flatbuffers::String> word;
  flatbuffers::Offset<flatbuffers::Vector<int64_t>> list;
  if (const auto* w = std::get_if<std::string>(&value)) word = to.CreateString(*w);
  flatbuffers::Offset<flatbuffers::Vector<double>> reals;
  if (const auto* l = std::get_if<std::vector<int64_t>>(&value)) list = to.CreateVector(*l);
  if (const auto* l = std::get_if<std::vector<double>>(&value)) reals = to.CreateVector(*l);
  fb::AttrBuilder attr(to);
  attr.add_name(key);
  attr.add_kind(static_cast<fb::AttrKind>(value.index()));
  if (const auto* i = std::get_if<int64_t>(&value)) attr.add_integer(*i);
  if (const auto* r = std::get_if<double>(&value)) attr.add_real(*r);
  if (!word.IsNull()) attr.add_word(word);
  if (!list.IsNull()) attr.add_list(list);
  if (!reals.IsNull()) attr.add_reals(reals);
  return attr.Finish();
}

AttrValue attr_value(const fb::Attr& attr, Budget& budget) {
  switch (attr.kind()) {
    case fb::AttrKind::Integer:
      return attr.integer();
    case fb::AttrKind::Real:
      return attr.real();
    case fb::AttrKind::Word:
      return text_of(attr.word(), budget);
    case fb::AttrKind::List:
      return list_of(attr.list(), budget);
    case fb::AttrKind::Reals:
      return list_of(attr.reals(), budget);
  }
  fail(Code::kCorruptFile, budget.what(), ": unknown kind of attribute ", static_cast<int>(attr.kind()));
}

// The file's content as the graph's own structs, nothing checked but sizes and enums.
struct Parts {
  std::vector<graph::Value> values;
  struct Op {
    std::string row, name;
    Attrs attrs;
    std::vector<graph::ValueId> in, out;
    graph::RegionId region;
  };
  std::vector<Op> ops;
  std::vector<graph::Region> regions;
  std::vector<graph::CustomOp> customs;
  graph::ValueId loss, weight;
  std::vector<graph::ValueId> outputs;
  std::string digest;
};

Parts read_parts(const fb::GraphFile& file, Budget& budget) {
  Parts parts;
  const uint64_t values = count_of(file.values(), kMaxValues, "values", budget);
  for (uint32_t i = 0; i < values; ++i) {
    const fb::GraphValue& from = *file.values()->Get(i);
    graph::Value value;
    value.name = text_of(from.name(), budget);
    value.desc = desc_of(from.dtype(), from.shape(), budget);
    require(from.kind() <= static_cast<uint8_t>(graph::kLastValueKind) &&
                from.init() <= static_cast<uint8_t>(graph::kLastInit),
            Code::kCorruptFile, budget.what(), ": value '", value.name, "' is of an unknown kind");
    value.kind = static_cast<ValueKind>(from.kind());
    value.parameter = {from.frozen(), from.decay(), static_cast<graph::Init>(from.init()), from.init_scale()};
    value.producer = from.producer();
    value.region = from.region();
    parts.values.push_back(std::move(value));
  }
  const uint64_t ops = count_of(file.ops(), kMaxValues, "ops", budget);
  for (uint32_t i = 0; i < ops; ++i) {
    const fb::GraphOp& from = *file.ops()->Get(i);
    Parts::Op op{text_of(from.op(), budget), text_of(from.name(), budget), {},
                 list_of(from.in(), budget), list_of(from.out(), budget),  from.region()};
    const uint64_t attrs = count_of(from.attrs(), kMaxAttrs, "attributes", budget);
    for (uint32_t a = 0; a < attrs; ++a) {
      const fb::Attr& attr = *from.attrs()->Get(a);
      std::string key = text_of(attr.name(), budget);
      require(!op.attrs.has(key), Code::kCorruptFile, budget.what(), ": op '", op.name, "' has attribute '",
              key, "' twice");
      op.attrs.set(std::move(key), attr_value(attr, budget));
    }
    parts.ops.push_back(std::move(op));
  }
  const uint64_t regions = count_of(file.regions(), kMaxRegions, "regions", budget);
  for (uint32_t i = 0; i < regions; ++i) {
    const fb::GraphRegion& from = *file.regions()->Get(i);
    graph::Region region;
    region.name = text_of(from.name(), budget);
    region.parent = from.parent();
    region.policy = static_cast<Policy>(from.policy());
    region.offload_tier = text_of(from.offload_tier(), budget);
    require(region.parent >= -1 && region.parent < static_cast<int32_t>(i), Code::kCorruptFile, budget.what(),
            ": region '", region.name, "' is inside region ", region.parent);
    region.depth = region.parent < 0 ? 1 : parts.regions[region.parent].depth + 1;
    parts.regions.push_back(std::move(region));
  }
  const uint64_t customs = count_of(file.customs(), kMaxCustoms, "custom ops", budget);
  for (uint32_t i = 0; i < customs; ++i) {
    const fb::GraphCustom& from = *file.customs()->Get(i);
    graph::CustomOp custom;
    custom.name = text_of(from.name(), budget);
    custom.inputs = from.inputs();
    custom.outputs = from.outputs();
    custom.recomputable = from.recomputable();
    custom.bound = false;
    parts.customs.push_back(std::move(custom));
  }
  parts.loss = file.loss();
  parts.weight = file.weight();
  parts.outputs = list_of(file.outputs(), budget);
  parts.digest = text_of(file.digest(), budget);
  return parts;
}

// Builds the graph again in the stored order. Regions are opened and closed as late as the next node allows,
// which gives every node its region and every region its number.
class Replay {
 public:
  explicit Replay(const Parts& parts) : parts_(parts), graph_(std::make_shared<Graph>()) {
    // Names that ops get by default. A value that ends up with another op's default name gets it last.
    for (const Parts::Op& op : parts.ops) {
      defaults_.insert(op.name);
      if (const ops::OpRow* row = ops::find(op.row))
        for (size_t i = 1; i < row->outputs.size(); ++i)
          defaults_.insert(cat(op.name, ".", row->outputs[i].name));
    }
    for (const graph::Value& value : parts.values) finals_.insert(value.name);
  }

  std::shared_ptr<Graph> run() {
    for (const graph::CustomOp& custom : parts_.customs) graph_->custom(unbound(custom));
    size_t op = 0;
    for (size_t next = graph_->values().size(); next < parts_.values.size(); next = graph_->values().size()) {
      const graph::Value& value = parts_.values[next];
      if (value.kind == ValueKind::kActivation) {
        require(op < parts_.ops.size(), Code::kCorruptFile, "value '", value.name, "' is made by no op");
        add(parts_.ops[op++]);
      } else {
        const std::string name = defaults_.contains(value.name) ? park(next) : value.name;
        if (value.kind == ValueKind::kInput) {
          graph_->input(name, value.desc);
        } else {
          enter(value.region);
          if (value.kind == ValueKind::kParameter)
            graph_->parameter(name, value.desc, value.parameter);
          else
            graph_->resident(name, value.kind, value.desc, value.parameter.init_scale);
        }
      }
    }
    while (op < parts_.ops.size()) add(parts_.ops[op++]);  // those that make no value
    require(graph_->values().size() == parts_.values.size(), Code::kCorruptFile,
            "ops and values do not match: ", parts_.ops.size(), " ops, ", parts_.values.size(), " values");
    enter(-1);
    while (graph_->regions().size() < parts_.regions.size()) begin_next();
    close_to(-1);
    for (graph::ValueId parked : parked_) graph_->name_value(parked, parts_.values[parked].name);
    graph_->freeze(parts_.loss, parts_.weight, parts_.outputs);
    made_.reset();
    compare();
    return std::move(graph_);
  }

 private:
  // Gives the shapes that are stored while the graph is built; whoever asks later is told that there is no such op.
  graph::CustomOp unbound(graph::CustomOp op) const {
    const auto fail_missing = [name = op.name] {
      fail(Code::kNotFound, "the custom op '", name,
           "' is not known here: a file holds its name alone; give the loaded graph its callbacks "
           "(cairn_graph_custom_op) before a plan is made");
    };
    op.shape = [fail_missing, made = std::weak_ptr(made_)](std::span<const TensorDesc>,
                                                           std::span<TensorDesc> out) {
      const auto shapes = made.lock();
      if (shapes == nullptr) fail_missing();
      std::copy_n(shapes->begin(), std::min(shapes->size(), out.size()), out.begin());
      return shapes->size() == out.size();
    };
    op.forward = op.backward = [fail_missing](std::span<const Tensor>, std::span<const Tensor>, void*) {
      fail_missing();
      return false;
    };
    return op;
  }

  void add_custom(const Parts::Op& op) {
    const int64_t number = op.attrs.integer("custom", -1);
    require(number >= 0 && number < static_cast<int64_t>(parts_.customs.size()), Code::kCorruptFile, "op '",
            op.name, "' is of unknown kind 'custom', number ", number, " of ", parts_.customs.size());
    const graph::CustomOp& custom = parts_.customs[static_cast<size_t>(number)];
    made_->clear();
    for (const graph::ValueId value : op.out)
      if (value >= 0 && value < static_cast<graph::ValueId>(parts_.values.size()))
        made_->push_back(parts_.values[static_cast<size_t>(value)].desc);
    std::vector<graph::ValueId> in = op.in;
    in.resize(static_cast<size_t>(custom.inputs), graph::kNone);
    name(op, graph_->op(custom.name, std::move(in)));
  }

  std::string park(size_t value) {
    parked_.push_back(static_cast<graph::ValueId>(value));
    std::string name = cat("value ", value);
    while (finals_.contains(name) || defaults_.contains(name)) name += "~";
    return name;
  }

  void add(const Parts::Op& op) {
    const ops::OpRow* row = ops::find(op.row);
    require(row != nullptr, Code::kCorruptFile, "op '", op.name, "' is of unknown kind '", op.row, "'");
    enter(op.region);
    if (row->code == ops::OpCode::k_custom) return add_custom(op);
    Attrs attrs;
    for (const auto& [key, value] : op.attrs.items())
      if (!(row->is(ops::RNG) && key == "rng")) attrs.set(key, value);  // the graph sets it
    name(op, graph_->op(op.row, op.in, attrs));
  }

  // What the op made, as it is stored.
  void name(const Parts::Op& op, const std::vector<graph::ValueId>& made) {
    for (graph::ValueId value : made) {
      if (value == graph::kNone) continue;
      require(value < static_cast<graph::ValueId>(parts_.values.size()), Code::kCorruptFile, "op '", op.name,
              "' makes more values than are stored");
      const std::string& now = graph_->values()[value].name;
      const std::string& name = parts_.values[value].name;
      if (now != name) graph_->name_value(value, defaults_.contains(name) ? park(value) : name);
    }
  }

  graph::RegionId innermost() const { return open_.empty() ? -1 : open_.back(); }

  // Ends regions until `region` is the innermost one; it must be open.
  void close_to(graph::RegionId region) {
    require(region < 0 || std::find(open_.begin(), open_.end(), region) != open_.end(), Code::kCorruptFile,
            "region ", region, " is used after its end");
    while (innermost() != region) {
      graph_->region_end(open_.back());
      open_.pop_back();
    }
  }

  void begin_next() {
    const auto id = static_cast<graph::RegionId>(graph_->regions().size());
    const graph::Region& region = parts_.regions[id];
    close_to(region.parent);
    const size_t slash = region.name.rfind('/');
    graph_->region_begin(slash == std::string::npos ? region.name : region.name.substr(slash + 1),
                         region.policy, region.offload_tier);
    open_.push_back(id);
  }

  void enter(graph::RegionId region) {
    require(region >= -1 && region < static_cast<graph::RegionId>(parts_.regions.size()), Code::kCorruptFile,
            "there is no region ", region);
    while (static_cast<graph::RegionId>(graph_->regions().size()) <= region) begin_next();
    if (innermost() != region) close_to(region);
  }

  void compare() const {
    for (size_t i = 0; i < parts_.values.size(); ++i) {
      const graph::Value &a = graph_->values()[i], &b = parts_.values[i];
      require(a.name == b.name && a.desc == b.desc && a.kind == b.kind && a.producer == b.producer &&
                  a.region == b.region,
              Code::kCorruptFile, "value '", b.name, "' is stored as ", to_string(b.desc), " but built as '",
              a.name, "', ", to_string(a.desc));
    }
    for (size_t i = 0; i < parts_.ops.size(); ++i) {
      const graph::Op& a = graph_->ops()[i];
      const Parts::Op& b = parts_.ops[i];
      require(
          a.name == b.name && a.in == b.in && a.out == b.out && a.region == b.region && a.attrs == b.attrs,
          Code::kCorruptFile, "op '", b.name, "' is stored otherwise than built");
    }
    for (size_t i = 0; i < parts_.regions.size(); ++i)
      require(graph_->regions()[i].name == parts_.regions[i].name, Code::kCorruptFile, "region '",
              parts_.regions[i].name, "' is built as '", graph_->regions()[i].name, "'");
    require(graph_->digest() == parts_.digest, Code::kCorruptFile, "the model's digest differs");
  }

  const Parts& parts_;
  std::shared_ptr<std::vector<TensorDesc>> made_ =
      std::make_shared<std::vector<TensorDesc>>();  // by the custom op that is added; gone when all are
  std::shared_ptr<Graph> graph_;
  std::vector<graph::RegionId> open_;
  std::unordered_set<std::string> defaults_, finals_;
  std::vector<graph::ValueId> parked_;
};

}  // namespace

std::vector<std::byte> encode_graph(const Graph& graph) {
  require(graph.frozen(), Code::kWrongState, "a model can be stored once it is frozen");
  require(graph.values().size() <= kMaxValues && graph.ops().size() <= kMaxValues &&
              graph.regions().size() <= kMaxRegions,
          Code::kUnsupported, "the model has ", graph.values().size(), " values and ", graph.regions().size(),
          " regions; files hold at most ", kMaxValues, " and ", kMaxRegions);
  FlatBufferBuilder to;
  std::vector<Offset<fb::GraphValue>> values;
  for (const graph::Value& v : graph.values())
    values.push_back(fb::CreateGraphValue(to, to.CreateString(v.name), static_cast<uint8_t>(v.desc.dtype),
                                          to.CreateVector(v.desc.shape.dims.data(), v.desc.shape.rank),
                                          static_cast<uint8_t>(v.kind), v.parameter.frozen, v.parameter.decay,
                                          static_cast<uint8_t>(v.parameter.init), v.parameter.init_scale,
                                          v.producer, v.region));
  std::vector<Offset<fb::GraphOp>> ops;
  for (const graph::Op& op : graph.ops()) {
    std::vector<Offset<fb::Attr>> attrs;
    for (const auto& [key, value] : op.attrs.items()) attrs.push_back(encode_attr(to, key, value));
    ops.push_back(fb::CreateGraphOp(to, to.CreateString(std::string(ops::name(op.code))),
                                    to.CreateString(op.name), to.CreateVector(attrs), to.CreateVector(op.in),
                                    to.CreateVector(op.out), op.region));
  }
  std::vector<Offset<fb::GraphRegion>> regions;
  for (const graph::Region& r : graph.regions())
    regions.push_back(fb::CreateGraphRegion(to, to.CreateString(r.name), r.parent,
                                            static_cast<uint8_t>(r.policy), to.CreateString(r.offload_tier)));
  // A graph without custom ops leaves the field out: so its file has the same bytes as one written by a version without the field.
  Offset<flatbuffers::Vector<Offset<fb::GraphCustom>>> stored_customs;
  std::vector<Offset<fb::GraphCustom>> customs;
  for (const graph::CustomOp& c : graph.customs())
    customs.push_back(
        fb::CreateGraphCustom(to, to.CreateString(c.name), c.inputs, c.outputs, c.recomputable));
  if (!customs.empty()) stored_customs = to.CreateVector(customs);
  to.Finish(
      fb::CreateGraphFile(to, kFormatVersion, to.CreateVector(values), to.CreateVector(ops),
                          to.CreateVector(regions), graph.loss(), graph.weight(),
                          to.CreateVector(graph.outputs()), to.CreateString(graph.digest()), stored_customs),
      fb::GraphFileIdentifier());
  return seal(to);
}

std::shared_ptr<Graph> decode_graph(std::span<const std::byte> bytes) {
  const Opened opened(bytes, fb::GraphFileIdentifier(), "model");
  Budget budget = opened.budget();
  const Parts parts = read_parts(*opened.root<fb::GraphFile>(), budget);
  try {
    return Replay(parts).run();
  } catch (const Error& error) {  // what a host would be told about its own call is here the file's fault
    fail_as(Code::kCorruptFile, error, "model: ");
  }
}

}  // namespace cairn::io
