/* Chapters 5 and 6: a metric with weights of its own, over effective batches of three micro-batches, and over
 * data that a second program on the same store evaluates with. */
#include <math.h>
#include <string.h>

#include "model.h"

static cairn_value_t op1(cairn_graph_t* graph, const char* name, cairn_value_t a, cairn_value_t b,
                         const cairn_attr_t* attrs, size_t count) {
  cairn_value_t y;
  CHECK(cairn_graph_op(graph, name, (cairn_value_t[]){a, b}, b ? 2 : 1, attrs, count, &y, 1, error));
  return y;
}

/* The model, and two scalars: the squared error of the first column, by row times `mask`, and the sum of
 * `mask`. */
static cairn_graph_t* measured_model(cairn_instance_t* instance, int trains) {
  const int64_t x_shape[] = {BATCH, IN}, y_shape[] = {BATCH, OUT}, mask_shape[] = {BATCH, 1};
  cairn_graph_t* graph = NULL;
  CHECK(cairn_graph_create(instance, &graph, error));
  cairn_value_t x, target, mask, loss = 0;
  CHECK(cairn_graph_input(graph, &(cairn_tensor_desc_t){"x", x_shape, 2, CAIRN_F32}, &x, error));
  CHECK(cairn_graph_input(graph, &(cairn_tensor_desc_t){"target", y_shape, 2, CAIRN_F32}, &target, error));
  CHECK(cairn_graph_input(graph, &(cairn_tensor_desc_t){"mask", mask_shape, 2, CAIRN_F32}, &mask, error));
  for (int i = 0; i < LAYERS; ++i) {
    char name[16];
    snprintf(name, sizeof name, "layer%d", i);
    x = add_layer(graph, name, x, i == 0 ? IN : WIDTH, i == LAYERS - 1 ? OUT : WIDTH);
  }
  const cairn_attr_t minus = {.name = "factor", .real = -1, .kind = CAIRN_ATTR_REAL};
  const cairn_attr_t first[] = {{.name = "axis", .integer = 1, .kind = CAIRN_ATTR_INTEGER},
                                {.name = "begin", .integer = 0, .kind = CAIRN_ATTR_INTEGER},
                                {.name = "end", .integer = 1, .kind = CAIRN_ATTR_INTEGER}};
  cairn_value_t apart = op1(graph, "add", x, op1(graph, "scale", target, 0, &minus, 1), NULL, 0);
  apart = op1(graph, "slice", apart, 0, first, 3);
  cairn_value_t squares = op1(graph, "mul", op1(graph, "mul", apart, apart, NULL, 0), mask, NULL, 0);
  cairn_value_t outputs[] = {op1(graph, "reduce_sum", squares, 0, NULL, 0),
                             op1(graph, "reduce_sum", mask, 0, NULL, 0)};
  CHECK(cairn_graph_name(graph, outputs[0], "error/sum", error));
  CHECK(cairn_graph_name(graph, outputs[1], "error/weight", error));
  if (trains) loss = op1(graph, "mse", x, target, NULL, 0);
  cairn_freeze_options_t freeze = CAIRN_FREEZE_OPTIONS_INIT;
  freeze.loss = loss;
  freeze.outputs = outputs;
  freeze.output_count = 2;
  CHECK(cairn_graph_freeze(graph, &freeze, error));
  return graph;
}

/* Writes micro-batch `index`, of which only the first `rows` rows count for the metric. */
static void feed(cairn_session_t* session, unsigned index, int rows) {
  static float x[BATCH * IN], target[BATCH * OUT], mask[BATCH];
  make_batch(index, x, target);
  for (int i = 0; i < BATCH; ++i) mask[i] = i < rows ? 1.0f : 0.0f;
  CHECK(cairn_session_write(session, "x", x, sizeof x, error));
  CHECK(cairn_session_write(session, "target", target, sizeof target, error));
  CHECK(cairn_session_write(session, "mask", mask, sizeof mask, error));
}

/* Sums of the metric over what has run since they were 0. */
typedef struct {
  double sum, weight;
} metric_t;

static void add_micro(metric_t* metric, cairn_session_t* session) {
  float sum, weight;
  CHECK(cairn_session_read(session, "error/sum", &sum, sizeof sum, error));
  CHECK(cairn_session_read(session, "error/weight", &weight, sizeof weight, error));
  metric->sum += sum;
  metric->weight += weight;
}

int main(void) {
  error = cairn_error_create();
  cairn_instance_t* instance = NULL;
  cairn_device_t* device = NULL;
  CHECK(cairn_instance_create(NULL, &instance, error));
  CHECK(cairn_device_open(instance, "cpu", NULL, &device, error));
  cairn_graph_t* graphs[] = {measured_model(instance, 1), measured_model(instance, 0)};
  const cairn_program_t programs[] = {{"training", graphs[0]}, {"evaluation", graphs[1]}};
  cairn_plan_t* plans[2];
  cairn_session_t* sessions[2];
  CHECK(cairn_plan_create_set(programs, 2, device, NULL, plans, error));
  CHECK(cairn_session_create_set(plans, 2, device, sessions, error));
  CHECK(cairn_session_initialise(sessions[0], 1, error));

  cairn_stepper_t* stepper = NULL;
  cairn_stepper_options_t options = CAIRN_STEPPER_OPTIONS_INIT;
  options.micro_steps = 3;
  options.rate = 1e-2;
  CHECK(cairn_stepper_create(sessions[0], &options, &stepper, error));
  cairn_step_report_t report = CAIRN_STEP_REPORT_INIT;
  metric_t training = {0, 0};
  double first = 0, last = 0;
  for (unsigned i = 0; i < 60; ++i) {
    feed(sessions[0], i, 16 + 16 * (int)(i % 3)); /* uneven: 16, 32 and 48 rows */
    CHECK(cairn_stepper_micro(stepper, &report, error));
    add_micro(&training, sessions[0]);
    if (report.outcome == CAIRN_STEP_ACCUMULATED) continue;
    EXPECT(training.weight == 96); /* the mean over the effective batch, not a mean of three means */
    last = training.sum / training.weight;
    if (report.step == 1) first = last;
    training = (metric_t){0, 0};

    if (report.step % 10 != 0) continue;
    char before[33], after[33];
    metric_t evaluation = {0, 0};
    CHECK(cairn_session_digest(sessions[0], before, error));
    for (unsigned j = 0; j < 4; ++j) {
      feed(sessions[1], 1000 + j, j == 3 ? 10 : BATCH); /* the last is not full */
      CHECK(cairn_session_run(sessions[1], error));
      add_micro(&evaluation, sessions[1]);
    }
    CHECK(cairn_session_digest(sessions[0], after, error));
    EXPECT(evaluation.weight == 3 * BATCH + 10);
    EXPECT(strcmp(before, after) == 0); /* evaluation changes nothing */
    printf("step %2llu: loss %.4f, error %.4f, evaluated %.4f\n", (unsigned long long)report.step,
           report.step_loss, last, evaluation.sum / evaluation.weight);
    EXPECT(isfinite(evaluation.sum));
  }
  EXPECT(last < 0.5 * first);

  cairn_stepper_release(stepper);
  for (int i = 0; i < 2; ++i) {
    cairn_session_release(sessions[i]);
    cairn_plan_release(plans[i]);
    cairn_graph_release(graphs[i]);
  }
  cairn_device_release(device);
  cairn_instance_release(instance);
  cairn_error_release(error);
  return 0;
}
