#include "tests/fault/memory/script.h"

#include <array>
#include <fstream>
#include <iterator>
#include <regex>
#include <utility>

namespace fault {
namespace {

cairn_stepper_options_t stepper_options(uint32_t micro_steps) {
  cairn_stepper_options_t options = CAIRN_STEPPER_OPTIONS_INIT;
  options.rate = 1e-2;
  options.micro_steps = micro_steps;
  return options;
}

}  // namespace

Script::~Script() {
  for (auto release = releases_.rbegin(); release != releases_.rend(); ++release) (*release)();
}

void Script::result_of_file(const std::string& name, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  result(name, file ? std::string(std::istreambuf_iterator<char>(file), {}) : "there is no such file");
}

void Script::open(uint32_t threads, double link_bytes_per_second) {
  instance_ = slot(cairn_instance_release);
  device_ = slot(cairn_device_release);
  call("instance create",
       [=, this](cairn_error_t* error) { return cairn_instance_create(nullptr, instance_.get(), error); });
  call("device open", [=, this](cairn_error_t* error) {
    cairn_device_options_t options = CAIRN_DEVICE_OPTIONS_INIT;
    options.threads = threads;
    options.link_bytes_per_second = link_bytes_per_second;
    return cairn_device_open(*instance_, "cpu", &options, device_.get(), error);
  });
}

void Script::begin_graph() {
  graph_ = slot(cairn_graph_release);
  call("graph create", [=, graph = graph_, instance = instance_](cairn_error_t* error) {
    return cairn_graph_create(*instance, graph.get(), error);
  });
}

Script::Value Script::input(std::string name, std::vector<int64_t> dims, uint32_t dtype) {
  auto value = std::make_shared<cairn_value_t>(0);
  call("input " + name, [=, graph = graph_](cairn_error_t* error) {
    const cairn_tensor_desc_t desc = {name.c_str(), dims.data(), static_cast<uint32_t>(dims.size()), dtype};
    return cairn_graph_input(*graph, &desc, value.get(), error);
  });
  return value;
}

Script::Value Script::parameter(std::string name, std::vector<int64_t> dims, double scale) {
  auto value = std::make_shared<cairn_value_t>(0);
  call("parameter " + name, [=, graph = graph_](cairn_error_t* error) {
    const cairn_tensor_desc_t desc = {name.c_str(), dims.data(), static_cast<uint32_t>(dims.size()),
                                      CAIRN_F32};
    cairn_parameter_options_t options = CAIRN_PARAMETER_OPTIONS_INIT;
    options.init = dims.size() > 1 ? CAIRN_INIT_NORMAL : CAIRN_INIT_CONSTANT;
    options.init_scale = scale;
    return cairn_graph_parameter(*graph, &desc, &options, value.get(), error);
  });
  return value;
}

Script::Value Script::op(std::string op, std::vector<Value> in, std::vector<cairn_attr_t> attrs,
                         size_t outputs) {
  auto made = std::make_shared<std::array<cairn_value_t, 4>>();
  auto ids = std::make_shared<std::vector<cairn_value_t>>(in.size());
  call("op " + op, [=, graph = graph_](cairn_error_t* error) {
    for (size_t i = 0; i < in.size(); ++i) (*ids)[i] = *in[i];
    return cairn_graph_op(*graph, op.c_str(), ids->data(), ids->size(), attrs.data(), attrs.size(),
                          made->data(), outputs, error);
  });
  return Value(made, made->data());
}

void Script::name(const Value& value, std::string name) {
  call("name " + name, [=, graph = graph_](cairn_error_t* error) {
    return cairn_graph_name(*graph, *value, name.c_str(), error);
  });
}

void Script::begin(std::string region, uint32_t policy) {
  regions_.push_back(std::make_shared<cairn_region_t>(0));
  call("region begin " + region, [=, graph = graph_, out = regions_.back()](cairn_error_t* error) {
    cairn_region_options_t options = CAIRN_REGION_OPTIONS_INIT;
    options.name = region.c_str();
    options.policy = policy;
    return cairn_graph_region_begin(*graph, &options, out.get(), error);
  });
}

void Script::end() {
  call("region end", [graph = graph_, region = regions_.back()](cairn_error_t* error) {
    return cairn_graph_region_end(*graph, *region, error);
  });
  regions_.pop_back();
}

void Script::freeze(Value loss, std::vector<Value> outputs) {
  auto ids = std::make_shared<std::vector<cairn_value_t>>(outputs.size());
  call("graph freeze", [=, graph = graph_](cairn_error_t* error) {
    for (size_t i = 0; i < outputs.size(); ++i) (*ids)[i] = *outputs[i];
    cairn_freeze_options_t options = CAIRN_FREEZE_OPTIONS_INIT;
    options.loss = loss == nullptr ? 0 : *loss;
    options.outputs = ids->data();
    options.output_count = ids->size();
    return cairn_graph_freeze(*graph, &options, error);
  });
}

void Script::save_graph() {
  call(
      "graph save",
      [graph = graph_, to = path("graph")](cairn_error_t* error) {
        return cairn_graph_save(*graph, to.c_str(), error);
      },
      [this] { result_of_file("graph", path("graph")); });
}

Script::Slot<cairn_plan_t> Script::plan(const cairn_plan_options_t& options) {
  auto made = slot(cairn_plan_release);
  call("plan create", [=, graph = graph_, device = device_](cairn_error_t* error) {
    return cairn_plan_create(*graph, *device, &options, made.get(), error);
  });
  return made;
}

Script::Slot<cairn_session_t> Script::session(const Slot<cairn_plan_t>& plan) {
  auto made = slot(cairn_session_release);
  call("session create", [=, device = device_](cairn_error_t* error) {
    return cairn_session_create(*plan, *device, made.get(), error);
  });
  call("initialise", [=](cairn_error_t* error) { return cairn_session_initialise(*made, 7, error); });
  return made;
}

std::function<cairn_status_t(cairn_error_t*)> Script::renew(const Slot<cairn_plan_t>& plan,
                                                            const Slot<cairn_session_t>& session,
                                                            const Slot<cairn_stepper_t>& stepper,
                                                            uint32_t micro_steps) {
  return [=, device = device_](cairn_error_t* error) {
    if (stepper) cairn_stepper_release(std::exchange(*stepper, nullptr));
    cairn_session_release(std::exchange(*session, nullptr));
    cairn_status_t status = cairn_session_create(*plan, *device, session.get(), error);
    if (status == 0) status = cairn_session_initialise(*session, 7, error);
    const cairn_stepper_options_t options = stepper_options(micro_steps);
    if (status == 0 && stepper) status = cairn_stepper_create(*session, &options, stepper.get(), error);
    return status;
  };
}

Script::Slot<cairn_stepper_t> Script::stepper(const Slot<cairn_session_t>& session, uint32_t micro_steps) {
  auto made = slot(cairn_stepper_release);
  call("stepper create", [=](cairn_error_t* error) {
    const cairn_stepper_options_t options = stepper_options(micro_steps);
    return cairn_stepper_create(*session, &options, made.get(), error);
  });
  return made;
}

void Script::micro_batch(const Slot<cairn_plan_t>& plan, const Slot<cairn_session_t>& session,
                         const Slot<cairn_stepper_t>& stepper, uint32_t micro_steps,
                         const std::string& name) {
  const std::string saved = path("before " + name);
  const auto micro_of = [=](cairn_error_t* error) {
    cairn_step_report_t report = CAIRN_STEP_REPORT_INIT;
    return cairn_stepper_report(*stepper, &report, error) == 0 ? report.micro : 0;
  };
  const auto before = std::make_shared<uint32_t>();
  call(
      "save before " + name,
      [=](cairn_error_t* error) {
        return cairn_stepper_save(*stepper, saved.c_str(), nullptr, 0, nullptr, 0, error);
      },
      [=] { *before = micro_of(nullptr); });
  // The effective batch is discarded, and the session goes on: what it had of it comes from the checkpoint.
  const auto refused = [=, instance = instance_](cairn_error_t* error) {
    cairn_checkpoint_t* checkpoint = nullptr;
    if (micro_of(error) == *before) return;
    cairn_status_t status = cairn_checkpoint_open(*instance, saved.c_str(), &checkpoint, error);
    if (status == 0) status = cairn_stepper_restore(*stepper, checkpoint, error);
    cairn_checkpoint_release(checkpoint);
    if (status != 0) return;  // the session is lost: mend makes another
  };
  // Needed only where memory was refused once a parameter had been updated.
  const auto mend = [=, this, device = device_, instance = instance_](cairn_error_t* error) {
    cairn_stepper_options_t options = stepper_options(micro_steps);
    cairn_checkpoint_t* checkpoint = nullptr;
    cairn_stepper_release(std::exchange(*stepper, nullptr));
    cairn_session_release(std::exchange(*session, nullptr));
    cairn_status_t status = cairn_session_create(*plan, *device, session.get(), error);
    if (status == 0) status = cairn_stepper_create(*session, &options, stepper.get(), error);
    if (status == 0) status = cairn_checkpoint_open(*instance, saved.c_str(), &checkpoint, error);
    if (status == 0) status = cairn_stepper_restore(*stepper, checkpoint, error);
    for (const Input& input : inputs_)
      if (status == 0 && input.session == session) status = input.write(error);
    cairn_checkpoint_release(checkpoint);
    return status;
  };
  call(
      "micro-batch " + name,
      [=](cairn_error_t* error) { return cairn_stepper_micro(*stepper, nullptr, error); }, {}, mend, refused);
}

void Script::digest(const Slot<cairn_session_t>& session, std::string name) {
  auto hex = std::make_shared<std::array<char, 33>>();
  call(
      "digest " + name,
      [=](cairn_error_t* error) { return cairn_session_digest(*session, hex->data(), error); },
      [=, this] { result(name, hex->data()); });
}

Script::Slot<cairn_text_t> Script::text(std::string name,
                                        std::function<cairn_status_t(cairn_text_t**, cairn_error_t*)> make) {
  auto made = slot(cairn_text_release);
  call(
      name, [=](cairn_error_t* error) { return make(made.get(), error); },
      [=, this] {
        // Only the time that a search took differs from run to run.
        static const std::regex kTime("(\"solve_seconds\": ?|planned in )[-+.e0-9]+( ms| s| µs)?");
        result(name,
               std::regex_replace(std::string(cairn_text_data(*made), cairn_text_size(*made)), kTime, "$1"));
      });
  return made;
}

void Script::render(const Slot<cairn_plan_t>& plan, uint32_t kind, std::string name) {
  text("render " + name, [=](cairn_text_t** out, cairn_error_t* error) {
    return cairn_plan_render(*plan, kind, "a plan", out, error);
  });
}

}  // namespace fault
