/* Chapter 6: effective batches of three micro-batches, a schedule, the remainder of an epoch. */
#include "model.h"

int main(void) {
  error = cairn_error_create();
  cairn_instance_t* instance = NULL;
  cairn_device_t* device = NULL;
  cairn_plan_t* plan = NULL;
  cairn_session_t* session = NULL;
  cairn_stepper_t* stepper = NULL;
  CHECK(cairn_instance_create(NULL, &instance, error));
  CHECK(cairn_device_open(instance, "cpu", NULL, &device, error));
  cairn_graph_t* graph = make_model(instance, 1);
  CHECK(cairn_plan_create(graph, device, NULL, &plan, error));
  CHECK(cairn_session_create(plan, device, &session, error));
  CHECK(cairn_session_initialise(session, 1, error));

  cairn_stepper_options_t options = CAIRN_STEPPER_OPTIONS_INIT;
  options.micro_steps = 3;
  options.rate = 1e-2;
  options.schedule = CAIRN_SCHEDULE_COSINE;
  options.warmup_steps = 2;
  options.total_steps = 10;
  CHECK(cairn_stepper_create(session, &options, &stepper, error));

  /* An epoch of eight micro-batches: two complete effective batches, and one of the two that are left. */
  static float x[BATCH * IN], target[BATCH * OUT];
  cairn_step_report_t report = CAIRN_STEP_REPORT_INIT;
  for (unsigned i = 0; i < 8; ++i) {
    make_batch(i, x, target);
    CHECK(cairn_session_write(session, "x", x, sizeof x, error));
    CHECK(cairn_session_write(session, "target", target, sizeof target, error));
    CHECK(cairn_stepper_micro(stepper, &report, error));
    printf("micro-batch %u: loss %.4f %s\n", i, report.loss,
           report.outcome == CAIRN_STEP_APPLIED ? "applied" : "");
    EXPECT(report.outcome == (i % 3 == 2 ? CAIRN_STEP_APPLIED : CAIRN_STEP_ACCUMULATED));
  }
  CHECK(cairn_stepper_apply(stepper, &report, error));
  printf("the remainder of %u: loss %.4f, rate %g\n", 2u, report.step_loss, report.rate);
  EXPECT(report.outcome == CAIRN_STEP_APPLIED && report.step == 3);

  /* Nothing is accumulated now. */
  EXPECT(cairn_stepper_apply(stepper, &report, error) == CAIRN_STATUS_WRONG_STATE);
  printf("as it should: %s\n", cairn_error_message(error));

  cairn_stepper_release(stepper);
  cairn_session_release(session);
  cairn_plan_release(plan);
  cairn_graph_release(graph);
  cairn_device_release(device);
  cairn_instance_release(instance);
  cairn_error_release(error);
  return 0;
}
