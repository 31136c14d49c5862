/* Where memory does not suffice: micro-batches of half the size, and twice as many a step. The gradients of an effective
 * batch are the same, as they are sums over it. */
#include <string.h>

#include "model.h"

static cairn_instance_t* instance;
static cairn_device_t* device;

typedef struct {
  int64_t rows;         /* of a micro-batch */
  uint32_t micro_steps; /* rows * micro_steps == BATCH */
  cairn_graph_t* graph;
  cairn_plan_t* plan;
  cairn_session_t* session;
  cairn_stepper_t* stepper;
} training_t;

static void release(training_t* t) {
  cairn_stepper_release(t->stepper);
  cairn_session_release(t->session);
  cairn_plan_release(t->plan);
  cairn_graph_release(t->graph);
  t->stepper = NULL;
  t->session = NULL;
  t->plan = NULL;
  t->graph = NULL;
}

/* Plans the model and takes the memory. */
static cairn_status_t try_to_open(training_t* t, uint64_t budget) {
  t->graph = make_model_of(instance, t->rows, 1);
  cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
  options.budget_bytes = budget;
  options.micro_steps = t->micro_steps;
  cairn_status_t status = cairn_plan_create(t->graph, device, &options, &t->plan, error);
  if (status == CAIRN_STATUS_OK) status = cairn_session_create(t->plan, device, &t->session, error);
  if (status != CAIRN_STATUS_OK) return status;
  cairn_stepper_options_t stepper = CAIRN_STEPPER_OPTIONS_INIT;
  stepper.micro_steps = t->micro_steps;
  stepper.rate = 1e-2;
  return cairn_stepper_create(t->session, &stepper, &t->stepper, error);
}

/* The same with the largest micro-batch that there is memory for. */
static void open_training(training_t* t, uint64_t budget) {
  cairn_status_t status = try_to_open(t, budget);
  while ((status == CAIRN_STATUS_OVER_BUDGET || status == CAIRN_STATUS_OUT_OF_MEMORY) && t->rows % 2 == 0) {
    printf("%d rows do not fit: %s\n", (int)t->rows, cairn_error_message(error));
    release(t);
    t->rows /= 2;
    t->micro_steps *= 2;
    status = try_to_open(t, budget);
  }
  CHECK(status);
}

/* Goes on with smaller micro-batches between two effective batches; through a file, so that nothing is in memory twice. */
static void shrink(training_t* t, uint64_t budget, const char* folder) {
  char path[512];
  cairn_checkpoint_t* checkpoint = NULL;
  snprintf(path, sizeof path, "%s/shrinking", folder);
  CHECK(cairn_stepper_save(t->stepper, path, NULL, 0, NULL, 0, error));
  release(t);
  t->rows /= 2;
  t->micro_steps *= 2;
  open_training(t, budget);
  CHECK(cairn_checkpoint_open(instance, path, &checkpoint, error));
  CHECK(cairn_stepper_restore(t->stepper, checkpoint, error));
  cairn_checkpoint_release(checkpoint);
  CHECK(cairn_checkpoint_remove(instance, path, error));
  cairn_stepper_options_t options =
      CAIRN_STEPPER_OPTIONS_INIT; /* a checkpoint has those it was saved under */
  options.micro_steps = t->micro_steps;
  options.rate = 1e-2;
  CHECK(cairn_stepper_configure(t->stepper, &options, error));
}

/* One step over BATCH rows. */
static cairn_status_t step(training_t* t, unsigned index, cairn_step_report_t* report) {
  static float x[BATCH * IN], target[BATCH * OUT];
  make_batch(index, x, target);
  for (uint32_t part = 0; part < t->micro_steps; ++part) {
    const size_t in = (size_t)t->rows * IN, out = (size_t)t->rows * OUT;
    CHECK(cairn_session_write(t->session, "x", x + part * in, in * sizeof(float), error));
    CHECK(cairn_session_write(t->session, "target", target + part * out, out * sizeof(float), error));
    const cairn_status_t status = cairn_stepper_micro(t->stepper, report, error);
    if (status != CAIRN_STATUS_OK) return status;
  }
  return CAIRN_STATUS_OK;
}

int main(int argc, char** argv) {
  error = cairn_error_create();
  CHECK(cairn_instance_create(NULL, &instance, error));
  CHECK(cairn_device_open(instance, "cpu", NULL, &device, error));
  const uint64_t budget = 56 << 10;
  training_t t = {.rows = BATCH, .micro_steps = 1};
  open_training(&t, budget);
  EXPECT(t.rows < BATCH && t.rows * t.micro_steps == BATCH);
  CHECK(cairn_session_initialise(t.session, 1, error));

  cairn_step_report_t report = CAIRN_STEP_REPORT_INIT;
  double first = 0;
  for (unsigned i = 0; i < 20; ++i) {
    /* The system may refuse memory at any time: the effective batch is lost, all else is as before. */
    while (step(&t, i, &report) == CAIRN_STATUS_OUT_OF_MEMORY) shrink(&t, budget, argc > 1 ? argv[1] : ".");
    if (i == 0) first = report.step_loss;
    if (i == 9) shrink(&t, budget, argc > 1 ? argv[1] : "."); /* as if it had */
  }
  printf("%u micro-batches of %d rows: loss %.4f after %u steps\n", t.micro_steps, (int)t.rows,
         report.step_loss, (unsigned)report.step);
  EXPECT(report.step == 20 && report.step_loss < first);
  release(&t);
  cairn_device_release(device);
  cairn_instance_release(instance);
  cairn_error_release(error);
  return 0;
}
