// Chapter 3: values, ops, parameters, regions.
#ifndef CAIRN_CPP_GRAPH_HPP_
#define CAIRN_CPP_GRAPH_HPP_

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "custom_op.hpp"
#include "instance.hpp"

namespace cairn {
inline namespace CAIRN_HPP_NAMESPACE {

// Ids inside one graph; 0 is none.
using Value = cairn_value_t;
using Region = cairn_region_t;

// A named attribute of an op, with what it says: {"axis", 1}, {"factor", 0.5}, {"dtype", "bf16"}, {"shape", {3, 8}}; a list of
// one number is {"shape", std::vector<int64_t>{8}}, and one of real numbers {"frequencies", std::vector<double>{1, 0.1}}.
struct Attr {
  const char* name;
  std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>> value;

  Attr(const char* n, int v) : name(n), value(int64_t{v}) {}
  Attr(const char* n, int64_t v) : name(n), value(v) {}
  Attr(const char* n, double v) : name(n), value(v) {}
  template <class Word, class = std::enable_if_t<std::is_convertible_v<const Word&, std::string_view>>>
  Attr(const char* n, const Word& v) : name(n), value(std::string(std::string_view(v))) {}
  Attr(const char* n, std::vector<int64_t> v) : name(n), value(std::move(v)) {}
  // A template, so that {3, 8} is a list of integers.
  template <class Reals, std::enable_if_t<std::is_same_v<Reals, std::vector<double>>, int> = 0>
  Attr(const char* n, Reals v) : name(n), value(std::move(v)) {}

  cairn_attr_t raw() const {  // borrows from this
    cairn_attr_t a{};
    a.name = name;
    a.kind = static_cast<uint32_t>(value.index());
    if (const auto* integer = std::get_if<int64_t>(&value)) a.integer = *integer;
    if (const auto* real = std::get_if<double>(&value)) a.real = *real;
    if (const auto* word = std::get_if<std::string>(&value)) a.word = word->c_str();
    if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
      a.list = list->data();
      a.list_count = static_cast<uint32_t>(list->size());
    }
    if (const auto* reals = std::get_if<std::vector<double>>(&value)) {
      a.reals = reals->data();
      a.list_count = static_cast<uint32_t>(reals->size());
    }
    return a;
  }
};

// How a parameter starts, and what holds for it, for Graph::parameter: ParameterOptions::normal(0.02).no_decay().
class ParameterOptions {
 public:
  static ParameterOptions constant(double value) { return {CAIRN_INIT_CONSTANT, value}; }
  static ParameterOptions normal(double deviation) { return {CAIRN_INIT_NORMAL, deviation}; }
  static ParameterOptions uniform(double bound) { return {CAIRN_INIT_UNIFORM, bound}; }
  static ParameterOptions truncated_normal(double deviation) {
    return {CAIRN_INIT_TRUNCATED_NORMAL, deviation};
  }
  static ParameterOptions orthogonal(double factor) { return {CAIRN_INIT_ORTHOGONAL, factor}; }
  ParameterOptions& frozen(bool yes = true) {  // no gradient, no optimizer state
    raw_.frozen = yes ? 1 : 0;
    return *this;
  }
  ParameterOptions& no_decay(bool yes = true) {  // weight decay does not apply
    raw_.no_decay = yes ? 1 : 0;
    return *this;
  }
  operator cairn_parameter_options_t() const noexcept { return raw_; }

 private:
  ParameterOptions(uint32_t init, double scale) {
    raw_.init = init;
    raw_.init_scale = scale;
  }
  cairn_parameter_options_t raw_ = CAIRN_PARAMETER_OPTIONS_INIT;
};
inline cairn_parameter_options_t init_constant(double value) { return ParameterOptions::constant(value); }
inline cairn_parameter_options_t init_normal(double deviation) { return ParameterOptions::normal(deviation); }

// Built node by node by one thread at a time, frozen once, and then immutable and of all threads. What fails leaves it as it
// was. errors of every building call: WRONG_STATE (frozen).
class Graph : public detail::Handle<cairn_graph_t, cairn_graph_retain, cairn_graph_release> {
 public:
  using Handle::Handle;
  static Outcome<Graph> create(const Instance& instance) {
    return detail::make<Graph>(
        {}, [&](auto* out, auto* error) { return cairn_graph_create(instance.get(), out, error); });
  }
  // Graph files; frozen as they were. Custom ops are there by name: custom_op() gives them their callbacks. errors: IO,
  // CORRUPT_FILE.
  static Outcome<Graph> load(const Instance& instance, Text path) {
    return detail::make<Graph>({path}, [&](auto* out, auto* error) {
      return cairn_graph_load(instance.get(), path.c_str(), out, error);
    });
  }
  Outcome<void> save(Text path) const {
    return detail::call({path}, [&](auto* error) { return cairn_graph_save(handle_, path.c_str(), error); });
  }

  // A value that the program writes before each run.
  Outcome<Value> input(Text name, Span<const int64_t> dims, uint32_t dtype = CAIRN_F32) {
    const cairn_tensor_desc_t desc = describe(name, dims, dtype);
    return detail::fill({name}, Value{}, [&](auto* out, auto* error) {
      return cairn_graph_input(handle_, &desc, out, error);
    });
  }
  // A trainable tensor, zeros where the options say nothing.
  Outcome<Value> parameter(Text name, Span<const int64_t> dims,
                           const cairn_parameter_options_t& options = CAIRN_PARAMETER_OPTIONS_INIT,
                           uint32_t dtype = CAIRN_F32) {
    const cairn_tensor_desc_t desc = describe(name, dims, dtype);
    return detail::fill({name}, Value{}, [&](auto* out, auto* error) {
      return cairn_graph_parameter(handle_, &desc, &options, out, error);
    });
  }
  // A value that keeps its numbers from run to run: CAIRN_RESIDENT_STATISTIC, CAIRN_RESIDENT_CACHE.
  Outcome<Value> resident(Text name, Span<const int64_t> dims, uint32_t kind, double fill = 0,
                          uint32_t dtype = CAIRN_F32) {
    const cairn_tensor_desc_t desc = describe(name, dims, dtype);
    return detail::fill({name}, Value{}, [&](auto* out, auto* error) {
      return cairn_graph_resident(handle_, &desc, kind, fill, out, error);
    });
  }
  // From here on ops whose weights the rule names get an adapter. errors: INVALID_ARGUMENT.
  Outcome<void> adapt(const cairn_adapter_t& rule) {
    return detail::call({}, [&](auto* error) { return cairn_graph_adapt(handle_, &rule, error); });
  }
  // The first output of an op; its first N. errors: INVALID_ARGUMENT (names op, operand and both shapes), NOT_FOUND.
  Outcome<Value> op(Text name, Span<const Value> inputs, Span<const Attr> attrs = {}) {
    Value made{};
    return add_op(name, inputs, attrs, &made, 1, [&] { return made; });
  }
  template <size_t N>
  Outcome<std::array<Value, N>> ops(Text name, Span<const Value> inputs, Span<const Attr> attrs = {}) {
    std::array<Value, N> made{};
    return add_op(name, inputs, attrs, made.data(), N, [&] { return made; });
  }
  // A name of its own for a value, unique in the graph.
  Outcome<void> name(Value value, Text text) {
    return detail::call({text},
                        [&](auto* error) { return cairn_graph_name(handle_, value, text.c_str(), error); });
  }
  // Makes an op known, for op(): it is the graph's from then on. Or one of cairn.h, whose `user` remains the caller's, unless
  // release_user says otherwise.
  Outcome<void> add(CustomOp op) {
    auto owned = std::make_unique<CustomOp>(std::move(op));
    cairn_custom_op_t raw = CustomOp::raw(*owned);
    raw.release_user = [](void* user) { delete static_cast<CustomOp*>(user); };
    return detail::call(
        {owned->name()}, [&](auto* error) { return cairn_graph_custom_op(handle_, &raw, error); },
        [&] { (void)owned.release(); });
  }
  Outcome<void> custom_op(const cairn_custom_op_t& op) {
    return detail::call({}, [&](auto* error) { return cairn_graph_custom_op(handle_, &op, error); });
  }

  // Ops that build() adds belong to a region, which ends after it, also where it fails. policy: CAIRN_REGION_*. Returns what
  // build() returns.
  template <class Build>
  auto region(Text name, uint32_t policy, const Build& build, uint32_t tier = 0) {
    using Given = std::invoke_result_t<const Build&>;
#if CAIRN_HPP_THROWS
    OpenRegion open{handle_, region_begin(name, policy, tier)};
    if constexpr (std::is_void_v<Given>) {
      build();
      region_end(open.close());
    } else {
      Given made = build();
      region_end(open.close());
      return made;
    }
#else
    using Made = Result<typename detail::Unwrapped<Given>::type>;
    const Result<Region> begun = region_begin(name, policy, tier);
    if (!begun) return Made(begun.error());
    OpenRegion open{handle_, *begun};
    if constexpr (std::is_void_v<Given>) {
      build();
      return Made(region_end(open.close()));
    } else {
      Made made = build();
      if (!made) return made;
      const Result<void> ended = region_end(open.close());
      return ended ? made : Made(ended.error());
    }
#endif
  }
  // The same in two calls; they nest, to depth 8.
  Outcome<Region> region_begin(Text name, uint32_t policy = CAIRN_REGION_PLANNER_DECIDES, uint32_t tier = 0) {
    cairn_region_options_t options = CAIRN_REGION_OPTIONS_INIT;
    options.name = name.c_str();
    options.policy = policy;
    options.tier = tier;
    return detail::fill({name}, Region{}, [&](auto* out, auto* error) {
      return cairn_graph_region_begin(handle_, &options, out, error);
    });
  }
  Outcome<void> region_end(Region region) {
    return detail::call({}, [&](auto* error) { return cairn_graph_region_end(handle_, region, error); });
  }

  // Ends building. loss 0: the graph only runs forward. outputs: what the program reads after a run. weight: the loss's
  // denominator; 0: the loss op's own, or 1.
  Outcome<void> freeze(Value loss, Span<const Value> outputs = {}, Value weight = 0) {
    cairn_freeze_options_t options = CAIRN_FREEZE_OPTIONS_INIT;
    options.loss = loss;
    options.weight = weight;
    options.outputs = outputs.data();
    options.output_count = outputs.size();
    return detail::call({}, [&](auto* error) { return cairn_graph_freeze(handle_, &options, error); });
  }

  // Values, numbered 1 to value_count() in order of creation; texts borrow from the graph.
  size_t value_count() const { return cairn_graph_value_count(handle_); }
  auto values() const {
    return Rows<cairn_value_info_t, Graph>(
        *this, CAIRN_VALUE_INFO_INIT, [](const Graph& graph, size_t index, auto* out) {
          return cairn_graph_value_info(graph.get(), static_cast<Value>(index + 1), out, nullptr);
        });
  }
  Outcome<cairn_value_info_t> info(Value value) const {
    return detail::fill({}, cairn_value_info_t CAIRN_VALUE_INFO_INIT, [&](auto* out, auto* error) {
      return cairn_graph_value_info(handle_, value, out, error);
    });
  }
  // The value of that name; 0: there is none.
  Value find(Text name) const { return name.has_nul() ? 0 : cairn_graph_find(handle_, name.c_str()); }

 private:
  // A region that must end whatever happens.
  struct OpenRegion {
    cairn_graph_t* graph;
    Region region;
    Region close() noexcept { return std::exchange(region, 0); }
    ~OpenRegion() {
      if (region == 0) return;
      [[maybe_unused]] const cairn_status_t status = cairn_graph_region_end(graph, region, nullptr);
    }
  };
  static cairn_tensor_desc_t describe(Text name, Span<const int64_t> dims, uint32_t dtype) {
    return {name.c_str(), dims.data(), static_cast<uint32_t>(dims.size()), dtype};
  }
  template <class Give>
  auto add_op(Text name, Span<const Value> inputs, Span<const Attr> attrs, Value* made, size_t count,
              const Give& give) -> Outcome<std::invoke_result_t<const Give&>> {
    std::vector<cairn_attr_t> raw;
    for (const Attr& attr : attrs) {
      raw.push_back(attr.raw());
      if (const auto* word = std::get_if<std::string>(&attr.value); word != nullptr && Text(*word).has_nul())
        return detail::failed<std::invoke_result_t<const Give&>>(detail::nul_error(*word));
    }
    return detail::call(
        {name},
        [&](auto* error) {
          return cairn_graph_op(handle_, name.c_str(), inputs.data(), inputs.size(), raw.data(), raw.size(),
                                made, count, error);
        },
        give);
  }
};

}  // namespace CAIRN_HPP_NAMESPACE
}  // namespace cairn
#endif  // CAIRN_CPP_GRAPH_HPP_
