// Chapter 2: the program's hooks, and devices.
#ifndef CAIRN_CPP_INSTANCE_HPP_
#define CAIRN_CPP_INSTANCE_HPP_

#include <new>
#include <string>
#include <vector>
#if __has_include(<memory_resource>)
#include <memory_resource>
#endif

#include "handle.hpp"

namespace cairn {
inline namespace CAIRN_HPP_NAMESPACE {

// Version of the library in use, "1.0.0"; and major * 10000 + minor * 100 + patch.
inline std::string version() { return cairn_version(); }
inline uint32_t version_number() noexcept { return cairn_version_number(); }

namespace detail {

// A table of the library's own, of which the texts live as long as the library.
struct Library {};
template <class Row, cairn_status_t (*kDescribe)(size_t, Row*, cairn_error_t*)>
Rows<Row, Library> described(Row blank) {
  return {{}, blank, [](const Library&, size_t index, Row* out) { return kDescribe(index, out, nullptr); }};
}

}  // namespace detail

// What Graph::op knows; what mixed precision knows to make of an op; how tensors are stored; what plans can update parameters with; the schedules
// that steppers know. Any thread.
inline auto ops() { return detail::described<cairn_op_info_t, cairn_op_describe>(CAIRN_OP_INFO_INIT); }
inline auto amp_classes() {
  return detail::described<cairn_amp_class_info_t, cairn_amp_class_describe>(CAIRN_AMP_CLASS_INFO_INIT);
}
inline auto formats() {
  return detail::described<cairn_format_info_t, cairn_format_describe>(CAIRN_FORMAT_INFO_INIT);
}
inline auto optimizers() {
  return detail::described<cairn_optimizer_info_t, cairn_optimizer_describe>(CAIRN_OPTIMIZER_INFO_INIT);
}
inline auto schedules() {
  return detail::described<cairn_schedule_info_t, cairn_schedule_describe>(CAIRN_SCHEDULE_INFO_INIT);
}
// What plans count; texts are the library's.
inline auto plan_counters() {
  return detail::described<cairn_plan_counter_info_t, cairn_plan_counter_describe>(
      CAIRN_PLAN_COUNTER_INFO_INIT);
}
// What an optimizer or a schedule (kind: CAIRN_SETTINGS_OF_*, owner: its name) or a stepper takes.
// errors: INVALID_ARGUMENT (an unknown owner).
inline Outcome<std::vector<cairn_setting_info_t>> settings(uint32_t kind, Text owner = "") {
  std::vector<cairn_setting_info_t> rows;
  const char* const name = kind == CAIRN_SETTINGS_OF_STEPPER ? nullptr : owner.c_str();
  return detail::call(
      {owner},
      [&](cairn_error_t* error) -> cairn_status_t {
        for (;;) {
          cairn_setting_info_t row = CAIRN_SETTING_INFO_INIT;
          const cairn_status_t status = cairn_setting_describe(kind, name, rows.size(), &row, error);
          if (status != CAIRN_STATUS_OK) return status == CAIRN_STATUS_NOT_FOUND ? CAIRN_STATUS_OK : status;
          rows.push_back(row);
        }
      },
      [&] { return rows; });
}

// What an instance calls back. Both hooks are borrowed: they must outlive the instance and everything made from it, are called
// from any thread, and must not call cairn. What they throw goes no further.
class InstanceOptions {
 public:
  // log(int32_t level, const char* message), of the CAIRN_LOG_* levels.
  template <class Log>
  InstanceOptions& log(Log& log) {
    raw_.log_user = const_cast<void*>(static_cast<const void*>(&log));
    raw_.log = [](void* user, int32_t level, const char* message) {
      CAIRN_HPP_TRY { (*static_cast<Log*>(user))(level, message); }
      CAIRN_HPP_IGNORE_THROWN
    };
    return *this;
  }
#if defined(__cpp_lib_memory_resource)
  // Memory of arenas, host tier and staging.
  InstanceOptions& memory(std::pmr::memory_resource& memory) {
    allocator_.user = &memory;
    allocator_.allocate = [](void* user, size_t bytes, size_t alignment) -> void* {
      CAIRN_HPP_TRY { return static_cast<std::pmr::memory_resource*>(user)->allocate(bytes, alignment); }
      CAIRN_HPP_IGNORE_THROWN
      return nullptr;
    };
    allocator_.release = [](void* user, void* block, size_t bytes, size_t alignment) {
      CAIRN_HPP_TRY { static_cast<std::pmr::memory_resource*>(user)->deallocate(block, bytes, alignment); }
      CAIRN_HPP_IGNORE_THROWN
    };
    return *this;
  }
#endif
  InstanceOptions& allocator(const cairn_allocator_t& allocator) {
    allocator_ = allocator;
    return *this;
  }
  // For cairn.h; points into this object.
  cairn_instance_options_t raw() const noexcept {
    cairn_instance_options_t raw = raw_;
    if (allocator_.allocate != nullptr || allocator_.release != nullptr) raw.allocator = &allocator_;
    return raw;
  }

 private:
  cairn_instance_options_t raw_ = CAIRN_INSTANCE_OPTIONS_INIT;
  cairn_allocator_t allocator_ = CAIRN_ALLOCATOR_INIT;
};

class Instance : public detail::Handle<cairn_instance_t, cairn_instance_retain, cairn_instance_release> {
 public:
  using Handle::Handle;
  // errors: UNSUPPORTED (unknown options; a library of another major version than this header, whose functions have other
  // arguments: a program that loaded it by its path, or under a wrong name, goes no further).
  static Outcome<Instance> create(const cairn_instance_options_t& options = CAIRN_INSTANCE_OPTIONS_INIT) {
    if (cairn_version_number() / 10000 != CAIRN_VERSION_MAJOR)
      return detail::failed<Instance>(other_version());
    return detail::make<Instance>(
        {}, [&](auto* out, auto* error) { return cairn_instance_create(&options, out, error); });
  }
  static Outcome<Instance> create(const InstanceOptions& options) { return create(options.raw()); }

  // This machine's devices. errors: INVALID_ARGUMENT (CAIRN_ISA is no instruction set of this processor).
  Outcome<Rows<cairn_device_info_t, Instance>> devices() const {
    return detail::call(
        {},
        [&](cairn_error_t* error) {
          cairn_device_info_t first = CAIRN_DEVICE_INFO_INIT;
          const cairn_status_t status = cairn_instance_device(handle_, 0, &first, error);
          return status == CAIRN_STATUS_NOT_FOUND ? CAIRN_STATUS_OK : status;
        },
        [&] {
          return Rows<cairn_device_info_t, Instance>(
              *this, CAIRN_DEVICE_INFO_INIT, [](const Instance& instance, size_t index, auto* out) {
                return cairn_instance_device(instance.get(), index, out, nullptr);
              });
        });
  }
  // What a file or checkpoint directory is, as a JSON object. errors: IO, NOT_FOUND, CORRUPT_FILE.
  Outcome<std::string> inspect(Text path) const {
    return detail::make_text(
        {path}, [&](auto* out, auto* error) { return cairn_inspect(handle_, path.c_str(), out, error); });
  }
  // The plan of a problem ("cairn.problem/1"), rendered; budget_bytes 0: the problem's own. blocks: for the time of solving.
  // errors: OVER_BUDGET, CORRUPT_FILE (not JSON).
  Outcome<std::string> solve(const std::string& problem_json, uint64_t budget_bytes = 0,
                             uint32_t kind = CAIRN_RENDER_PLAN_JSON) const {
    return detail::make_text({}, [&](auto* out, auto* error) {
      return cairn_problem_solve(handle_, problem_json.data(), problem_json.size(), budget_bytes, kind, out,
                                 error);
    });
  }

 private:
  static Error other_version() {
    const std::string major = std::to_string(CAIRN_VERSION_MAJOR);
    return Error(CAIRN_STATUS_UNSUPPORTED, "the libcairn in use is version " + version() +
                                               ", and this program was compiled for " + major +
                                               ".x; let it load libcairn.so." + major +
                                               ", or compile it with the headers of that library");
  }
};

// As cairn_device_options_t, of which each method sets a field.
class DeviceOptions {
 public:
  DeviceOptions& threads(uint32_t count) {  // 0: all processors; the bits of a run depend on it
    raw_.threads = count;
    return *this;
  }
  DeviceOptions& verify(bool on = true) {  // checks ordering, lifetimes and races of all work; slow
    raw_.verify = on ? 1 : 0;
    return *this;
  }
  DeviceOptions& link_bytes_per_second(double rate) {
    raw_.link_bytes_per_second = rate;
    return *this;
  }
  DeviceOptions& disk_directory(std::string path) {
    directory_ = std::move(path);
    return *this;
  }
  DeviceOptions& rates(std::string word_or_path) {  // "cache", "measure", "model", or a file that was kept
    rates_ = std::move(word_or_path);
    return *this;
  }
  const std::string& disk_directory() const noexcept { return directory_; }
  const std::string& rates() const noexcept { return rates_; }
  // For cairn.h; points into this object.
  cairn_device_options_t raw() const noexcept {
    cairn_device_options_t raw = raw_;
    if (!directory_.empty()) raw.disk_directory = directory_.c_str();
    if (!rates_.empty()) raw.rates = rates_.c_str();
    return raw;
  }

 private:
  cairn_device_options_t raw_ = CAIRN_DEVICE_OPTIONS_INIT;
  std::string directory_, rates_;
};

class Device : public detail::Handle<cairn_device_t, cairn_device_retain, cairn_device_release> {
 public:
  using Handle::Handle;
  // "cpu", "reference" or "cuda:N". errors: NOT_FOUND, UNSUPPORTED (there is none here), OUT_OF_MEMORY (threads).
  static Outcome<Device> open(const Instance& instance, Text name,
                              const cairn_device_options_t& options = CAIRN_DEVICE_OPTIONS_INIT) {
    return detail::make<Device>({name}, [&](auto* out, auto* error) {
      return cairn_device_open(instance.get(), name.c_str(), &options, out, error);
    });
  }
  static Outcome<Device> open(const Instance& instance, Text name, const DeviceOptions& options) {
    for (const std::string* text : {&options.disk_directory(), &options.rates()})
      if (Text(*text).has_nul()) return detail::failed<Device>(detail::nul_error(*text));
    return open(instance, name, options.raw());
  }
};

}  // namespace CAIRN_HPP_NAMESPACE
}  // namespace cairn
#endif  // CAIRN_CPP_INSTANCE_HPP_
