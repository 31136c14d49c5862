// Chapter 6: stepper.
#include <cmath>

#include "capi/src/optimizers.h"
#include "capi/src/schedules.h"
#include "capi/src/session.h"
#include "capi/src/structs.h"

using namespace cairn::capi;
using cairn::Code;
using cairn::require;
namespace step = cairn::step;

static_assert(CAIRN_STEP_SKIPPED_NONFINITE == static_cast<int>(step::Outcome::kSkippedNonFinite));
static_assert(CAIRN_STEP_SKIPPED_EMPTY == static_cast<int>(step::Outcome::kSkippedEmpty));
static_assert(CAIRN_STEP_GATHERED == static_cast<int>(step::Outcome::kGathered));

namespace {

// Numbers left at 0 are the defaults.
step::LossScaleOptions read_loss_scale(const cairn_stepper_options_t& o) {
  step::LossScaleOptions options;
  options.initial = o.loss_scale;
  if (o.loss_scale_growth != 0) options.growth = o.loss_scale_growth;
  if (o.loss_scale_backoff != 0) options.backoff = o.loss_scale_backoff;
  if (o.loss_scale_interval != 0) options.interval = o.loss_scale_interval;
  return options;
}

step::Options read_options(const cairn_stepper_options_t* given, const cairn::graph::JointGraph& joint) {
  const cairn_stepper_options_t o = read_struct(given, CAIRN_STEPPER_OPTIONS_INIT, "options");
  step::Schedule schedule = read_schedule(o);
  not_negative(o.clip_norm, "options.clip_norm");
  std::vector<cairn::graph::HyperSetting> hypers = adamw_fields(o, joint);
  for (cairn::graph::HyperSetting& setting : read_hypers(o.hypers, o.hyper_count, "options.hypers"))
    hypers.push_back(std::move(setting));
  return {.micro_steps = o.micro_steps == 0 ? 1 : o.micro_steps,
          .seed = o.seed,
          .schedule = std::move(schedule),
          .clip_norm = o.clip_norm,
          .loss_scale = read_loss_scale(o),
          .hypers = std::move(hypers)};
}

cairn_step_report_t report_of(const step::Report& r) {
  cairn_step_report_t report = CAIRN_STEP_REPORT_INIT;
  report.step = r.step;
  report.skipped_steps = r.skipped_steps;
  report.loss = r.loss;
  report.weight = r.weight;
  report.step_loss = r.step_loss;
  report.step_weight = r.step_weight;
  report.gradient_norm = r.gradient_norm;
  report.rate = r.rate;
  report.loss_scale = r.loss_scale;
  report.seconds = r.seconds;
  report.stall_seconds = r.stall_seconds;
  report.optimizer_seconds = r.optimizer_seconds;
  report.outcome = static_cast<uint32_t>(r.outcome);
  report.micro = r.micro;
  for (size_t tier = 0; tier < r.out.size(); ++tier) {
    report.copied_out_bytes[tier] = static_cast<uint64_t>(r.out[tier].bytes);
    report.copied_in_bytes[tier] = static_cast<uint64_t>(r.in[tier].bytes);
    report.copying_out_seconds[tier] = r.out[tier].busy_seconds;
    report.copying_in_seconds[tier] = r.in[tier].busy_seconds;
  }
  report.fell_back = r.fell_back ? 1 : 0;
  report.submit_seconds = r.submit_seconds;
  return report;
}

// Runs `work` and fills the report, whose struct is checked before anything runs.
template <class Work>
cairn_status_t reported(cairn_step_report_t* out_report, cairn_error_t* error, Work&& work) {
  return guard(error, [&] {
    if (out_report == nullptr) {
      work();
      return;
    }
    const OutStruct out(out_report, "out_report");
    out.write(report_of(work()));
  });
}

}  // namespace

cairn_status_t cairn_stepper_create(cairn_session_t* session, const cairn_stepper_options_t* options,
                                    cairn_stepper_t** out_stepper, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(session, "session");
    not_null(out_stepper, "out_stepper");
    const cairn::graph::JointGraph& joint = *session->session->plan().joint;
    require(joint.loss >= 0, Code::kWrongState, "the graph has no loss; a stepper needs one that trains");
    require(joint.has_optimizer(), Code::kWrongState,
            "the plan has no optimizer; a stepper needs one made without no_optimizer");
    auto made = std::make_unique<cairn_stepper>();
    made->stepper = std::make_unique<step::Stepper>(session->session, read_options(options, joint));
    *out_stepper = made.release();
  });
}
void cairn_stepper_retain(cairn_stepper_t* stepper) { retain(stepper); }
void cairn_stepper_release(cairn_stepper_t* stepper) { release(stepper); }

cairn_status_t cairn_stepper_micro(cairn_stepper_t* stepper, cairn_step_report_t* out_report,
                                   cairn_error_t* error) {
  return reported(out_report, error, [&] {
    not_null(stepper, "stepper");
    return stepper->stepper->micro();
  });
}

cairn_status_t cairn_stepper_micro_on(cairn_stepper_t* stepper, cairn_session_t* session,
                                      cairn_step_report_t* out_report, cairn_error_t* error) {
  return reported(out_report, error, [&] {
    not_null(stepper, "stepper");
    not_null(session, "session");
    return stepper->stepper->micro(*session->session);
  });
}

cairn_status_t cairn_stepper_apply(cairn_stepper_t* stepper, cairn_step_report_t* out_report,
                                   cairn_error_t* error) {
  return reported(out_report, error, [&] {
    not_null(stepper, "stepper");
    return stepper->stepper->apply();
  });
}

cairn_status_t cairn_stepper_discard(cairn_stepper_t* stepper, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(stepper, "stepper");
    stepper->stepper->discard();
  });
}

cairn_status_t cairn_stepper_configure(cairn_stepper_t* stepper, const cairn_stepper_options_t* options,
                                       cairn_error_t* error) {
  return guard(error, [&] {
    not_null(stepper, "stepper");
    not_null(options, "options");
    step::Stepper& s = *stepper->stepper;
    s.configure(read_options(options, *s.session().plan().joint));
  });
}

cairn_status_t cairn_stepper_set(cairn_stepper_t* stepper, const char* group, const char* name, double value,
                                 cairn_error_t* error) {
  return guard(error, [&] {
    not_null(stepper, "stepper");
    const cairn_hyper_t hyper{group, name, value};
    stepper->stepper->set(read_hypers(&hyper, 1, "hyper")[0]);
  });
}

cairn_status_t cairn_stepper_get(const cairn_stepper_t* stepper, const char* group, const char* name,
                                 double* out_value, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(stepper, "stepper");
    not_null(name, "name");
    not_null(out_value, "out_value");
    const cairn::graph::ParameterGroup& found =
        cairn::graph::group_of_pattern(stepper->stepper->groups(), group == nullptr ? "" : group);
    *out_value = found.hyper(name);
  });
}

cairn_status_t cairn_stepper_report(const cairn_stepper_t* stepper, cairn_step_report_t* out_report,
                                    cairn_error_t* error) {
  return guard(error, [&] {
    not_null(stepper, "stepper");
    const OutStruct out(out_report, "out_report");
    const step::State state = stepper->stepper->state();
    cairn_step_report_t report = CAIRN_STEP_REPORT_INIT;
    report.step = state.step;
    report.micro = state.micro;
    report.skipped_steps = state.skipped;
    report.step_weight = state.weight_sum;
    report.step_loss = state.weight_sum > 0 ? state.loss_sum / state.weight_sum : 0;
    out.write(report);
  });
}
