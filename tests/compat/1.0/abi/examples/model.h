/* A small perceptron for the examples: x[BATCH, IN] -> prediction[BATCH, OUT], squared error against target.
 * Each layer is a region, so that the planner may decide about it. */
#ifndef CAIRN_EXAMPLE_MODEL_H_
#define CAIRN_EXAMPLE_MODEL_H_

#include "example.h"

enum { BATCH = 64, IN = 8, WIDTH = 32, OUT = 2, LAYERS = 4 };

static cairn_value_t add_layer(cairn_graph_t* graph, const char* name, cairn_value_t x, int64_t in,
                               int64_t out) {
  char label[64];
  const int64_t shape[] = {out, in};
  cairn_parameter_options_t options = CAIRN_PARAMETER_OPTIONS_INIT;
  options.init = CAIRN_INIT_NORMAL;
  options.init_scale = 0.3;
  cairn_value_t inputs[3] = {x, 0, 0}, y = 0;
  snprintf(label, sizeof label, "%s.weight", name);
  CHECK(cairn_graph_parameter(graph, &(cairn_tensor_desc_t){label, shape, 2, CAIRN_F32}, &options, &inputs[1],
                              error));
  options.init = CAIRN_INIT_CONSTANT;
  options.init_scale = 0;
  options.no_decay = 1;
  snprintf(label, sizeof label, "%s.bias", name);
  CHECK(cairn_graph_parameter(graph, &(cairn_tensor_desc_t){label, shape, 1, CAIRN_F32}, &options, &inputs[2],
                              error));
  cairn_region_options_t region_options = CAIRN_REGION_OPTIONS_INIT;
  region_options.name = name;
  cairn_region_t region;
  CHECK(cairn_graph_region_begin(graph, &region_options, &region, error));
  const cairn_attr_t gelu = {.name = "activation", .word = "gelu_tanh", .kind = CAIRN_ATTR_WORD};
  CHECK(cairn_graph_op(graph, "linear", inputs, 3, &gelu, out == OUT ? 0 : 1, &y, 1, error));
  CHECK(cairn_graph_region_end(graph, region, error));
  return y;
}

/* trains 0: the graph only predicts. */
static inline cairn_graph_t* make_model(cairn_instance_t* instance, int trains) {
  const int64_t x_shape[] = {BATCH, IN}, y_shape[] = {BATCH, OUT};
  cairn_graph_t* graph = NULL;
  CHECK(cairn_graph_create(instance, &graph, error));
  cairn_value_t x, target, loss = 0;
  CHECK(cairn_graph_input(graph, &(cairn_tensor_desc_t){"x", x_shape, 2, CAIRN_F32}, &x, error));
  for (int i = 0; i < LAYERS; ++i) {
    char name[16];
    snprintf(name, sizeof name, "layer%d", i);
    x = add_layer(graph, name, x, i == 0 ? IN : WIDTH, i == LAYERS - 1 ? OUT : WIDTH);
  }
  CHECK(cairn_graph_name(graph, x, "prediction", error));
  if (trains) {
    CHECK(cairn_graph_input(graph, &(cairn_tensor_desc_t){"target", y_shape, 2, CAIRN_F32}, &target, error));
    CHECK(cairn_graph_op(graph, "mse", (cairn_value_t[]){x, target}, 2, NULL, 0, &loss, 1, error));
  }
  cairn_freeze_options_t freeze = CAIRN_FREEZE_OPTIONS_INIT;
  freeze.loss = loss;
  freeze.outputs = &x;
  freeze.output_count = 1;
  CHECK(cairn_graph_freeze(graph, &freeze, error));
  return graph;
}

/* A task: the sum and the difference of two of the numbers. */
static inline void make_batch(unsigned index, float* x, float* target) {
  unsigned state = 12345u + 7919u * index;
  for (int row = 0; row < BATCH; ++row) {
    for (int i = 0; i < IN; ++i) {
      state = state * 1664525u + 1013904223u;
      x[row * IN + i] = (float)(state >> 8) / (float)(1 << 24) - 0.5f;
    }
    target[row * OUT] = x[row * IN] + x[row * IN + 1];
    target[row * OUT + 1] = x[row * IN] - x[row * IN + 1];
  }
}

#endif /* CAIRN_EXAMPLE_MODEL_H_ */
