// Chapter 4: every byte decided before anything runs.
#ifndef CAIRN_CPP_PLAN_HPP_
#define CAIRN_CPP_PLAN_HPP_

#include <string>
#include <vector>

#include "graph.hpp"
#include "plan_options.hpp"

namespace cairn {
inline namespace CAIRN_HPP_NAMESPACE {

// One of the graphs of Plan::create_set.
struct Program {
  std::string name;  // for messages; unique
  Graph graph;
};

// Immutable, and of all threads.
class Plan : public detail::Handle<cairn_plan_t, cairn_plan_retain, cairn_plan_release> {
 public:
  using Handle::Handle;
  // errors: OVER_BUDGET (the fault names the smallest budget that does), UNSUPPORTED (an op without a gradient; what the
  // device cannot run), WRONG_STATE (the graph is not frozen).
  static Outcome<Plan> create(const Graph& graph, const Device& device,
                              const cairn_plan_options_t& options = CAIRN_PLAN_OPTIONS_INIT) {
    return detail::make<Plan>({}, [&](auto* out, auto* error) {
      return cairn_plan_create(graph.get(), device.get(), &options, out, error);
    });
  }
  static Outcome<Plan> create(const Graph& graph, const Device& device, const PlanOptions& options) {
    return options.with_raw([&](const cairn_plan_options_t& raw) { return create(graph, device, raw); });
  }
  // Plans of several graphs on the same parameters, in their order, for Session::create_set. errors: as create; also
  // INVALID_ARGUMENT (parameters or gradients differ).
  static Outcome<std::vector<Plan>> create_set(
      const std::vector<Program>& programs, const Device& device,
      const cairn_plan_options_t& options = CAIRN_PLAN_OPTIONS_INIT) {
    std::vector<cairn_program_t> raw;
    for (const Program& program : programs) raw.push_back({program.name.c_str(), program.graph.get()});
    return detail::make_all<Plan>({}, raw.size(), [&](auto* out, auto* error) {
      return cairn_plan_create_set(raw.data(), raw.size(), device.get(), &options, out, error);
    });
  }
  static Outcome<std::vector<Plan>> create_set(const std::vector<Program>& programs, const Device& device,
                                               const PlanOptions& options) {
    return options.with_raw(
        [&](const cairn_plan_options_t& raw) { return create_set(programs, device, raw); });
  }

  Outcome<cairn_plan_summary_t> summary() const {
    return detail::fill({}, cairn_plan_summary_t CAIRN_PLAN_SUMMARY_INIT,
                        [&](auto* out, auto* error) { return cairn_plan_summary(handle_, out, error); });
  }
  // One of plan_counters(). errors: NOT_FOUND (no such counter).
  Outcome<double> counter(Text name) const {
    return detail::fill({name}, 0.0, [&](auto* out, auto* error) {
      return cairn_plan_counter(handle_, name.c_str(), out, error);
    });
  }
  // Bytes of a tier by what they are for, at its peak; the text borrows from the plan.
  Outcome<cairn_plan_memory_t> memory(uint32_t tier = CAIRN_TIER_DEVICE) const {
    return detail::fill({}, cairn_plan_memory_t CAIRN_PLAN_MEMORY_INIT,
                        [&](auto* out, auto* error) { return cairn_plan_memory(handle_, tier, out, error); });
  }
  // What the predicted seconds rest on; texts borrow from the plan.
  Outcome<cairn_plan_rates_t> rates() const {
    return detail::fill({}, cairn_plan_rates_t CAIRN_PLAN_RATES_INIT,
                        [&](auto* out, auto* error) { return cairn_plan_rates(handle_, out, error); });
  }
  // The table of values, and the ops of the graph with their precision; texts borrow from the plan.
  Rows<cairn_plan_value_t, Plan> values() const {
    return {*this, CAIRN_PLAN_VALUE_INIT, [](const Plan& plan, size_t index, cairn_plan_value_t* out) {
              return cairn_plan_value(plan.get(), index, out, nullptr);
            }};
  }
  Rows<cairn_plan_op_t, Plan> ops() const {
    return {*this, CAIRN_PLAN_OP_INIT, [](const Plan& plan, size_t index, cairn_plan_op_t* out) {
              return cairn_plan_op(plan.get(), index, out, nullptr);
            }};
  }
  // kind: CAIRN_RENDER_*. title: the first line, and lines "word: text" below it. blocks: SWEEP and REPORT, for the time of
  // solving some 20 times.
  Outcome<std::string> render(uint32_t kind, Text title = "cairn plan") const {
    return detail::make_text({title}, [&](auto* out, auto* error) {
      return cairn_plan_render(handle_, kind, title.c_str(), out, error);
    });
  }
};

inline Outcome<uint64_t> Costs::measure_kernels(const Plan& plan, const Device& device) {
  return detail::fill({}, uint64_t{0}, [&](auto* out, auto* error) {
    return cairn_costs_measure_kernels(handle_, plan.get(), device.get(), out, error);
  });
}

}  // namespace CAIRN_HPP_NAMESPACE
}  // namespace cairn
#endif  // CAIRN_CPP_PLAN_HPP_
