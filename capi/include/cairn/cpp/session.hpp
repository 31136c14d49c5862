// Chapter 5: memory taken, values written and read, runs; and the files that sessions and steppers read.
#ifndef CAIRN_CPP_SESSION_HPP_
#define CAIRN_CPP_SESSION_HPP_

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "plan.hpp"

namespace cairn {
inline namespace CAIRN_HPP_NAMESPACE {

// What a save wrote; immutable, and of all threads.
class Checkpoint
    : public detail::Handle<cairn_checkpoint_t, cairn_checkpoint_retain, cairn_checkpoint_release> {
 public:
  using Handle::Handle;
  // A checkpoint, or the newest complete one below a directory. errors: NOT_FOUND, CORRUPT_FILE, IO.
  static Outcome<Checkpoint> open(const Instance& instance, Text directory) {
    return detail::make<Checkpoint>({directory}, [&](auto* out, auto* error) {
      return cairn_checkpoint_open(instance.get(), directory.c_str(), out, error);
    });
  }
  // Deletes what its manifest lists. errors: NOT_FOUND, INVALID_ARGUMENT (a link), CORRUPT_FILE, IO. blocks: until durable.
  static Outcome<void> remove(const Instance& instance, Text directory) {
    return detail::call({directory}, [&](auto* error) {
      return cairn_checkpoint_remove(instance.get(), directory.c_str(), error);
    });
  }
  std::string directory() const { return cairn_checkpoint_directory(handle_); }
  std::optional<std::string> metadata(Text key) const {
    const char* value = key.has_nul() ? nullptr : cairn_checkpoint_metadata(handle_, key.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  }
  // Compares all tensors with their digests. errors: CORRUPT_FILE, IO.
  Outcome<void> verify() const {
    return detail::call({}, [&](auto* error) { return cairn_checkpoint_verify(handle_, error); });
  }
  // The graph it was trained with, frozen.
  Outcome<Graph> graph() const {
    return detail::make<Graph>(
        {}, [&](auto* out, auto* error) { return cairn_checkpoint_graph(handle_, out, error); });
  }
};

namespace detail {

// What C++ calls a number of that kind and size.
template <class Number>
std::string type_of_number() {
  if constexpr (std::is_floating_point_v<Number>) return sizeof(Number) == sizeof(float) ? "float" : "double";
  const std::string sign = std::is_unsigned_v<Number> ? "uint" : "int";
  return sign + std::to_string(8 * sizeof(Number)) + "_t";
}

// Whether `Number` is how elements of a CAIRN_* type lie in memory. Single bytes are of any, and of what is no number of the
// language, as a struct for 16 bits, nothing is known.
template <class Number>
constexpr bool stands_for(uint32_t dtype) {
  if constexpr (sizeof(Number) == 1 || !(std::is_arithmetic_v<Number> || std::is_enum_v<Number>)) return true;
  if (dtype == CAIRN_BF16 || dtype == CAIRN_F16) return sizeof(Number) == 2;
  const size_t bytes = dtype == CAIRN_F32 || dtype == CAIRN_I32 ? 4 : 8;
  const bool real = dtype == CAIRN_F32 || dtype == CAIRN_F64,
             integer = dtype == CAIRN_I32 || dtype == CAIRN_I64;
  return (std::is_floating_point_v<Number> ? real : integer) && sizeof(Number) == bytes;
}

inline const char* dtype_word(uint32_t dtype) {
  constexpr const char* kWords[] = {"f32", "bf16", "f16", "f64", "i32", "i64", "u8"};
  return dtype < std::size(kWords) ? kWords[dtype] : "of bytes";
}

}  // namespace detail

// All memory of a plan, on a device. One call at a time, but for cancel() and usage().
class Session : public detail::Handle<cairn_session_t, cairn_session_retain, cairn_session_release> {
  template <class Container>
  using Element = std::remove_cv_t<std::remove_reference_t<decltype(*std::data(std::declval<Container&>()))>>;

 public:
  using Handle::Handle;
  // errors: OUT_OF_MEMORY, IO (disk tier).
  static Outcome<Session> create(const Plan& plan, const Device& device) {
    return detail::make<Session>({}, [&](auto* out, auto* error) {
      return cairn_session_create(plan.get(), device.get(), out, error);
    });
  }
  // Sessions of all plans of one Plan::create_set, in its order, on one store.
  static Outcome<std::vector<Session>> create_set(const std::vector<Plan>& plans, const Device& device) {
    std::vector<cairn_plan_t*> raw;
    for (const Plan& plan : plans) raw.push_back(plan.get());
    return detail::make_all<Session>({}, raw.size(), [&](auto* out, auto* error) {
      return cairn_session_create_set(raw.data(), raw.size(), device.get(), out, error);
    });
  }
  // All parameters from their init options; the same numbers on every device.
  Outcome<void> initialise(uint64_t seed) {
    return detail::call({}, [&](auto* error) { return cairn_session_initialise(handle_, seed, error); });
  }

  // Type, shape and bytes of a value that write() or read() takes. errors: NOT_FOUND. threads: const.
  Outcome<cairn_value_info_t> info(Text name) const {
    return detail::fill({name}, cairn_value_info_t CAIRN_VALUE_INFO_INIT, [&](auto* out, auto* error) {
      return cairn_session_value_info(handle_, name.c_str(), out, error);
    });
  }
  // Copies an input or parameter in, a value that persists out: any container of numbers in a row, of as many bytes as the
  // value has; write also takes a list of numbers in braces. Bytes are taken as they lie, so numbers must be of the value's
  // type: of float32 {0.0f, 1.0f}, as {0, 1} are of int. 16 bits are uint16_t, and single bytes stand for any type.
  // blocks: until queued work is done. errors: NOT_FOUND; INVALID_ARGUMENT also: numbers of another type, or outside of a
  // vocabulary.
  template <class Numbers>
  Outcome<void> write(Text name, const Numbers& numbers) {
    if (auto refused = refusal<Element<const Numbers>>(name))
      return detail::failed<void>(std::move(*refused));
    return write(name, std::data(numbers), std::size(numbers) * sizeof(*std::data(numbers)));
  }
  template <class Number>
  Outcome<void> write(Text name, std::initializer_list<Number> numbers) {
    if (auto refused = refusal<Number>(name)) return detail::failed<void>(std::move(*refused));
    return write(name, numbers.begin(), numbers.size() * sizeof(Number));
  }
  Outcome<void> write(Text name, const void* data, size_t bytes) {
    return detail::call(
        {name}, [&](auto* error) { return cairn_session_write(handle_, name.c_str(), data, bytes, error); });
  }
  template <class Numbers, class = Element<Numbers>>
  Outcome<void> read(Text name, Numbers&& numbers) const {
    if (auto refused = refusal<Element<Numbers>>(name)) return detail::failed<void>(std::move(*refused));
    return read(name, std::data(numbers), std::size(numbers) * sizeof(*std::data(numbers)));
  }
  Outcome<void> read(Text name, void* data, size_t bytes) const {
    return detail::call(
        {name}, [&](auto* error) { return cairn_session_read(handle_, name.c_str(), data, bytes, error); });
  }
  template <class Number>
  Outcome<std::vector<Number>> read(Text name, size_t count) const {
    if (auto refused = refusal<Number>(name)) return detail::failed<std::vector<Number>>(std::move(*refused));
    std::vector<Number> numbers;
    return detail::call(
        {name},
        [&](auto* error) {
          // Memory is taken for no count but the value's own, so that a wrong one is an error however large it is.
          cairn_value_info_t known = CAIRN_VALUE_INFO_INIT;
          const cairn_status_t status = cairn_session_value_info(handle_, name.c_str(), &known, error);
          if (status != CAIRN_STATUS_OK) return status;
          constexpr size_t most = std::numeric_limits<size_t>::max() / sizeof(Number);
          const size_t bytes = std::min(count, most) * sizeof(Number);
          numbers.resize(bytes == known.bytes ? count : 1);
          return cairn_session_read(handle_, name.c_str(), numbers.data(), bytes, error);
        },
        [&] { return std::move(numbers); });
  }

  // One run on the inputs written, of a plan without an optimizer. blocks: until it is done. errors: CANCELLED, WRONG_STATE
  // (the plan has an optimizer: use a Stepper), DEVICE_LOST.
  Outcome<void> run() {
    return detail::call({}, [&](auto* error) { return cairn_session_run(handle_, error); });
  }
  // Ends the run under way, or else the next one, with CANCELLED. Any thread, at any time.
  void cancel() const noexcept { cairn_session_cancel(handle_); }

  // Measured bytes of a tier, CAIRN_TIER_*. threads: const.
  Outcome<cairn_tier_usage_t> usage(uint32_t tier = CAIRN_TIER_DEVICE) const {
    return detail::fill({}, cairn_tier_usage_t CAIRN_TIER_USAGE_INIT, [&](auto* out, auto* error) {
      return cairn_session_usage(handle_, tier, out, error);
    });
  }
  // Whether later runs record when each op and copy ran; the spans of the last one that did, lane by lane. Names borrow from
  // the plan. threads of spans: const.
  Outcome<void> trace(bool on) {
    return detail::call({}, [&](auto* error) { return cairn_session_trace(handle_, on ? 1 : 0, error); });
  }
  Rows<cairn_span_t, Session> spans() const {
    return {*this, CAIRN_SPAN_INIT, [](const Session& session, size_t index, cairn_span_t* out) {
              return cairn_session_span(session.get(), index, out, nullptr);
            }};
  }
  // XXH3-128 over all parameters, as 32 hex digits. blocks: until queued work is done.
  Outcome<std::string> digest() {
    char hex[33] = {};
    return detail::call(
        {}, [&](auto* error) { return cairn_session_digest(handle_, hex, error); },
        [&] { return std::string(hex); });
  }
  // The same over the frozen parameters alone, as they are stored.
  Outcome<std::string> base_digest() {
    char hex[33] = {};
    return detail::call(
        {}, [&](auto* error) { return cairn_session_base_digest(handle_, hex, error); },
        [&] { return std::string(hex); });
  }

  // Parameters alone, by name. errors: NOT_FOUND (names the first that is not there), CORRUPT_FILE; IO.
  Outcome<void> load(const Checkpoint& checkpoint) {
    return detail::call({},
                        [&](auto* error) { return cairn_session_load(handle_, checkpoint.get(), error); });
  }
  // The same with averages (PlanOptions::ema) in place of the parameters that have one. errors: NOT_FOUND (there is none), as load.
  Outcome<void> load_ema(const Checkpoint& checkpoint) {
    return detail::call(
        {}, [&](auto* error) { return cairn_session_load_ema(handle_, checkpoint.get(), error); });
  }
  // All parameters to and from a safetensors file; those without a row in `names` keep theirs.
  Outcome<void> save_safetensors(Text path, Span<const cairn_name_t> names = {}) {
    return detail::call({path}, [&](auto* error) {
      return cairn_session_export(handle_, path.c_str(), names.data(), names.size(), error);
    });
  }
  // The same in another type, or as the directory of a model; `options` borrows its texts.
  Outcome<void> save_safetensors(Text path, Span<const cairn_name_t> names,
                                 const cairn_export_options_t& options) {
    return detail::call({path}, [&](auto* error) {
      return cairn_session_export_as(handle_, path.c_str(), names.data(), names.size(), &options, error);
    });
  }
  Outcome<void> load_safetensors(Text path, Span<const cairn_name_t> names = {}) {
    return detail::call({path}, [&](auto* error) {
      return cairn_session_import(handle_, path.c_str(), names.data(), names.size(), error);
    });
  }
  // The same, and GGUF files, of parameters that a file has in another order.
  Outcome<void> load_safetensors(Text path, Span<const cairn_name_t> names,
                                 const cairn_import_options_t& options) {
    return detail::call({path}, [&](auto* error) {
      return cairn_session_import_as(handle_, path.c_str(), names.data(), names.size(), &options, error);
    });
  }

 private:
  // What is wrong with numbers of that type for the value of that name; of names that are not known, the library says it.
  template <class Number>
  std::optional<Error> refusal(const Text& name) const {
    static_assert(std::is_trivially_copyable_v<Number> && !std::is_pointer_v<Number>,
                  "numbers, as they lie in memory");
    cairn_value_info_t known = CAIRN_VALUE_INFO_INIT;
    if (name.has_nul() ||
        cairn_session_value_info(handle_, name.c_str(), &known, nullptr) != CAIRN_STATUS_OK ||
        detail::stands_for<Number>(known.dtype))
      return std::nullopt;
    return Error(CAIRN_STATUS_INVALID_ARGUMENT,
                 std::string("'") + name.c_str() + "' is " + detail::dtype_word(known.dtype) +
                     ", and numbers of " + detail::type_of_number<Number>() +
                     " were given; give those of its type, as {0.0f, 1.0f} are of f32");
  }
};

inline Outcome<void> Costs::add_run(const Session& session, double step_seconds, double optimizer_seconds) {
  return detail::call({}, [&](auto* error) {
    return cairn_costs_add_run(handle_, session.get(), step_seconds, optimizer_seconds, error);
  });
}

}  // namespace CAIRN_HPP_NAMESPACE
}  // namespace cairn
#endif  // CAIRN_CPP_SESSION_HPP_
