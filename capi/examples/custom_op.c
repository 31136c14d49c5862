/* Chapter 3: an op of the host's own with a gradient. A network learns through it, and its plan may make it again. */
#include <math.h>

#include "example.h"

enum { ROWS = 64, WIDTH = 16 };

/* softsign: y = x / (1 + |x|), of any shape. */
static int32_t same_shape(void* user, const cairn_tensor_t* in, cairn_tensor_t* out) {
  (void)user;
  out[0] = in[0];
  return 0;
}

static int64_t elements(const cairn_tensor_t* tensor) {
  int64_t count = 1;
  for (uint32_t i = 0; i < tensor->rank; ++i) count *= tensor->dims[i];
  return count;
}

static int32_t forward(void* user, const cairn_tensor_t* in, const cairn_tensor_t* out, void* workspace) {
  (void)user, (void)workspace;
  const float* x = in[0].data;
  float* y = out[0].data;
  for (int64_t i = 0; i < elements(&in[0]); ++i) y[i] = x[i] / (1 + fabsf(x[i]));
  return 0; /* anything else fails the run */
}

/* in: the inputs, the outputs, the gradients of the outputs. out: the gradients of the inputs. */
static int32_t backward(void* user, const cairn_tensor_t* in, const cairn_tensor_t* out, void* workspace) {
  (void)user, (void)workspace;
  const float *x = in[0].data, *dy = in[2].data;
  float* dx = out[0].data;
  if (dx == NULL) return 0; /* not wanted */
  for (int64_t i = 0; i < elements(&in[0]); ++i) {
    const float slope = 1 / (1 + fabsf(x[i]));
    dx[i] = dy != NULL ? dy[i] * slope * slope : 0; /* no gradient: zero */
  }
  return 0;
}

static void register_softsign(cairn_graph_t* graph) {
  cairn_custom_op_t op = CAIRN_CUSTOM_OP_INIT;
  op.name = "softsign";
  op.inputs = op.outputs = 1;
  op.recomputable = 1; /* the same bits each time, and no side effect */
  op.shape = same_shape;
  op.forward = forward;
  op.backward = backward;
  CHECK(cairn_graph_custom_op(graph, &op, error));
}

static cairn_value_t linear(cairn_graph_t* graph, const char* name, cairn_value_t x, int64_t out,
                            int64_t in) {
  cairn_parameter_options_t options = CAIRN_PARAMETER_OPTIONS_INIT;
  options.init = CAIRN_INIT_NORMAL;
  options.init_scale = 0.5;
  cairn_value_t operands[2] = {x, 0}, y;
  CHECK(cairn_graph_parameter(graph, &(cairn_tensor_desc_t){name, (int64_t[]){out, in}, 2, CAIRN_F32},
                              &options, &operands[1], error));
  CHECK(cairn_graph_op(graph, "linear", operands, 2, NULL, 0, &y, 1, error));
  return y;
}

int main(void) {
  error = cairn_error_create();
  cairn_instance_t* instance = NULL;
  cairn_device_t* device = NULL;
  cairn_graph_t* graph = NULL;
  CHECK(cairn_instance_create(NULL, &instance, error));
  CHECK(cairn_device_open(instance, "cpu", NULL, &device, error));
  CHECK(cairn_graph_create(instance, &graph, error));
  register_softsign(graph);

  cairn_value_t x, target, h;
  CHECK(cairn_graph_input(graph, &(cairn_tensor_desc_t){"x", (int64_t[]){ROWS, 1}, 2, CAIRN_F32}, &x, error));
  CHECK(cairn_graph_input(graph, &(cairn_tensor_desc_t){"target", (int64_t[]){ROWS, 1}, 2, CAIRN_F32},
                          &target, error));
  h = linear(graph, "first", x, WIDTH, 1);
  CHECK(cairn_graph_op(graph, "softsign", &h, 1, NULL, 0, &h, 1, error));
  h = linear(graph, "second", h, WIDTH, WIDTH);
  CHECK(cairn_graph_op(graph, "softsign", &h, 1, NULL, 0, &h, 1, error));
  const cairn_value_t ends[] = {linear(graph, "third", h, 1, WIDTH), target};
  cairn_freeze_options_t freeze = CAIRN_FREEZE_OPTIONS_INIT;
  CHECK(cairn_graph_op(graph, "mse", ends, 2, NULL, 0, &freeze.loss, 1, error));
  CHECK(cairn_graph_freeze(graph, &freeze, error));

  float in[ROWS], out[ROWS];
  for (int i = 0; i < ROWS; ++i) {
    in[i] = 6.0f * (float)i / ROWS - 3;
    out[i] = sinf(in[i]);
  }
  /* Everything kept, and everything recomputed: the same bits, if the op keeps its word. */
  const uint32_t policies[] = {CAIRN_REGION_KEEP, CAIRN_REGION_RECOMPUTE};
  char digests[2][33];
  for (int k = 0; k < 2; ++k) {
    cairn_plan_options_t plan_options = CAIRN_PLAN_OPTIONS_INIT;
    plan_options.policy = policies[k];
    cairn_stepper_options_t options = CAIRN_STEPPER_OPTIONS_INIT;
    options.rate = 0.02;
    cairn_plan_t* plan = NULL;
    cairn_session_t* session = NULL;
    cairn_stepper_t* stepper = NULL;
    CHECK(cairn_plan_create(graph, device, &plan_options, &plan, error));
    CHECK(cairn_session_create(plan, device, &session, error));
    CHECK(cairn_session_initialise(session, 1, error));
    CHECK(cairn_stepper_create(session, &options, &stepper, error));
    CHECK(cairn_session_write(session, "x", in, sizeof in, error));
    CHECK(cairn_session_write(session, "target", out, sizeof out, error));
    cairn_step_report_t report = CAIRN_STEP_REPORT_INIT;
    CHECK(cairn_stepper_micro(stepper, &report, error));
    const double first = report.loss;
    for (int step = 1; step < 300; ++step) CHECK(cairn_stepper_micro(stepper, &report, error));
    CHECK(cairn_session_digest(session, digests[k], error));
    printf("loss %.4f -> %.4f, parameters %s\n", first, report.loss, digests[k]);
    EXPECT(report.loss < 0.1 * first);
    cairn_stepper_release(stepper);
    cairn_session_release(session);
    cairn_plan_release(plan);
  }
  for (int i = 0; i < 33; ++i) EXPECT(digests[0][i] == digests[1][i]);

  cairn_graph_release(graph);
  cairn_device_release(device);
  cairn_instance_release(instance);
  cairn_error_release(error);
  return 0;
}
