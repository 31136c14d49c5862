/* Chapter 4: what a run will take, and what it costs to take less, before anything runs. */
#include "model.h"

int main(void) {
  error = cairn_error_create();
  cairn_instance_t* instance = NULL;
  cairn_device_t* device = NULL;
  CHECK(cairn_instance_create(NULL, &instance, error));
  CHECK(cairn_device_open(instance, "cpu", NULL, &device, error));
  cairn_graph_t* graph = make_model(instance, 1);

  cairn_plan_t* plan = NULL;
  cairn_plan_summary_t all = CAIRN_PLAN_SUMMARY_INIT, least = CAIRN_PLAN_SUMMARY_INIT;
  CHECK(cairn_plan_create(graph, device, NULL, &plan, error));
  CHECK(cairn_plan_summary(plan, &all, error));
  printf("keeping everything takes %llu bytes\n", (unsigned long long)all.peak_bytes[CAIRN_TIER_DEVICE]);
  cairn_plan_release(plan);

  /* One byte is too little; the fault names the smallest budget that does, and that one does. */
  cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
  options.budget_bytes = 1;
  EXPECT(cairn_plan_create(graph, device, &options, &plan, error) == CAIRN_STATUS_OVER_BUDGET);
  cairn_memory_fault_t fault = CAIRN_MEMORY_FAULT_INIT;
  CHECK(cairn_error_memory_fault(error, &fault));
  printf("%s\n", cairn_error_message(error));

  options.budget_bytes = fault.smallest_budget_bytes;
  CHECK(cairn_plan_create(graph, device, &options, &plan, error));
  CHECK(cairn_plan_summary(plan, &least, error));
  printf("the least is %llu bytes, %.0f %% slower by the cost model\n",
         (unsigned long long)least.peak_bytes[CAIRN_TIER_DEVICE],
         100 * (least.predicted_seconds / all.predicted_seconds - 1));
  EXPECT(least.peak_bytes[CAIRN_TIER_DEVICE] <= options.budget_bytes);
  EXPECT(least.peak_bytes[CAIRN_TIER_DEVICE] < all.peak_bytes[CAIRN_TIER_DEVICE]);

  static const char* const decisions[] = {"keep", "recompute", "offload", "persistent"};
  cairn_plan_value_t row = CAIRN_PLAN_VALUE_INIT;
  for (size_t i = 0; cairn_plan_value(plan, i, &row, NULL) == CAIRN_STATUS_OK; ++i)
    if (row.decision != CAIRN_DECISION_PERSISTENT)
      printf("  %-28s %7llu bytes  %-10s %s\n", row.name, (unsigned long long)row.bytes,
             decisions[row.decision], row.reason);

  cairn_text_t* page = NULL;
  CHECK(cairn_plan_render(plan, CAIRN_RENDER_HTML, "example", &page, error));
  printf("the page about it has %zu bytes\n", cairn_text_size(page));
  EXPECT(cairn_text_size(page) > 0);

  cairn_text_release(page);
  cairn_plan_release(plan);
  cairn_graph_release(graph);
  cairn_device_release(device);
  cairn_instance_release(instance);
  cairn_error_release(error);
  return 0;
}
