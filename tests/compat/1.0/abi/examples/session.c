/* Chapter 5: a graph that only predicts, with an op of the host's own. */
#include <math.h>

#include "example.h"

enum { COUNT = 6 };

static int32_t same_shape(void* user, const cairn_tensor_t* in, cairn_tensor_t* out) {
  (void)user;
  out[0] = in[0];
  return 0;
}
static int32_t sine(void* user, const cairn_tensor_t* in, const cairn_tensor_t* out, void* workspace) {
  (void)user, (void)workspace;
  for (int64_t i = 0; i < in[0].dims[0]; ++i) ((float*)out[0].data)[i] = sinf(((const float*)in[0].data)[i]);
  return 0;
}

int main(void) {
  error = cairn_error_create();
  cairn_instance_t* instance = NULL;
  cairn_device_t* device = NULL;
  cairn_graph_t* graph = NULL;
  CHECK(cairn_instance_create(NULL, &instance, error));
  CHECK(cairn_device_open(instance, "cpu", NULL, &device, error));
  CHECK(cairn_graph_create(instance, &graph, error));

  cairn_custom_op_t op = CAIRN_CUSTOM_OP_INIT;
  op.name = "sine";
  op.inputs = op.outputs = op.recomputable = 1;
  op.shape = same_shape;
  op.forward = sine;
  CHECK(cairn_graph_custom_op(graph, &op, error));

  const int64_t shape[] = {COUNT};
  cairn_value_t x, y;
  CHECK(cairn_graph_input(graph, &(cairn_tensor_desc_t){"x", shape, 1, CAIRN_F32}, &x, error));
  CHECK(cairn_graph_op(graph, "sine", &x, 1, NULL, 0, &y, 1, error));
  CHECK(cairn_graph_name(graph, y, "y", error));
  cairn_freeze_options_t freeze = CAIRN_FREEZE_OPTIONS_INIT;
  freeze.outputs = &y;
  freeze.output_count = 1;
  CHECK(cairn_graph_freeze(graph, &freeze, error));

  cairn_plan_t* plan = NULL;
  cairn_session_t* session = NULL;
  CHECK(cairn_plan_create(graph, device, NULL, &plan, error));
  CHECK(cairn_session_create(plan, device, &session, error));

  float in[COUNT], out[COUNT];
  for (int i = 0; i < COUNT; ++i) in[i] = (float)i;
  CHECK(cairn_session_write(session, "x", in, sizeof in, error));
  CHECK(cairn_session_run(session, error));
  CHECK(cairn_session_read(session, "y", out, sizeof out, error));
  for (int i = 0; i < COUNT; ++i) {
    printf("sin(%g) = %g\n", in[i], out[i]);
    EXPECT(out[i] == sinf(in[i]));
  }

  /* Planned and measured peak are the same number. */
  cairn_plan_summary_t summary = CAIRN_PLAN_SUMMARY_INIT;
  cairn_tier_usage_t usage = CAIRN_TIER_USAGE_INIT;
  CHECK(cairn_plan_summary(plan, &summary, error));
  CHECK(cairn_session_usage(session, CAIRN_TIER_DEVICE, &usage, error));
  printf("planned %llu bytes, measured %llu\n", (unsigned long long)summary.peak_bytes[CAIRN_TIER_DEVICE],
         (unsigned long long)usage.peak_bytes);
  EXPECT(summary.peak_bytes[CAIRN_TIER_DEVICE] == usage.peak_bytes);

  cairn_graph_release(graph);
  cairn_plan_release(plan);
  cairn_device_release(device);
  cairn_instance_release(instance);
  cairn_session_release(session);
  cairn_error_release(error);
  return 0;
}
