// Chapter 5: session.
#include "capi/src/session.h"

#include "capi/src/graph.h"
#include "capi/src/instance.h"
#include "capi/src/plan.h"
#include "capi/src/structs.h"
#include "runtime/exec/adapter_start.h"
#include "runtime/exec/measure.h"

using namespace cairn::capi;
using cairn::Code;
using cairn::require;
namespace graph = cairn::graph;

namespace {

// A value that outlives a run, by the name it has in the joint graph.
int32_t persistent_value(const graph::JointGraph& joint, const char* name) {
  const int32_t value = joint.find(name);
  if (value < 0) {
    require(joint.forward->find(name) == graph::kNone, Code::kNotFound, "'", name,
            "' is not kept after a run; list it in the outputs when the graph is frozen");
    cairn::fail(Code::kNotFound, "there is no value named '", name, "'");
  }
  const int32_t storage = joint.storage(value);
  require(graph::kind(joint.values[storage].role).is(graph::PERSISTS), Code::kNotFound, "'", name,
          "' is not kept after a run; list it in the outputs when the graph is frozen");
  return value;
}

void check_size(const cairn::engine::Session& session, int32_t value, size_t size_bytes) {
  const cairn::TensorDesc desc = session.declared(value);
  require(size_bytes == static_cast<uint64_t>(desc.bytes()), Code::kInvalidArgument, "'",
          session.plan().joint->values[value].name, "' is ", to_string(desc), ", ", desc.bytes(), " bytes; ",
          size_bytes, " were given");
}

}  // namespace

cairn_status_t cairn_session_create(cairn_plan_t* plan, cairn_device_t* device, cairn_session_t** out_session,
                                    cairn_error_t* error) {
  return guard(error, [&] {
    not_null(plan, "plan");
    not_null(device, "device");
    not_null(out_session, "out_session");
    auto made = std::make_unique<cairn_session>();
    made->vocabularies = cairn::graph::vocabularies(*plan->compiled->joint->forward);
    made->session = std::make_shared<cairn::engine::Session>(plan->compiled, device->device);
    *out_session = made.release();
  });
}
cairn_status_t cairn_session_create_set(cairn_plan_t* const* plans, size_t count, cairn_device_t* device,
                                        cairn_session_t** out_sessions, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(plans, "plans");
    not_null(device, "device");
    not_null(out_sessions, "out_sessions");
    require(count > 0, Code::kInvalidArgument, "count is 0; a store needs a plan");
    std::vector<std::shared_ptr<const cairn::engine::CompiledPlan>> compiled;
    for (size_t i = 0; i < count; ++i) {
      not_null(plans[i], cairn::cat("plans[", i, "]"));
      compiled.push_back(plans[i]->compiled);
    }
    std::vector<std::unique_ptr<cairn_session>> made;
    for (size_t i = 0; i < count; ++i) {
      made.push_back(std::make_unique<cairn_session>());
      made[i]->vocabularies = cairn::graph::vocabularies(*compiled[i]->joint->forward);
    }
    const auto sessions = cairn::engine::Session::open(std::move(compiled), device->device);
    for (size_t i = 0; i < count; ++i) {
      made[i]->session = sessions[i];
      out_sessions[i] = made[i].release();
    }
  });
}
void cairn_session_retain(cairn_session_t* session) { retain(session); }
void cairn_session_release(cairn_session_t* session) { release(session); }

cairn_status_t cairn_session_initialise(cairn_session_t* session, uint64_t seed, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(session, "session");
    cairn::step::initialise(*session->session, seed);
  });
}

cairn_status_t cairn_session_write(cairn_session_t* session, const char* name, const void* data,
                                   size_t size_bytes, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(session, "session");
    not_null(name, "name");
    not_null(data, "data");
    cairn::engine::Session& s = *session->session;
    const graph::JointGraph& joint = *s.plan().joint;
    const int32_t value = joint.find(name);
    require(value >= 0 || joint.forward->find(name) != graph::kNone, Code::kNotFound,
            "there is no value named '", name, "'");
    const graph::Role role = value < 0 ? graph::Role::kActivation : joint.values[value].role;
    require(graph::kind(role).is(graph::WRITTEN), Code::kInvalidArgument, "'", name,
            "' is no input, parameter, statistic or cache; only these can be written");
    check_size(s, value, size_bytes);
    if (const auto rules = session->vocabularies.find(joint.values[value].source);
        role == graph::Role::kInput && rules != session->vocabularies.end())
      cairn::graph::check_vocabulary(joint.forward->values()[rules->first], rules->second, data);
    s.write_declared(value, data);
    if (role == graph::Role::kParameter) {
      cairn::engine::AdapterStarts::written(s, value);
      s.parameters_changed();
    }
  });
}

cairn_status_t cairn_session_read(cairn_session_t* session, const char* name, void* data, size_t size_bytes,
                                  cairn_error_t* error) {
  return guard(error, [&] {
    not_null(session, "session");
    not_null(name, "name");
    not_null(data, "data");
    cairn::engine::Session& s = *session->session;
    const int32_t value = persistent_value(*s.plan().joint, name);
    check_size(s, value, size_bytes);
    s.read_declared(value, data);
  });
}

cairn_status_t cairn_session_value_info(const cairn_session_t* session, const char* name,
                                        cairn_value_info_t* out_info, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(session, "session");
    not_null(name, "name");
    const OutStruct out(out_info, "out_info");
    const graph::JointGraph& joint = *session->session->plan().joint;
    const int32_t value = persistent_value(joint, name);
    const graph::JointValue& found = joint.values[static_cast<size_t>(value)];
    cairn_value_info_t info = CAIRN_VALUE_INFO_INIT;
    info.name = found.name.c_str();
    describe(session->session->declared(value), &info);
    const bool declared = graph::kind(found.role).is(graph::WRITTEN);
    info.kind = static_cast<uint32_t>(declared ? joint.forward->values()[found.source].kind
                                               : graph::ValueKind::kActivation);
    info.region = static_cast<cairn_region_t>(found.region + 1);
    info.frozen = session->session->is_frozen(value);
    out.write(info);
  });
}

cairn_status_t cairn_session_run(cairn_session_t* session, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(session, "session");
    cairn::engine::Session& s = *session->session;
    require(
        !s.plan().joint->has_optimizer(), Code::kWrongState,
        "the plan trains with an optimizer: a stepper runs it. To evaluate, plan with no_optimizer, or give "
        "the store a program whose graph has outputs and no loss");
    require(!s.plan().joint->in_parts(), Code::kWrongState,
            "the graph has values of the effective batch: a stepper runs it, every micro-batch twice; plan "
            "with an "
            "optimizer");
    s.run({.seed = 0, .step = session->runs, .micro = 0});
    ++session->runs;
  });
}

void cairn_session_cancel(cairn_session_t* session) {
  if (session != nullptr) session->session->cancel();
}

static_assert(CAIRN_LANE_HOST == static_cast<int>(cairn::device::Lane::kHost));
static_assert(CAIRN_LANE_HOST_IN == static_cast<int>(cairn::device::Lane::kHostIn));
static_assert(CAIRN_LANE_HOST_OUT == static_cast<int>(cairn::device::Lane::kHostOut));

cairn_status_t cairn_session_trace(cairn_session_t* session, uint32_t on, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(session, "session");
    flag(on, "on");
    session->session->trace(on != 0);
  });
}

cairn_status_t cairn_session_span(const cairn_session_t* session, size_t index, cairn_span_t* out_span,
                                  cairn_error_t* error) {
  return guard(error, [&] {
    not_null(session, "session");
    const OutStruct out(out_span, "out_span");
    const auto& spans = session->session->spans();
    require(index < spans.size(), Code::kNotFound, "there is no span ", index, "; the last traced run has ",
            spans.size());
    const cairn::engine::CompiledPlan& plan = session->session->plan();
    const cairn::engine::Span& found = spans[index];
    cairn_span_t span = CAIRN_SPAN_INIT;
    span.name = cairn::engine::span_name(plan, found).c_str();
    span.begin_seconds = found.begin;
    span.end_seconds = found.end;
    span.live_bytes = static_cast<uint64_t>(found.live_bytes);
    span.lane = static_cast<uint32_t>(found.lane);
    span.tier = static_cast<uint32_t>(cairn::engine::span_tier(plan, found));
    out.write(span);
  });
}

cairn_status_t cairn_session_usage(const cairn_session_t* session, uint32_t tier,
                                   cairn_tier_usage_t* out_usage, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(session, "session");
    const OutStruct out(out_usage, "out_usage");
    in_enum(tier, CAIRN_TIER_DISK, "tier");
    const cairn::device::TierCount count = session->session->count(static_cast<cairn::Tier>(tier));
    cairn_tier_usage_t usage = CAIRN_TIER_USAGE_INIT;
    usage.reserved_bytes = static_cast<uint64_t>(count.reserved_bytes);
    usage.peak_bytes = static_cast<uint64_t>(count.peak_height_bytes);
    usage.live_peak_bytes = static_cast<uint64_t>(count.peak_live_bytes);
    usage.pinned_bytes = static_cast<uint64_t>(count.pinned_bytes);
    usage.staging_bytes = static_cast<uint64_t>(count.staging_bytes);
    if (tier == CAIRN_TIER_DEVICE) {
      usage.driver_before_bytes = static_cast<uint64_t>(session->session->taken_before());
      usage.driver_bytes = static_cast<uint64_t>(session->session->device().taken_bytes());
    }
    out.write(usage);
  });
}

cairn_status_t cairn_session_digest(cairn_session_t* session, char out_hex[33], cairn_error_t* error) {
  return guard(error, [&] {
    not_null(session, "session");
    not_null(out_hex, "out_hex");
    const std::string hex = cairn::step::parameter_digest(*session->session);
    require(hex.size() == 32, Code::kInternal, "a digest of ", hex.size(), " digits");
    std::memcpy(out_hex, hex.c_str(), 33);
  });
}

cairn_status_t cairn_session_base_digest(cairn_session_t* session, char out_hex[33], cairn_error_t* error) {
  return guard(error, [&] {
    not_null(session, "session");
    not_null(out_hex, "out_hex");
    std::memcpy(out_hex, session->session->base_digest().hex().c_str(), 33);
  });
}
