// Chapter 3: graph. Checks what the C types allow and the runtime's do not; shapes and attributes are the
// runtime's.
#include "capi/src/graph.h"

#include <cmath>
#include <cstdlib>

#include "capi/src/structs.h"

using namespace cairn::capi;
using cairn::Code;
using cairn::require;
namespace graph = cairn::graph;

static_assert(CAIRN_U8 == static_cast<int>(cairn::DType::kU8));
static_assert(CAIRN_DYNAMIC8 == static_cast<int>(cairn::DType::kDynamic8));
static_assert(CAIRN_UDYNAMIC8 == static_cast<int>(cairn::DType::kUDynamic8));
static_assert(CAIRN_SPLIT == static_cast<int>(cairn::DType::kSplit));
static_assert(CAIRN_INIT_UNIFORM == static_cast<int>(graph::Init::kUniform));
static_assert(CAIRN_INIT_TRUNCATED_NORMAL == static_cast<int>(graph::Init::kTruncatedNormal));
static_assert(CAIRN_RESIDENT_STATISTIC == static_cast<int>(graph::ValueKind::kStatistic));
static_assert(CAIRN_RESIDENT_CACHE == static_cast<int>(graph::kLastValueKind));
static_assert(CAIRN_INIT_ORTHOGONAL == static_cast<int>(graph::kLastGivenInit));
static_assert(CAIRN_ADAPTER_PISSA == static_cast<int>(graph::kLastAdapterKind));
static_assert(CAIRN_REGION_OFFLOAD == static_cast<int>(cairn::Policy::kOffload));

namespace cairn::capi {

graph::ValueId value_id(const graph::Graph& graph, cairn_value_t value, std::string_view what) {
  require(value <= graph.values().size(), Code::kInvalidArgument, what, " is value ", value,
          "; the graph has ", graph.values().size());
  return static_cast<graph::ValueId>(value) - 1;
}

}  // namespace cairn::capi

namespace {

cairn::TensorDesc read_desc(const cairn_tensor_desc_t* desc) {
  not_null(desc, "desc");
  not_null(desc->name, "desc.name");
  require(desc->rank <= cairn::kMaxRank, Code::kInvalidArgument, "'", desc->name, "': rank ", desc->rank,
          " is above 8");
  require(desc->dims != nullptr || desc->rank == 0, Code::kInvalidArgument, "'", desc->name,
          "': dims is NULL at rank ", desc->rank);
  in_enum(desc->dtype, CAIRN_U8, "dtype");
  for (uint32_t i = 0; i < desc->rank; ++i)
    require(desc->dims[i] >= 1, Code::kInvalidArgument, "'", desc->name, "': dimension ", i, " is ",
            desc->dims[i], "; it must be at least 1");
  cairn::TensorDesc made;
  made.dtype = static_cast<cairn::DType>(desc->dtype);
  try {
    made.shape = cairn::Shape(std::span<const int64_t>(desc->dims, desc->rank));
    made.bytes();
  } catch (const cairn::Error& error) {
    std::string dims;
    for (uint32_t i = 0; i < desc->rank; ++i) dims += cairn::cat(i == 0 ? "[" : ", ", desc->dims[i]);
    cairn::fail(error.code(), "'", desc->name, "' is ", dims, "]: ", error.what());
  }
  return made;
}

cairn::AttrValue read_attr(std::string_view op, const cairn_attr_t& attr) {
  switch (attr.kind) {
    case CAIRN_ATTR_INTEGER:
      return attr.integer;
    case CAIRN_ATTR_REAL:
      return attr.real;
    case CAIRN_ATTR_WORD:
      require(attr.word != nullptr, Code::kInvalidArgument, op, ": the word of attribute '", attr.name,
              "' is NULL");
      return std::string(attr.word);
    case CAIRN_ATTR_LIST:
      require(attr.list != nullptr || attr.list_count == 0, Code::kInvalidArgument, op,
              ": the list of attribute '", attr.name, "' is NULL");
      return attr.list_count == 0 ? std::vector<int64_t>()
                                  : std::vector<int64_t>(attr.list, attr.list + attr.list_count);
    case CAIRN_ATTR_REALS:
      require(attr.reals != nullptr || attr.list_count == 0, Code::kInvalidArgument, op,
              ": the reals of attribute '", attr.name, "' are NULL");
      return attr.list_count == 0 ? std::vector<double>()
                                  : std::vector<double>(attr.reals, attr.reals + attr.list_count);
    default:
      cairn::fail(Code::kInvalidArgument, op, ": attribute '", attr.name, "' has the unknown kind ",
                  attr.kind);
  }
}

cairn::Attrs read_attrs(std::string_view op, const cairn_attr_t* attrs, size_t count) {
  array_not_null(attrs, count, "attrs");
  cairn::Attrs made;
  for (size_t i = 0; i < count; ++i) {
    require(attrs[i].name != nullptr, Code::kInvalidArgument, op, ": the name of attribute ", i, " is NULL");
    require(!made.has(attrs[i].name), Code::kInvalidArgument, op, ": attribute '", attrs[i].name,
            "' is given twice");
    made.set(attrs[i].name, read_attr(op, attrs[i]));
  }
  return made;
}

graph::ParameterOptions read_parameter(const cairn_parameter_options_t* given) {
  const cairn_parameter_options_t o = read_struct(given, CAIRN_PARAMETER_OPTIONS_INIT, "options");
  in_enum(o.init, CAIRN_INIT_ORTHOGONAL, "options.init");
  flag(o.frozen, "options.frozen");
  flag(o.no_decay, "options.no_decay");
  reserved_zero(o.reserved, "options");
  require(std::isfinite(o.init_scale), Code::kInvalidArgument, "options.init_scale is ", o.init_scale,
          "; it must be finite");
  return {.frozen = o.frozen != 0,
          .decay = o.no_decay == 0,
          .init = static_cast<graph::Init>(o.init),
          .init_scale = o.init_scale};
}

// The words of "a,b,c" that are not empty.
std::vector<std::string> words(const char* text) {
  std::vector<std::string> list;
  const std::string_view all(text == nullptr ? "" : text);
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = std::min(all.find(',', begin), all.size());
    if (end > begin) list.emplace_back(all.substr(begin, end - begin));
    begin = end + 1;
  }
  return list;
}

// Of "PATTERN=NUMBER,...". A pattern may have a '='.
template <class Number>
std::vector<std::pair<std::string, Number>> numbers(const char* text, std::string_view what) {
  std::vector<std::pair<std::string, Number>> list;
  for (const std::string& word : words(text)) {
    const size_t at = word.rfind('=');
    char* end = nullptr;
    const double number = at == std::string::npos ? 0 : std::strtod(word.c_str() + at + 1, &end);
    const bool fits = end != nullptr && end != word.c_str() + at + 1 && *end == '\0' && at > 0 &&
                      number > 0 && number < 1e9 &&
                      static_cast<double>(static_cast<Number>(number)) == number;
    require(fits, Code::kInvalidArgument, "rule.", what, " has '", word, "'; wanted: PATTERN=",
            std::is_integral_v<Number> ? "RANK, a whole number of at least 1" : "ALPHA, a number above 0");
    list.emplace_back(word.substr(0, at), static_cast<Number>(number));
  }
  return list;
}

}  // namespace

cairn_status_t cairn_graph_create(cairn_instance_t* instance, cairn_graph_t** out_graph,
                                  cairn_error_t* error) {
  return guard(error, [&] {
    not_null(instance, "instance");
    not_null(out_graph, "out_graph");
    auto made = std::make_unique<cairn_graph>(instance);
    made->building = std::make_shared<graph::Graph>();
    made->graph = made->building;
    *out_graph = made.release();
  });
}
void cairn_graph_retain(cairn_graph_t* graph) { retain(graph); }
void cairn_graph_release(cairn_graph_t* graph) { release(graph); }

cairn_status_t cairn_graph_input(cairn_graph_t* graph, const cairn_tensor_desc_t* desc,
                                 cairn_value_t* out_value, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(graph, "graph");
    not_null(out_value, "out_value");
    const cairn::TensorDesc type = read_desc(desc);
    *out_value = handle_id(graph->open().input(desc->name, type));
  });
}

cairn_status_t cairn_graph_parameter(cairn_graph_t* graph, const cairn_tensor_desc_t* desc,
                                     const cairn_parameter_options_t* options, cairn_value_t* out_value,
                                     cairn_error_t* error) {
  return guard(error, [&] {
    not_null(graph, "graph");
    not_null(out_value, "out_value");
    const cairn::TensorDesc type = read_desc(desc);
    *out_value = handle_id(graph->open().parameter(desc->name, type, read_parameter(options)));
  });
}

cairn_status_t cairn_graph_resident(cairn_graph_t* graph, const cairn_tensor_desc_t* desc, uint32_t kind,
                                    double fill, cairn_value_t* out_value, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(graph, "graph");
    not_null(out_value, "out_value");
    const cairn::TensorDesc type = read_desc(desc);
    require(kind == CAIRN_RESIDENT_STATISTIC || kind == CAIRN_RESIDENT_CACHE, Code::kInvalidArgument, "'",
            desc->name, "': kind is ", kind, "; STATISTIC (3) and CACHE (4) are there");
    *out_value =
        handle_id(graph->open().resident(desc->name, static_cast<graph::ValueKind>(kind), type, fill));
  });
}

cairn_status_t cairn_graph_op(cairn_graph_t* graph, const char* op, const cairn_value_t* inputs,
                              size_t input_count, const cairn_attr_t* attrs, size_t attr_count,
                              cairn_value_t* out_values, size_t out_count, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(graph, "graph");
    not_null(op, "op");
    array_not_null(inputs, input_count, "inputs");
    array_not_null(out_values, out_count, "out_values");
    graph::Graph& g = graph->open();
    std::vector<graph::ValueId> in(input_count);
    for (size_t i = 0; i < input_count; ++i) in[i] = value_id(g, inputs[i], cairn::cat(op, ": input ", i));
    const std::vector<graph::ValueId> out = g.op(op, std::move(in), read_attrs(op, attrs, attr_count));
    for (size_t i = 0; i < out_count; ++i) out_values[i] = i < out.size() ? handle_id(out[i]) : 0;
  });
}

cairn_status_t cairn_graph_adapt(cairn_graph_t* graph, const cairn_adapter_t* rule, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(graph, "graph");
    const cairn_adapter_t r = read_struct(rule, "rule");
    in_enum(r.kind, CAIRN_ADAPTER_PISSA, "rule.kind");
    graph->open().adapt({.kind = static_cast<graph::AdapterKind>(r.kind),
                         .rank = r.rank,
                         .alpha = r.alpha,
                         .dropout = r.dropout,
                         .targets = words(r.targets),
                         .except = words(r.except),
                         .saved = words(r.saved),
                         .ranks = numbers<int64_t>(r.ranks, "ranks"),
                         .alphas = numbers<double>(r.alphas, "alphas")});
  });
}

cairn_status_t cairn_graph_name(cairn_graph_t* graph, cairn_value_t value, const char* name,
                                cairn_error_t* error) {
  return guard(error, [&] {
    not_null(graph, "graph");
    not_null(name, "name");
    require(value != 0, Code::kInvalidArgument, "argument 'value' is 0, which is no value");
    graph::Graph& g = graph->open();
    g.name_value(value_id(g, value, "argument 'value'"), name);
  });
}

cairn_status_t cairn_graph_custom_op(cairn_graph_t* graph, const cairn_custom_op_t* op,
                                     cairn_error_t* error) {
  return guard(error, [&] {
    not_null(graph, "graph");
    const cairn_custom_op_t given = read_struct(op, "op");
    not_null(given.name, "op.name");
    flag(given.recomputable, "op.recomputable");
    reserved_zero(given.reserved, "op");
    require(given.inputs >= 1 && given.inputs <= 4 && given.outputs >= 1 && given.outputs <= 4,
            Code::kInvalidArgument, "custom op '", given.name, "' has ", given.inputs, " inputs and ",
            given.outputs, " outputs; 1 to 4 of each are allowed");
    require(given.shape != nullptr && given.forward != nullptr, Code::kInvalidArgument, "custom op '",
            given.name, "': the callback ", given.shape == nullptr ? "shape" : "forward", " is NULL");
    const auto user = std::make_shared<CustomOpUser>(given.user, given.failure_words);
    if (graph->building != nullptr && graph->building->frozen() && graph->building->waits_for_customs())
      graph->building->bind(custom_op(given, user));
    else
      graph->open().custom(custom_op(given, user));
    user->release = given.release_user;  // from here on it is the graph's
  });
}

cairn_status_t cairn_graph_region_begin(cairn_graph_t* graph, const cairn_region_options_t* options,
                                        cairn_region_t* out_region, cairn_error_t* error) {
  static constexpr const char* kTiers[] = {"", "host", "disk"};  // 0: the plan's first
  return guard(error, [&] {
    not_null(graph, "graph");
    not_null(out_region, "out_region");
    const cairn_region_options_t o = read_struct(options, "options");
    not_null(o.name, "options.name");
    in_enum(o.policy, CAIRN_REGION_OFFLOAD, "options.policy");
    in_enum(o.tier, CAIRN_TIER_DISK, "options.tier");
    require(o.tier == 0 || o.policy == CAIRN_REGION_OFFLOAD, Code::kInvalidArgument, "region '", o.name,
            "': a tier goes with the policy OFFLOAD only");
    const auto region =
        graph->open().region_begin(o.name, static_cast<cairn::Policy>(o.policy), kTiers[o.tier]);
    *out_region = static_cast<cairn_region_t>(region) + 1;
  });
}

cairn_status_t cairn_graph_region_end(cairn_graph_t* graph, cairn_region_t region, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(graph, "graph");
    graph::Graph& g = graph->open();
    require(region >= 1 && region <= g.regions().size(), Code::kInvalidArgument, "argument 'region' is ",
            region, "; the graph has ", g.regions().size());
    g.region_end(static_cast<graph::RegionId>(region) - 1);
  });
}

cairn_status_t cairn_graph_freeze(cairn_graph_t* graph, const cairn_freeze_options_t* options,
                                  cairn_error_t* error) {
  return guard(error, [&] {
    not_null(graph, "graph");
    const cairn_freeze_options_t o = read_struct(options, CAIRN_FREEZE_OPTIONS_INIT, "options");
    array_not_null(o.outputs, o.output_count, "options.outputs");
    graph::Graph& g = graph->open();
    std::vector<graph::ValueId> outputs(o.output_count);
    for (size_t i = 0; i < o.output_count; ++i) {
      require(o.outputs[i] != 0, Code::kInvalidArgument, "options.outputs[", i, "] is 0, which is no value");
      outputs[i] = value_id(g, o.outputs[i], cairn::cat("options.outputs[", i, "]"));
    }
    g.freeze(value_id(g, o.loss, "options.loss"), value_id(g, o.weight, "options.weight"),
             std::move(outputs));
    for (const std::string& note : g.notes()) graph->instance->tell(CAIRN_LOG_WARNING, note);
  });
}

size_t cairn_graph_value_count(const cairn_graph_t* graph) {
  return graph == nullptr ? 0 : graph->graph->values().size();
}

cairn_status_t cairn_graph_value_info(const cairn_graph_t* graph, cairn_value_t value,
                                      cairn_value_info_t* out_info, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(graph, "graph");
    const OutStruct out(out_info, "out_info");
    const graph::Graph& g = *graph->graph;
    require(value >= 1 && value <= g.values().size(), Code::kNotFound, "there is no value ", value,
            "; the graph has ", g.values().size());
    const graph::Value& v = g.values()[value - 1];
    cairn_value_info_t info = CAIRN_VALUE_INFO_INIT;
    if (g.frozen()) {
      info.name = v.name.c_str();
    } else {
      const std::lock_guard lock(graph->mutex);
      info.name = graph->names.insert(v.name).first->c_str();
    }
    cairn::capi::describe(v.desc, &info);
    info.kind = static_cast<uint32_t>(v.kind);
    info.region = static_cast<cairn_region_t>(v.region + 1);
    info.frozen = v.parameter.frozen;
    out.write(info);
  });
}

cairn_value_t cairn_graph_find(const cairn_graph_t* graph, const char* name) {
  return graph == nullptr || name == nullptr ? 0 : handle_id(graph->graph->find(name));
}
