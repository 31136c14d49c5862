/* Chapter 3: values, ops, regions; a wrong shape is an error when the op is added. */
#include <string.h>

#include "example.h"

int main(void) {
  error = cairn_error_create();
  cairn_instance_t* instance = NULL;
  cairn_graph_t* graph = NULL;
  CHECK(cairn_instance_create(NULL, &instance, error));
  CHECK(cairn_graph_create(instance, &graph, error));

  const int64_t batch_by_4[] = {8, 4}, square[] = {4, 4}, narrow[] = {4, 3};
  cairn_value_t x, target, w, wrong;
  CHECK(cairn_graph_input(graph, &(cairn_tensor_desc_t){"x", batch_by_4, 2, CAIRN_F32}, &x, error));
  CHECK(cairn_graph_input(graph, &(cairn_tensor_desc_t){"target", batch_by_4, 2, CAIRN_F32}, &target, error));
  cairn_parameter_options_t normal = CAIRN_PARAMETER_OPTIONS_INIT;
  normal.init = CAIRN_INIT_NORMAL;
  normal.init_scale = 0.5;
  CHECK(cairn_graph_parameter(graph, &(cairn_tensor_desc_t){"w", square, 2, CAIRN_F32}, &normal, &w, error));
  CHECK(cairn_graph_parameter(graph, &(cairn_tensor_desc_t){"wrong", narrow, 2, CAIRN_F32}, NULL, &wrong,
                              error));

  /* The message names op, operand and both shapes, and the graph is as it was. */
  const size_t before = cairn_graph_value_count(graph);
  cairn_value_t y;
  EXPECT(cairn_graph_op(graph, "linear", (cairn_value_t[]){x, wrong}, 2, NULL, 0, &y, 1, error) ==
         CAIRN_STATUS_INVALID_ARGUMENT);
  printf("as it should: %s\n", cairn_error_message(error));
  EXPECT(strstr(cairn_error_message(error), "linear") != NULL);
  EXPECT(cairn_graph_value_count(graph) == before);

  /* Activations of this region are recomputed in the backward pass instead of being kept. w is used twice:
   * tied. */
  cairn_region_options_t block = CAIRN_REGION_OPTIONS_INIT;
  block.name = "block";
  block.policy = CAIRN_REGION_RECOMPUTE;
  cairn_region_t region;
  CHECK(cairn_graph_region_begin(graph, &block, &region, error));
  const cairn_attr_t gelu = {.name = "activation", .word = "gelu_tanh", .kind = CAIRN_ATTR_WORD};
  CHECK(cairn_graph_op(graph, "linear", (cairn_value_t[]){x, w}, 2, &gelu, 1, &y, 1, error));
  CHECK(cairn_graph_op(graph, "linear", (cairn_value_t[]){y, w}, 2, NULL, 0, &y, 1, error));
  CHECK(cairn_graph_region_end(graph, region, error));
  CHECK(cairn_graph_name(graph, y, "prediction", error));

  cairn_value_t loss;
  CHECK(cairn_graph_op(graph, "mse", (cairn_value_t[]){y, target}, 2, NULL, 0, &loss, 1, error));
  cairn_freeze_options_t freeze = CAIRN_FREEZE_OPTIONS_INIT;
  freeze.loss = loss;
  freeze.outputs = &y;
  freeze.output_count = 1;
  CHECK(cairn_graph_freeze(graph, &freeze, error));

  for (cairn_value_t v = 1; v <= cairn_graph_value_count(graph); ++v) {
    cairn_value_info_t info = CAIRN_VALUE_INFO_INIT;
    CHECK(cairn_graph_value_info(graph, v, &info, error));
    printf("%-20s rank %u, %llu bytes, region %u\n", info.name, info.rank, (unsigned long long)info.bytes,
           info.region);
  }
  EXPECT(cairn_graph_find(graph, "prediction") == y);

  cairn_graph_release(graph);
  cairn_instance_release(instance);
  cairn_error_release(error);
  return 0;
}
