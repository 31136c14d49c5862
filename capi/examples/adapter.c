/* Adapters: a network whose weights are frozen, and small matrices that learn (LoRA). */
#include <string.h>

#include "model.h"

enum { STEPS = 30, RANK = 2 };

int main(void) {
  error = cairn_error_create();
  cairn_instance_t* instance = NULL;
  cairn_device_t* device = NULL;
  cairn_graph_t* graph = NULL;
  CHECK(cairn_instance_create(NULL, &instance, error));
  CHECK(cairn_device_open(instance, "cpu", NULL, &device, error));
  CHECK(cairn_graph_create(instance, &graph, error));

  /* Before the ops: every linear layer gets one, but the last. */
  cairn_adapter_t rule = CAIRN_ADAPTER_INIT;
  rule.rank = RANK;
  rule.alpha = 4;
  rule.except = "layer1";
  CHECK(cairn_graph_adapt(graph, &rule, error));

  const int64_t x_shape[] = {BATCH, IN}, y_shape[] = {BATCH, OUT};
  cairn_value_t x, target, loss;
  CHECK(cairn_graph_input(graph, &(cairn_tensor_desc_t){"x", x_shape, 2, CAIRN_F32}, &x, error));
  x = add_layer(graph, "layer0", x, IN, WIDTH);
  x = add_layer(graph, "layer1", x, WIDTH, OUT);
  CHECK(cairn_graph_input(graph, &(cairn_tensor_desc_t){"target", y_shape, 2, CAIRN_F32}, &target, error));
  CHECK(cairn_graph_op(graph, "mse", (cairn_value_t[]){x, target}, 2, NULL, 0, &loss, 1, error));
  cairn_freeze_options_t freeze = CAIRN_FREEZE_OPTIONS_INIT;
  freeze.loss = loss;
  CHECK(cairn_graph_freeze(graph, &freeze, error));
  EXPECT(cairn_graph_find(graph, "layer0.lora_A.weight") != 0);
  EXPECT(cairn_graph_find(graph, "layer1.lora_A.weight") == 0);

  cairn_plan_t* plan = NULL;
  cairn_session_t* session = NULL;
  cairn_stepper_t* stepper = NULL;
  CHECK(cairn_plan_create(graph, device, NULL, &plan, error));
  CHECK(cairn_session_create(plan, device, &session, error));
  CHECK(cairn_session_initialise(session, 1, error));
  cairn_stepper_options_t options = CAIRN_STEPPER_OPTIONS_INIT;
  options.rate = 1e-2;
  CHECK(cairn_stepper_create(session, &options, &stepper, error));

  /* Gradients and optimizer states are those of two small matrices. */
  cairn_plan_memory_t memory = CAIRN_PLAN_MEMORY_INIT;
  CHECK(cairn_plan_memory(plan, CAIRN_TIER_DEVICE, &memory, error));
  const uint64_t learnt = (uint64_t)(RANK * IN + WIDTH * RANK) * sizeof(float);
  printf("%llu bytes of gradients, %llu of optimizer states\n", (unsigned long long)memory.gradients_bytes,
         (unsigned long long)memory.optimizer_bytes);
  EXPECT(memory.gradients_bytes >= learnt && memory.gradients_bytes < 2 * learnt);

  float before[WIDTH * IN], after[WIDTH * IN], in[BATCH * IN], wanted[BATCH * OUT];
  for (int i = 0; i < BATCH * IN; ++i) in[i] = (float)((i * 37) % 64) / 32 - 1;
  for (int i = 0; i < BATCH * OUT; ++i) wanted[i] = (float)((i * 11) % 16) / 8 - 1;
  CHECK(cairn_session_read(session, "layer0.weight", before, sizeof before, error));
  cairn_step_report_t report = CAIRN_STEP_REPORT_INIT;
  double first = 0;
  for (int step = 0; step < STEPS; ++step) {
    CHECK(cairn_session_write(session, "x", in, sizeof in, error));
    CHECK(cairn_session_write(session, "target", wanted, sizeof wanted, error));
    CHECK(cairn_stepper_micro(stepper, &report, error));
    if (step == 0) first = report.loss;
  }
  printf("loss %g, after %d steps %g\n", first, STEPS, report.loss);
  EXPECT(report.loss < first);
  CHECK(cairn_session_read(session, "layer0.weight", after, sizeof after, error));
  EXPECT(memcmp(before, after, sizeof before) == 0);

  cairn_stepper_release(stepper);
  cairn_session_release(session);
  cairn_plan_release(plan);
  cairn_graph_release(graph);
  cairn_device_release(device);
  cairn_instance_release(instance);
  cairn_error_release(error);
  return 0;
}
