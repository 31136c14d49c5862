// Chapter 5: the optimizers that plans know, and what a host says of them.
#include "capi/src/optimizers.h"

#include <string>

using namespace cairn::capi;
using cairn::Code;
using cairn::require;
namespace graph = cairn::graph;
namespace ops = cairn::ops;

namespace {

constexpr uint64_t kMaxHypers = 65536;  // more is a mistake

struct OptimizerEntry {
  std::string name, states, hypers, description, otherwise;
};

std::vector<OptimizerEntry> make_optimizer_entries() {
  std::vector<OptimizerEntry> list;
  for (const ops::OptimizerRow& row : ops::optimizers()) {
    OptimizerEntry entry{std::string(row.name), "", "", std::string(row.description),
                         std::string(row.otherwise)};
    for (const ops::OptimizerState& state : row.states)
      entry.states +=
          cairn::cat(entry.states.empty() ? "" : " ", state.name, state.when.empty() ? "" : "?", state.when);
    for (const ops::Hyper& hyper : row.hypers)
      entry.hypers += cairn::cat(entry.hypers.empty() ? "" : " ", hyper.name, '=', hyper.value);
    list.push_back(std::move(entry));
  }
  return list;
}

const std::vector<OptimizerEntry>& optimizer_entries() {
  static const std::vector<OptimizerEntry> list = make_optimizer_entries();
  return list;
}

}  // namespace

namespace cairn::capi {

std::vector<graph::HyperSetting> read_hypers(const cairn_hyper_t* hypers, uint64_t count,
                                             std::string_view name) {
  if (count == 0) return {};
  not_null(hypers, name);
  require(count <= kMaxHypers, Code::kInvalidArgument, name, ": ", count, " are more than ", kMaxHypers);
  std::vector<graph::HyperSetting> settings;
  for (uint64_t i = 0; i < count; ++i) {
    not_null(hypers[i].name, cat(name, '[', i, "].name"));
    graph::HyperSetting setting{{}, hypers[i].name, hypers[i].value};
    if (hypers[i].group != nullptr) setting.group = hypers[i].group;
    settings.push_back(std::move(setting));
  }
  return settings;
}

graph::OptimizerOptions read_optimizer(const cairn_plan_options_t& o) {
  if (o.no_optimizer != 0) {
    require(o.optimizer == nullptr && o.group_count == 0 && o.hyper_count == 0 && o.ema == 0,
            Code::kInvalidArgument,
            "options.no_optimizer is set, and so is an optimizer, a group, a hyper-parameter or ema");
    return {.name = ""};
  }
  graph::OptimizerOptions options;
  if (o.optimizer != nullptr) options.name = o.optimizer;
  ops::optimizer(options.name);  // "" is none of them
  if (o.group_count > 0) not_null(o.groups, "options.groups");
  for (uint32_t i = 0; i < o.group_count; ++i) {
    const cairn_parameter_group_t& group = o.groups[i];
    not_null(group.pattern, cat("options.groups[", i, "].pattern"));
    options.groups.push_back({group.pattern, group.optimizer == nullptr ? "" : group.optimizer});
  }
  options.hypers = read_hypers(o.hypers, o.hyper_count, "options.hypers");
  options.average_decay = o.ema;
  return options;
}

std::vector<graph::HyperSetting> adamw_fields(const cairn_stepper_options_t& o,
                                              const graph::JointGraph& joint) {
  const std::pair<const char*, double> fields[] = {
      {"beta1", o.beta1}, {"beta2", o.beta2}, {"eps", o.eps}, {"weight_decay", o.weight_decay}};
  const ops::OptimizerRow& adamw = ops::optimizer("adamw");
  std::vector<graph::HyperSetting> settings;
  for (const auto& [name, value] : fields) {
    ops::check_hyper(adamw, name, value);
    for (const graph::ParameterGroup& group : joint.groups)
      if (group.optimizer == &adamw && !group.given[static_cast<size_t>(adamw.hyper(name))])
        settings.push_back({group.pattern, name, value});
  }
  return settings;
}

}  // namespace cairn::capi

cairn_status_t cairn_optimizer_describe(size_t index, cairn_optimizer_info_t* out_info,
                                        cairn_error_t* error) {
  return guard(error, [&] {
    const OutStruct out(out_info, "out_info");
    require(index < optimizer_entries().size(), Code::kNotFound, "there is no optimizer number ", index,
            "; there are ", optimizer_entries().size());
    const OptimizerEntry& e = optimizer_entries()[index];
    cairn_optimizer_info_t info = CAIRN_OPTIMIZER_INFO_INIT;
    info.name = e.name.c_str();
    info.states = e.states.c_str();
    info.hypers = e.hypers.c_str();
    info.description = e.description.c_str();
    info.otherwise = e.otherwise.c_str();
    out.write(info);
  });
}
