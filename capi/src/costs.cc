// Chapter 4: costs, which plans are made with.
#include "capi/src/costs.h"

#include <cstdlib>

#include "capi/src/instance.h"
#include "capi/src/plan.h"
#include "capi/src/session.h"
#include "capi/src/structs.h"
#include "capi/src/text.h"
#include "runtime/costs/probe/link_probe.h"
#include "runtime/costs/rate_source.h"
#include "runtime/exec/kernel_choices.h"
#include "runtime/exec/measure.h"
#include "runtime/exec/rate_probe.h"

using namespace cairn::capi;
using cairn::Code;
using cairn::require;
namespace costs = cairn::costs;

std::shared_ptr<const costs::Table> cairn_costs::whole() const {
  auto copy = std::make_shared<costs::Table>(table);
  if (copy->profile) recorder.merge_into(*copy->profile);
  return copy;
}

namespace cairn::capi {

std::string wanted_rates(const char* option) {
  if (option == nullptr || *option == '\0') option = std::getenv("CAIRN_RATES");
  return std::string(option == nullptr || *option == '\0' ? costs::kRatesCache : std::string_view(option));
}

std::shared_ptr<const costs::Table> rates_of(const cairn_device& device) {
  const device::DeviceInfo& info = device.device->info();
  if (info.name != "cpu" && info.host_reaches) return nullptr;  // the reference: nothing of it is measured
  costs::RateRequest request;
  request.machine = costs::machine_of(info);
  request.how = device.rates;
  request.machine.cairn = cairn_version();
  request.measure = [&] { return engine::measure_rates(info); };
  return costs::find_rates(request);
}

}  // namespace cairn::capi

namespace {

cairn_plan_rates_t rates_row(const cairn_plan& plan) {
  cairn_plan_rates_t row = CAIRN_PLAN_RATES_INIT;
  const std::shared_ptr<const costs::Table>& table = plan.compiled->costs;
  row.source = table == nullptr ? costs::kRatesModel.data()
               : table->profile ? "profile"
               : table->model   ? "device-model"
                                : table->origin.source.c_str();
  row.path = row.notice = "";
  if (table != nullptr) {
    row.path = table->origin.path.c_str();
    row.notice = table->origin.notice.c_str();
    if (table->rates) row.measuring_seconds = table->rates->measuring_seconds;
  }
  row.f32_flops_per_second = plan.sustained.f32_flops_per_second;
  row.bf16_flops_per_second = plan.sustained.bf16_flops_per_second;
  row.memory_bytes_per_second = plan.sustained.memory_bytes_per_second;
  return row;
}

costs::Profile& profile_of(cairn_costs& handle) {
  require(handle.table.profile.has_value(), Code::kWrongState,
          "these costs are a device model; only a profile is measured");
  return *handle.table.profile;
}

void check_machine(const costs::Profile& profile, const cairn::device::Device& device) {
  const std::string differs = costs::difference(profile.machine, costs::machine_of(device.info()));
  require(differs.empty(), Code::kInvalidArgument, "the profile was measured on another machine: ", differs);
}

}  // namespace

cairn_status_t cairn_costs_create(cairn_device_t* device, cairn_costs_t** out_costs, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(device, "device");
    not_null(out_costs, "out_costs");
    auto made = std::make_unique<cairn_costs>();
    made->table.profile.emplace();
    made->table.profile->machine = costs::machine_of(device->device->info());
    made->table.profile->machine.cairn = cairn_version();
    *out_costs = made.release();
  });
}

cairn_status_t cairn_costs_read(cairn_instance_t* instance, const char* json, size_t size,
                                cairn_costs_t** out_costs, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(instance, "instance");
    array_not_null(json, size, "json");
    not_null(out_costs, "out_costs");
    auto made = std::make_unique<cairn_costs>();
    made->table = costs::from_json({json, size});
    *out_costs = made.release();
  });
}
void cairn_costs_retain(cairn_costs_t* costs) { retain(costs); }
void cairn_costs_release(cairn_costs_t* costs) { release(costs); }

cairn_status_t cairn_costs_measure_link(cairn_costs_t* costs, cairn_device_t* device, uint32_t tier,
                                        cairn_error_t* error) {
  return guard(error, [&] {
    not_null(costs, "costs");
    not_null(device, "device");
    in_enum(tier, CAIRN_TIER_DISK, "tier");
    costs::Profile& profile = profile_of(*costs);
    check_machine(profile, *device->device);
    profile.set_link(costs::measure_link(*device->device, static_cast<cairn::Tier>(tier)));
  });
}

cairn_status_t cairn_costs_measure_kernels(cairn_costs_t* costs, const cairn_plan_t* plan,
                                           cairn_device_t* device, uint64_t* out_count,
                                           cairn_error_t* error) {
  return guard(error, [&] {
    not_null(costs, "costs");
    not_null(plan, "plan");
    not_null(device, "device");
    costs::Profile& profile = profile_of(*costs);
    check_machine(profile, *device->device);
    const std::string &planned = plan->compiled->device, &here = device->device->info().name;
    require(planned == here, Code::kInvalidArgument, "the plan is for '", planned, "', not for '", here,
            "': make one for the device that is to be measured");
    const int64_t count = cairn::engine::measure_kernels(profile, *plan->compiled, *device->device);
    if (out_count != nullptr) *out_count = static_cast<uint64_t>(count);
  });
}

cairn_status_t cairn_costs_json(const cairn_costs_t* costs, cairn_text_t** out_json, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(costs, "costs");
    not_null(out_json, "out_json");
    const auto whole = costs->whole();
    require(whole->profile.has_value(), Code::kWrongState, "these costs are a device model, not a profile");
    *out_json = std::make_unique<cairn_text>(costs::to_json(*whole->profile)).release();
  });
}

cairn_status_t cairn_costs_add_run(cairn_costs_t* costs, const cairn_session_t* session, double step_seconds,
                                   double optimizer_seconds, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(costs, "costs");
    not_null(session, "session");
    not_negative(step_seconds, "step_seconds");
    not_negative(optimizer_seconds, "optimizer_seconds");
    check_machine(profile_of(*costs), session->session->device());
    cairn::engine::record_run(costs->recorder, *session->session, {step_seconds, optimizer_seconds});
  });
}

cairn_status_t cairn_plan_rates(const cairn_plan_t* plan, cairn_plan_rates_t* out_rates,
                                cairn_error_t* error) {
  return guard(error, [&] {
    not_null(plan, "plan");
    const OutStruct out(out_rates, "out_rates");
    out.write(rates_row(*plan));
  });
}
