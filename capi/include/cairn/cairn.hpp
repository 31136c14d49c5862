// cairn.hpp - the C header with C++17 manners: objects that release themselves, exceptions, containers as
// arguments. Nothing here that is not in cairn.h, where every function's contract is. Objects are references
// to handles: copying one retains, and both name the same thing. Header-only; needs libcairn.
#ifndef CAIRN_HPP_
#define CAIRN_HPP_

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cairn.h"

namespace cairn {
inline namespace v1 {

// A call that failed. fault(): with OUT_OF_MEMORY and OVER_BUDGET.
class Error : public std::runtime_error {
 public:
  Error(cairn_status_t status, const std::string& message, std::optional<cairn_memory_fault_t> fault)
      : std::runtime_error(message), status_(status), fault_(std::move(fault)) {}
  cairn_status_t status() const noexcept { return status_; }
  const char* status_name() const noexcept { return cairn_status_name(status_); }
  const std::optional<cairn_memory_fault_t>& fault() const noexcept { return fault_; }

 private:
  cairn_status_t status_;
  std::optional<cairn_memory_fault_t> fault_;
};

namespace detail {

// A retained handle.
template <class T, void (*kRetain)(T*), void (*kRelease)(T*)>
class Handle {
 public:
  Handle() noexcept = default;
  explicit Handle(T* owned) noexcept : handle_(owned) {}
  Handle(const Handle& other) noexcept : handle_(other.handle_) { kRetain(handle_); }
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Handle& operator=(Handle other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Handle() { kRelease(handle_); }
  T* get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != nullptr; }

 protected:
  T* handle_ = nullptr;
};

using ErrorHandle = Handle<cairn_error_t, cairn_error_retain, cairn_error_release>;

// Runs call(error) and throws what it reports.
template <class Call>
void check(const Call& call) {
  const ErrorHandle error(cairn_error_create());
  const cairn_status_t status = call(error.get());
  if (status == CAIRN_STATUS_OK) return;
  cairn_memory_fault_t fault = CAIRN_MEMORY_FAULT_INIT;
  std::optional<cairn_memory_fault_t> found;
  if (error && cairn_error_memory_fault(error.get(), &fault) == CAIRN_STATUS_OK) found = fault;
  throw Error(status, error ? cairn_error_message(error.get()) : cairn_status_name(status), found);
}

// The handle or struct that call(&out, error) gives.
template <class Out, class Call>
Out make(const Call& call) {
  Out out{};
  check([&](cairn_error_t* error) { return call(&out, error); });
  return out;
}
template <class Out, class Call>
Out fill(Out out, const Call& call) {
  check([&](cairn_error_t* error) { return call(&out, error); });
  return out;
}

// Objects of the `count` handles that call(first, error) gives.
template <class Object, class Raw, class Call>
std::vector<Object> make_all(size_t count, const Call& call) {
  std::vector<Object> objects(count);
  std::vector<Raw*> handles(count);
  check([&](cairn_error_t* error) { return call(handles.data(), error); });
  for (size_t i = 0; i < count; ++i) objects[i] = Object(handles[i]);
  return objects;
}

template <class T>
const T* data_or_null(const std::vector<T>& list) {
  return list.empty() ? nullptr : list.data();
}

// A program that loaded a library of another major version by its path, or under a wrong name, goes no further: its
// functions have other arguments.
inline void require_version() {
  if (cairn_version_number() / 10000 == CAIRN_VERSION_MAJOR) return;
  const std::string major = std::to_string(CAIRN_VERSION_MAJOR);
  throw Error(CAIRN_STATUS_UNSUPPORTED,
              "the libcairn in use is version " + std::string(cairn_version()) +
                  ", and this program was compiled for " + major + ".x; let it load libcairn.so." + major +
                  ", or compile it with the headers of that library",
              std::nullopt);
}

inline std::string take_text(cairn_text_t* text) {
  const Handle<cairn_text_t, cairn_text_retain, cairn_text_release> owned(text);
  return {cairn_text_data(text), cairn_text_size(text)};
}

}  // namespace detail

using Value = cairn_value_t;
using Region = cairn_region_t;

// What Graph::op knows; the texts live as long as the library.
inline std::vector<cairn_op_info_t> ops() {
  std::vector<cairn_op_info_t> found;
  cairn_op_info_t info = CAIRN_OP_INFO_INIT;
  while (cairn_op_describe(found.size(), &info, nullptr) == CAIRN_STATUS_OK) found.push_back(info);
  return found;
}

// What mixed precision knows to make of an op; the texts live as long as the library.
inline std::vector<cairn_amp_class_info_t> amp_classes() {
  std::vector<cairn_amp_class_info_t> found;
  cairn_amp_class_info_t info = CAIRN_AMP_CLASS_INFO_INIT;
  while (cairn_amp_class_describe(found.size(), &info, nullptr) == CAIRN_STATUS_OK) found.push_back(info);
  return found;
}

// What plans can update parameters with; the texts live as long as the library.
inline std::vector<cairn_optimizer_info_t> optimizers() {
  std::vector<cairn_optimizer_info_t> found;
  cairn_optimizer_info_t info = CAIRN_OPTIMIZER_INFO_INIT;
  while (cairn_optimizer_describe(found.size(), &info, nullptr) == CAIRN_STATUS_OK) found.push_back(info);
  return found;
}

// ---- 2. instance and devices
class Instance : public detail::Handle<cairn_instance_t, cairn_instance_retain, cairn_instance_release> {
 public:
  using Handle::Handle;
  // UNSUPPORTED, too, where the library in use is of another major version than this header.
  static Instance create(const cairn_instance_options_t& options = CAIRN_INSTANCE_OPTIONS_INIT) {
    detail::require_version();
    return Instance(detail::make<cairn_instance_t*>(
        [&](auto* out, auto* error) { return cairn_instance_create(&options, out, error); }));
  }
  std::vector<cairn_device_info_t> devices() const {
    std::vector<cairn_device_info_t> found;
    cairn_device_info_t info = CAIRN_DEVICE_INFO_INIT;
    while (cairn_instance_device(handle_, found.size(), &info, nullptr) == CAIRN_STATUS_OK)
      found.push_back(info);
    return found;
  }
  std::string inspect(const std::string& path) const {
    return detail::take_text(detail::make<cairn_text_t*>(
        [&](auto* out, auto* error) { return cairn_inspect(handle_, path.c_str(), out, error); }));
  }
};

class Device : public detail::Handle<cairn_device_t, cairn_device_retain, cairn_device_release> {
 public:
  using Handle::Handle;
  static Device open(const Instance& instance, const std::string& name,
                     const cairn_device_options_t& options = CAIRN_DEVICE_OPTIONS_INIT) {
    return Device(detail::make<cairn_device_t*>([&](auto* out, auto* error) {
      return cairn_device_open(instance.get(), name.c_str(), &options, out, error);
    }));
  }
};

// ---- 3. graph
struct Attr {
  const char* name;
  std::variant<int64_t, double, std::string, std::vector<int64_t>> value;

  Attr(const char* n, int v) : name(n), value(int64_t{v}) {}
  Attr(const char* n, int64_t v) : name(n), value(v) {}
  Attr(const char* n, double v) : name(n), value(v) {}
  Attr(const char* n, const char* v) : name(n), value(std::string(v)) {}
  Attr(const char* n, std::string v) : name(n), value(std::move(v)) {}
  Attr(const char* n, std::vector<int64_t> v) : name(n), value(std::move(v)) {}

  cairn_attr_t raw() const {  // borrows from this
    cairn_attr_t a{};
    a.name = name;
    a.kind = static_cast<uint32_t>(value.index());
    if (const auto* integer = std::get_if<int64_t>(&value)) a.integer = *integer;
    if (const auto* real = std::get_if<double>(&value)) a.real = *real;
    if (const auto* word = std::get_if<std::string>(&value)) a.word = word->c_str();
    if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
      a.list = detail::data_or_null(*list);
      a.list_count = static_cast<uint32_t>(list->size());
    }
    return a;
  }
};

// How a parameter starts, for Graph::parameter.
inline cairn_parameter_options_t init_constant(double value) {
  cairn_parameter_options_t o = CAIRN_PARAMETER_OPTIONS_INIT;
  o.init_scale = value;
  return o;
}
inline cairn_parameter_options_t init_normal(double deviation) {
  cairn_parameter_options_t o = init_constant(deviation);
  o.init = CAIRN_INIT_NORMAL;
  return o;
}

class Graph : public detail::Handle<cairn_graph_t, cairn_graph_retain, cairn_graph_release> {
 public:
  using Handle::Handle;
  static Graph create(const Instance& instance) {
    return Graph(detail::make<cairn_graph_t*>(
        [&](auto* out, auto* error) { return cairn_graph_create(instance.get(), out, error); }));
  }
  static Graph load(const Instance& instance, const std::string& path) {
    return Graph(detail::make<cairn_graph_t*>(
        [&](auto* out, auto* error) { return cairn_graph_load(instance.get(), path.c_str(), out, error); }));
  }
  void save(const std::string& path) const {
    detail::check([&](auto* error) { return cairn_graph_save(handle_, path.c_str(), error); });
  }
  Value input(const std::string& name, const std::vector<int64_t>& dims, uint32_t dtype = CAIRN_F32) {
    const cairn_tensor_desc_t desc = describe(name, dims, dtype);
    return detail::make<Value>(
        [&](auto* out, auto* error) { return cairn_graph_input(handle_, &desc, out, error); });
  }
  Value parameter(const std::string& name, const std::vector<int64_t>& dims,
                  const cairn_parameter_options_t& options = CAIRN_PARAMETER_OPTIONS_INIT,
                  uint32_t dtype = CAIRN_F32) {
    const cairn_tensor_desc_t desc = describe(name, dims, dtype);
    return detail::make<Value>(
        [&](auto* out, auto* error) { return cairn_graph_parameter(handle_, &desc, &options, out, error); });
  }
  // The first output of an op; or its first N.
  Value op(const std::string& name, const std::vector<Value>& inputs,
           std::initializer_list<Attr> attrs = {}) {
    return ops<1>(name, inputs, attrs)[0];
  }
  template <size_t N>
  std::array<Value, N> ops(const std::string& name, const std::vector<Value>& inputs,
                           std::initializer_list<Attr> attrs = {}) {
    std::vector<cairn_attr_t> raw;
    for (const Attr& attr : attrs) raw.push_back(attr.raw());
    std::array<Value, N> out{};
    detail::check([&](auto* error) {
      return cairn_graph_op(handle_, name.c_str(), detail::data_or_null(inputs), inputs.size(),
                            detail::data_or_null(raw), raw.size(), out.data(), N, error);
    });
    return out;
  }
  void name(Value value, const std::string& text) {
    detail::check([&](auto* error) { return cairn_graph_name(handle_, value, text.c_str(), error); });
  }
  void custom_op(const cairn_custom_op_t& op) {
    detail::check([&](auto* error) { return cairn_graph_custom_op(handle_, &op, error); });
  }
  // Ops that build() adds belong to the region.
  template <class Build>
  void region(const std::string& name, uint32_t policy, const Build& build) {
    cairn_region_options_t options = CAIRN_REGION_OPTIONS_INIT;
    options.name = name.c_str();
    options.policy = policy;
    const Region made = detail::make<Region>(
        [&](auto* out, auto* error) { return cairn_graph_region_begin(handle_, &options, out, error); });
    build();
    detail::check([&](auto* error) { return cairn_graph_region_end(handle_, made, error); });
  }
  void freeze(Value loss, const std::vector<Value>& outputs = {}, Value weight = 0) {
    cairn_freeze_options_t options = CAIRN_FREEZE_OPTIONS_INIT;
    options.loss = loss;
    options.weight = weight;
    options.outputs = detail::data_or_null(outputs);
    options.output_count = outputs.size();
    detail::check([&](auto* error) { return cairn_graph_freeze(handle_, &options, error); });
  }
  size_t value_count() const { return cairn_graph_value_count(handle_); }
  Value find(const std::string& name) const { return cairn_graph_find(handle_, name.c_str()); }
  cairn_value_info_t info(Value value) const {
    return detail::fill(cairn_value_info_t CAIRN_VALUE_INFO_INIT, [&](auto* out, auto* error) {
      return cairn_graph_value_info(handle_, value, out, error);
    });
  }

 private:
  static cairn_tensor_desc_t describe(const std::string& name, const std::vector<int64_t>& dims,
                                      uint32_t dtype) {
    return {name.c_str(), detail::data_or_null(dims), static_cast<uint32_t>(dims.size()), dtype};
  }
};

// ---- 4. plan
class Plan;
class Session;
class Costs : public detail::Handle<cairn_costs_t, cairn_costs_retain, cairn_costs_release> {
 public:
  using Handle::Handle;
  static Costs create(const Device& device) {
    return Costs(detail::make<cairn_costs_t*>(
        [&](auto* out, auto* error) { return cairn_costs_create(device.get(), out, error); }));
  }
  static Costs read(const Instance& instance, std::string_view json) {
    return Costs(detail::make<cairn_costs_t*>([&](auto* out, auto* error) {
      return cairn_costs_read(instance.get(), json.data(), json.size(), out, error);
    }));
  }
  void measure_link(const Device& device, uint32_t tier) {
    detail::check([&](auto* error) { return cairn_costs_measure_link(handle_, device.get(), tier, error); });
  }
  uint64_t measure_kernels(const Plan& plan, const Device& device);  // how many ops were timed
  void add_run(const Session& session, double step_seconds = 0, double optimizer_seconds = 0);
  std::string json() const {
    return detail::take_text(detail::make<cairn_text_t*>(
        [&](auto* out, auto* error) { return cairn_costs_json(handle_, out, error); }));
  }
};

// One of the graphs of Plan::create_set.
struct Program {
  std::string name;
  Graph graph;
};

class Plan : public detail::Handle<cairn_plan_t, cairn_plan_retain, cairn_plan_release> {
 public:
  using Handle::Handle;
  static Plan create(const Graph& graph, const Device& device,
                     const cairn_plan_options_t& options = CAIRN_PLAN_OPTIONS_INIT) {
    return Plan(detail::make<cairn_plan_t*>([&](auto* out, auto* error) {
      return cairn_plan_create(graph.get(), device.get(), &options, out, error);
    }));
  }
  // Plans of several graphs on the same parameters, in their order, for Session::create_set.
  static std::vector<Plan> create_set(const std::vector<Program>& programs, const Device& device,
                                      const cairn_plan_options_t& options = CAIRN_PLAN_OPTIONS_INIT) {
    std::vector<cairn_program_t> raw;
    for (const Program& program : programs) raw.push_back({program.name.c_str(), program.graph.get()});
    return detail::make_all<Plan, cairn_plan_t>(raw.size(), [&](auto* out, auto* error) {
      return cairn_plan_create_set(raw.data(), raw.size(), device.get(), &options, out, error);
    });
  }
  cairn_plan_summary_t summary() const {
    return detail::fill(cairn_plan_summary_t CAIRN_PLAN_SUMMARY_INIT,
                        [&](auto* out, auto* error) { return cairn_plan_summary(handle_, out, error); });
  }
  std::vector<cairn_plan_value_t> values() const {  // texts borrow from the plan
    std::vector<cairn_plan_value_t> rows(static_cast<size_t>(summary().value_count), CAIRN_PLAN_VALUE_INIT);
    for (size_t i = 0; i < rows.size(); ++i)
      detail::check([&](auto* error) { return cairn_plan_value(handle_, i, &rows[i], error); });
    return rows;
  }
  std::vector<cairn_plan_op_t> ops()
      const {  // of the graph, with their AMP classes; texts borrow from the plan
    std::vector<cairn_plan_op_t> rows;
    cairn_plan_op_t row = CAIRN_PLAN_OP_INIT;
    while (cairn_plan_op(handle_, rows.size(), &row, nullptr) == CAIRN_STATUS_OK) rows.push_back(row);
    return rows;
  }
  std::string render(uint32_t kind, const std::string& title = "cairn plan") const {
    return detail::take_text(detail::make<cairn_text_t*>(
        [&](auto* out, auto* error) { return cairn_plan_render(handle_, kind, title.c_str(), out, error); }));
  }
};

// ---- 7. files: opened here, because sessions and steppers read them
class Checkpoint
    : public detail::Handle<cairn_checkpoint_t, cairn_checkpoint_retain, cairn_checkpoint_release> {
 public:
  using Handle::Handle;
  static Checkpoint open(const Instance& instance, const std::string& directory) {
    return Checkpoint(detail::make<cairn_checkpoint_t*>([&](auto* out, auto* error) {
      return cairn_checkpoint_open(instance.get(), directory.c_str(), out, error);
    }));
  }
  static void remove(const Instance& instance, const std::string& directory) {
    detail::check(
        [&](auto* error) { return cairn_checkpoint_remove(instance.get(), directory.c_str(), error); });
  }
  std::string directory() const { return cairn_checkpoint_directory(handle_); }
  std::optional<std::string> metadata(const std::string& key) const {
    const char* value = cairn_checkpoint_metadata(handle_, key.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  }
  Graph graph() const {
    return Graph(detail::make<cairn_graph_t*>(
        [&](auto* out, auto* error) { return cairn_checkpoint_graph(handle_, out, error); }));
  }
};

// ---- 5. session
class Session : public detail::Handle<cairn_session_t, cairn_session_retain, cairn_session_release> {
 public:
  using Handle::Handle;
  static Session create(const Plan& plan, const Device& device) {
    return Session(detail::make<cairn_session_t*>(
        [&](auto* out, auto* error) { return cairn_session_create(plan.get(), device.get(), out, error); }));
  }
  // Sessions of all plans of one Plan::create_set, in its order, on one store.
  static std::vector<Session> create_set(const std::vector<Plan>& plans, const Device& device) {
    std::vector<cairn_plan_t*> raw;
    for (const Plan& plan : plans) raw.push_back(plan.get());
    return detail::make_all<Session, cairn_session_t>(raw.size(), [&](auto* out, auto* error) {
      return cairn_session_create_set(raw.data(), raw.size(), device.get(), out, error);
    });
  }
  void initialise(uint64_t seed) {
    detail::check([&](auto* error) { return cairn_session_initialise(handle_, seed, error); });
  }
  template <class T>
  void write(const std::string& name, const std::vector<T>& data) {
    detail::check([&](auto* error) {
      return cairn_session_write(handle_, name.c_str(), data.data(), data.size() * sizeof(T), error);
    });
  }
  template <class T>
  void read(const std::string& name, std::vector<T>& data) const {  // data has the value's size
    detail::check([&](auto* error) {
      return cairn_session_read(handle_, name.c_str(), data.data(), data.size() * sizeof(T), error);
    });
  }
  void run() {
    detail::check([&](auto* error) { return cairn_session_run(handle_, error); });
  }
  void cancel() const noexcept { cairn_session_cancel(handle_); }
  cairn_tier_usage_t usage(uint32_t tier = CAIRN_TIER_DEVICE) const {
    return detail::fill(cairn_tier_usage_t CAIRN_TIER_USAGE_INIT, [&](auto* out, auto* error) {
      return cairn_session_usage(handle_, tier, out, error);
    });
  }
  void trace(bool on) {
    detail::check([&](auto* error) { return cairn_session_trace(handle_, on ? 1 : 0, error); });
  }
  std::vector<cairn_span_t> spans() const {  // of the last traced run; names borrow from the plan
    std::vector<cairn_span_t> rows;
    for (;;) {
      cairn_span_t span = CAIRN_SPAN_INIT;
      const cairn_status_t status = cairn_session_span(handle_, rows.size(), &span, nullptr);
      if (status == CAIRN_STATUS_NOT_FOUND) return rows;
      detail::check([&](auto* error) { return cairn_session_span(handle_, rows.size(), &span, error); });
      rows.push_back(span);
    }
  }
  std::string digest() {
    char hex[33];
    detail::check([&](auto* error) { return cairn_session_digest(handle_, hex, error); });
    return hex;
  }
  void load(const Checkpoint& checkpoint) {
    detail::check([&](auto* error) { return cairn_session_load(handle_, checkpoint.get(), error); });
  }
  void save_safetensors(const std::string& path, const std::vector<cairn_name_t>& names = {}) {
    detail::check([&](auto* error) {
      return cairn_session_export(handle_, path.c_str(), detail::data_or_null(names), names.size(), error);
    });
  }
  void load_safetensors(const std::string& path, const std::vector<cairn_name_t>& names = {}) {
    detail::check([&](auto* error) {
      return cairn_session_import(handle_, path.c_str(), detail::data_or_null(names), names.size(), error);
    });
  }
};

inline uint64_t Costs::measure_kernels(const Plan& plan, const Device& device) {
  uint64_t count = 0;
  detail::check([&](auto* error) {
    return cairn_costs_measure_kernels(handle_, plan.get(), device.get(), &count, error);
  });
  return count;
}
inline void Costs::add_run(const Session& session, double step_seconds, double optimizer_seconds) {
  detail::check([&](auto* error) {
    return cairn_costs_add_run(handle_, session.get(), step_seconds, optimizer_seconds, error);
  });
}

// ---- 6. stepper
inline std::vector<cairn_schedule_info_t> schedules() {
  std::vector<cairn_schedule_info_t> found;
  cairn_schedule_info_t info = CAIRN_SCHEDULE_INFO_INIT;
  while (cairn_schedule_describe(found.size(), &info, nullptr) == CAIRN_STATUS_OK) found.push_back(info);
  return found;
}

// Schedules that follow each other: Schedules().add("linear", 100).set("start_factor", 0.1).add("cosine").
class Schedules {
 public:
  Schedules& add(std::string name, uint64_t steps = 0) {
    stages_.push_back({std::move(name), steps, {}, {}});
    return *this;
  }
  // A parameter of the one added last; each element of a list, one by one.
  Schedules& set(std::string parameter, double value) { return set({std::move(parameter), {}, value}); }
  Schedules& set(std::string parameter, std::string word) {
    return set({std::move(parameter), std::move(word), 0.0});
  }
  // Makes `options` point into this object, which must stay as it is until they were read.
  void apply_to(cairn_stepper_options_t& options) {
    pointers_.clear();
    for (Stage& stage : stages_) {
      stage.pointers.clear();
      for (const Setting& s : stage.settings)
        stage.pointers.push_back({s.name.c_str(), s.word.empty() ? nullptr : s.word.c_str(), s.value});
      pointers_.push_back(
          {stage.name.c_str(), stage.steps, detail::data_or_null(stage.pointers), stage.pointers.size()});
    }
    options.schedule = 0;
    options.schedules = detail::data_or_null(pointers_);
    options.schedule_count = pointers_.size();
  }

 private:
  struct Setting {
    std::string name, word;
    double value;
  };
  struct Stage {
    std::string name;
    uint64_t steps;
    std::vector<Setting> settings;
    std::vector<cairn_schedule_value_t> pointers;
  };
  Schedules& set(Setting setting) {
    stages_.at(stages_.size() - 1).settings.push_back(std::move(setting));
    return *this;
  }
  std::vector<Stage> stages_;
  std::vector<cairn_schedule_t> pointers_;
};

// Rates of `count` steps from `first` on; momenta, if given, gets what cairn_schedule_rates says.
inline std::vector<double> schedule_rates(const cairn_stepper_options_t& options, uint64_t first,
                                          size_t count, std::vector<double>* momenta = nullptr) {
  std::vector<double> rates(count);
  if (momenta != nullptr) momenta->resize(count);
  detail::check([&](auto* error) {
    return cairn_schedule_rates(&options, first, count, rates.data(), momenta ? momenta->data() : nullptr,
                                error);
  });
  return rates;
}

class Stepper : public detail::Handle<cairn_stepper_t, cairn_stepper_retain, cairn_stepper_release> {
 public:
  using Handle::Handle;
  static Stepper create(const Session& session,
                        const cairn_stepper_options_t& options = CAIRN_STEPPER_OPTIONS_INIT) {
    return Stepper(detail::make<cairn_stepper_t*>(
        [&](auto* out, auto* error) { return cairn_stepper_create(session.get(), &options, out, error); }));
  }
  cairn_step_report_t micro() { return reported(cairn_stepper_micro); }
  cairn_step_report_t micro(const Session& program) {  // another session on the stepper's store
    return reported([&](auto* stepper, auto* out, auto* error) {
      return cairn_stepper_micro_on(stepper, program.get(), out, error);
    });
  }
  cairn_step_report_t apply() { return reported(cairn_stepper_apply); }
  void discard() {
    detail::check([&](auto* error) { return cairn_stepper_discard(handle_, error); });
  }
  void configure(const cairn_stepper_options_t& options) {
    detail::check([&](auto* error) { return cairn_stepper_configure(handle_, &options, error); });
  }
  // group: a pattern, "" for parameters that no group names, nullptr as in cairn.h.
  void set_hyper(const std::string& name, double value, const char* group = nullptr) {
    detail::check([&](auto* error) { return cairn_stepper_set(handle_, group, name.c_str(), value, error); });
  }
  double hyper(const std::string& name, const char* group = nullptr) const {
    return detail::make<double>(
        [&](auto* out, auto* error) { return cairn_stepper_get(handle_, group, name.c_str(), out, error); });
  }
  cairn_step_report_t report() const { return reported(cairn_stepper_report); }
  void save(const std::string& directory, const std::vector<cairn_metadata_t>& metadata = {},
            const std::vector<const char*>& files = {}) {
    detail::check([&](auto* error) {
      return cairn_stepper_save(handle_, directory.c_str(), detail::data_or_null(metadata), metadata.size(),
                                detail::data_or_null(files), files.size(), error);
    });
  }
  void restore(const Checkpoint& checkpoint) {
    detail::check([&](auto* error) { return cairn_stepper_restore(handle_, checkpoint.get(), error); });
  }

 private:
  template <class Call>
  cairn_step_report_t reported(const Call& call) const {
    return detail::fill(cairn_step_report_t CAIRN_STEP_REPORT_INIT,
                        [&](auto* out, auto* error) { return call(handle_, out, error); });
  }
};

// ---- 8. data
class Tokenizer : public detail::Handle<cairn_tokenizer_t, cairn_tokenizer_retain, cairn_tokenizer_release> {
 public:
  using Handle::Handle;
  static Tokenizer bytes(const Instance& instance) { return open(instance, "bytes", nullptr); }
  static Tokenizer bpe(const Instance& instance, const std::string& path) {
    return open(instance, "bpe", path.c_str());
  }
  static void train(const Instance& instance, const std::string& text_path, uint32_t vocabulary,
                    const std::string& model_path) {
    detail::check([&](auto* error) {
      return cairn_tokenizer_train(instance.get(), text_path.c_str(), vocabulary, model_path.c_str(), error);
    });
  }
  uint32_t vocabulary() const { return cairn_tokenizer_vocabulary(handle_); }
  std::vector<int32_t> encode(std::string_view text) const {
    const std::string bytes = detail::take_text(detail::make<cairn_text_t*>([&](auto* out, auto* error) {
      return cairn_tokenizer_encode(handle_, text.data(), text.size(), out, error);
    }));
    std::vector<int32_t> tokens(bytes.size() / sizeof(int32_t));
    bytes.copy(reinterpret_cast<char*>(tokens.data()), bytes.size());
    return tokens;
  }
  std::string decode(const std::vector<int32_t>& tokens) const {
    return detail::take_text(detail::make<cairn_text_t*>([&](auto* out, auto* error) {
      return cairn_tokenizer_decode(handle_, detail::data_or_null(tokens), tokens.size(), out, error);
    }));
  }
  void write(const std::string& text_path, const std::string& token_path) const {
    detail::check([&](auto* error) {
      return cairn_tokenizer_write(handle_, text_path.c_str(), token_path.c_str(), error);
    });
  }

 private:
  static Tokenizer open(const Instance& instance, const char* kind, const char* path) {
    return Tokenizer(detail::make<cairn_tokenizer_t*>([&](auto* out, auto* error) {
      return cairn_tokenizer_open(instance.get(), kind, path, out, error);
    }));
  }
};

class Dataset : public detail::Handle<cairn_dataset_t, cairn_dataset_retain, cairn_dataset_release> {
 public:
  using Handle::Handle;
  static Dataset open(const Instance& instance, const std::string& token_path, uint32_t length) {
    return Dataset(detail::make<cairn_dataset_t*>([&](auto* out, auto* error) {
      return cairn_dataset_open(instance.get(), token_path.c_str(), length, out, error);
    }));
  }
  static Dataset random(const Instance& instance, uint64_t seed, uint32_t vocabulary, uint32_t length) {
    return Dataset(detail::make<cairn_dataset_t*>([&](auto* out, auto* error) {
      return cairn_dataset_random(instance.get(), seed, vocabulary, length, out, error);
    }));
  }
  cairn_dataset_info_t info() const {
    return detail::fill(cairn_dataset_info_t CAIRN_DATASET_INFO_INIT,
                        [&](auto* out, auto* error) { return cairn_dataset_info(handle_, out, error); });
  }
  // inputs and targets get batch * length numbers; returns the rows filled.
  uint32_t batch(uint64_t seed, uint64_t index, uint32_t rows, std::vector<int32_t>& inputs,
                 std::vector<int32_t>& targets) const {
    inputs.resize(size_t{rows} * info().length);
    targets.resize(inputs.size());
    return detail::make<uint32_t>([&](auto* out, auto* error) {
      return cairn_dataset_batch(handle_, seed, index, rows, inputs.data(), targets.data(), out, error);
    });
  }
};

inline std::string version() { return cairn_version(); }

}  // namespace v1
}  // namespace cairn
#endif  // CAIRN_HPP_
