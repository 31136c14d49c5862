// What cgo cannot say: structs that hold pointers to memory of Go are made here, on the stack of C, and macros become
// functions.
#ifndef CAIRN_GO_SHIM_H_
#define CAIRN_GO_SHIM_H_

#include <cairn/cairn.h>
#include <stdlib.h>

static inline cairn_memory_fault_t cairn_go_memory_fault(void) {
  return (cairn_memory_fault_t)CAIRN_MEMORY_FAULT_INIT;
}
static inline cairn_device_info_t cairn_go_device_info(void) {
  return (cairn_device_info_t)CAIRN_DEVICE_INFO_INIT;
}
static inline cairn_import_options_t cairn_go_import_options(void) {
  return (cairn_import_options_t)CAIRN_IMPORT_OPTIONS_INIT;
}
static inline cairn_export_options_t cairn_go_export_options(void) {
  return (cairn_export_options_t)CAIRN_EXPORT_OPTIONS_INIT;
}
static inline cairn_save_options_t cairn_go_save_options(void) {
  return (cairn_save_options_t)CAIRN_SAVE_OPTIONS_INIT;
}
static inline cairn_op_info_t cairn_go_op_info(void) { return (cairn_op_info_t)CAIRN_OP_INFO_INIT; }
static inline cairn_amp_class_info_t cairn_go_amp_class_info(void) {
  return (cairn_amp_class_info_t)CAIRN_AMP_CLASS_INFO_INIT;
}
static inline cairn_format_info_t cairn_go_format_info(void) {
  return (cairn_format_info_t)CAIRN_FORMAT_INFO_INIT;
}
static inline cairn_optimizer_info_t cairn_go_optimizer_info(void) {
  return (cairn_optimizer_info_t)CAIRN_OPTIMIZER_INFO_INIT;
}
static inline cairn_schedule_info_t cairn_go_schedule_info(void) {
  return (cairn_schedule_info_t)CAIRN_SCHEDULE_INFO_INIT;
}
static inline cairn_setting_info_t cairn_go_setting_info(void) {
  return (cairn_setting_info_t)CAIRN_SETTING_INFO_INIT;
}
static inline cairn_plan_counter_info_t cairn_go_plan_counter_info(void) {
  return (cairn_plan_counter_info_t)CAIRN_PLAN_COUNTER_INFO_INIT;
}
static inline cairn_value_info_t cairn_go_value_info(void) {
  return (cairn_value_info_t)CAIRN_VALUE_INFO_INIT;
}
static inline cairn_plan_options_t cairn_go_plan_options(void) {
  return (cairn_plan_options_t)CAIRN_PLAN_OPTIONS_INIT;
}
static inline cairn_plan_summary_t cairn_go_plan_summary(void) {
  return (cairn_plan_summary_t)CAIRN_PLAN_SUMMARY_INIT;
}
static inline cairn_plan_memory_t cairn_go_plan_memory(void) {
  return (cairn_plan_memory_t)CAIRN_PLAN_MEMORY_INIT;
}
static inline cairn_plan_rates_t cairn_go_plan_rates(void) {
  return (cairn_plan_rates_t)CAIRN_PLAN_RATES_INIT;
}
static inline cairn_plan_value_t cairn_go_plan_value(void) {
  return (cairn_plan_value_t)CAIRN_PLAN_VALUE_INIT;
}
static inline cairn_plan_op_t cairn_go_plan_op(void) { return (cairn_plan_op_t)CAIRN_PLAN_OP_INIT; }
static inline cairn_span_t cairn_go_span(void) { return (cairn_span_t)CAIRN_SPAN_INIT; }
static inline cairn_tier_usage_t cairn_go_tier_usage(void) {
  return (cairn_tier_usage_t)CAIRN_TIER_USAGE_INIT;
}
static inline cairn_stepper_options_t cairn_go_stepper_options(void) {
  return (cairn_stepper_options_t)CAIRN_STEPPER_OPTIONS_INIT;
}
static inline cairn_step_report_t cairn_go_step_report(void) {
  return (cairn_step_report_t)CAIRN_STEP_REPORT_INIT;
}
static inline cairn_pictures_options_t cairn_go_pictures_options(void) {
  return (cairn_pictures_options_t)CAIRN_PICTURES_OPTIONS_INIT;
}
static inline cairn_pictures_info_t cairn_go_pictures_info(void) {
  return (cairn_pictures_info_t)CAIRN_PICTURES_INFO_INIT;
}
static inline cairn_dataset_info_t cairn_go_dataset_info(void) {
  return (cairn_dataset_info_t)CAIRN_DATASET_INFO_INIT;
}
static inline cairn_sampling_t cairn_go_sampling(void) { return (cairn_sampling_t)CAIRN_SAMPLING_INIT; }
static inline cairn_generator_info_t cairn_go_generator_info(void) {
  return (cairn_generator_info_t)CAIRN_GENERATOR_INFO_INIT;
}
static inline cairn_model_options_t cairn_go_model_options(void) {
  return (cairn_model_options_t)CAIRN_MODEL_OPTIONS_INIT;
}
static inline cairn_model_info_t cairn_go_model_info(void) {
  return (cairn_model_info_t)CAIRN_MODEL_INFO_INIT;
}
static inline cairn_model_report_t cairn_go_model_report(void) {
  return (cairn_model_report_t)CAIRN_MODEL_REPORT_INIT;
}

static inline cairn_status_t cairn_go_device_open(cairn_instance_t* instance, const char* name,
                                                  uint32_t threads, uint32_t verify, double link,
                                                  const char* disk, const char* rates,
                                                  cairn_device_t** out_device, cairn_error_t* error) {
  cairn_device_options_t options = CAIRN_DEVICE_OPTIONS_INIT;
  options.threads = threads;
  options.verify = verify;
  options.link_bytes_per_second = link;
  options.disk_directory = disk;
  options.rates = rates;
  return cairn_device_open(instance, name, &options, out_device, error);
}

static inline cairn_status_t cairn_go_graph_input(cairn_graph_t* graph, const char* name, const int64_t* dims,
                                                  uint32_t rank, uint32_t dtype, cairn_value_t* out_value,
                                                  cairn_error_t* error) {
  const cairn_tensor_desc_t desc = {name, dims, rank, dtype};
  return cairn_graph_input(graph, &desc, out_value, error);
}

static inline cairn_status_t cairn_go_graph_parameter(cairn_graph_t* graph, const char* name,
                                                      const int64_t* dims, uint32_t rank, uint32_t dtype,
                                                      uint32_t init, double scale, uint32_t frozen,
                                                      uint32_t no_decay, cairn_value_t* out_value,
                                                      cairn_error_t* error) {
  const cairn_tensor_desc_t desc = {name, dims, rank, dtype};
  cairn_parameter_options_t options = CAIRN_PARAMETER_OPTIONS_INIT;
  options.init = init;
  options.init_scale = scale;
  options.frozen = frozen;
  options.no_decay = no_decay;
  return cairn_graph_parameter(graph, &desc, &options, out_value, error);
}

static inline cairn_status_t cairn_go_graph_resident(cairn_graph_t* graph, const char* name,
                                                     const int64_t* dims, uint32_t rank, uint32_t dtype,
                                                     uint32_t kind, double fill, cairn_value_t* out_value,
                                                     cairn_error_t* error) {
  const cairn_tensor_desc_t desc = {name, dims, rank, dtype};
  return cairn_graph_resident(graph, &desc, kind, fill, out_value, error);
}

static inline cairn_status_t cairn_go_graph_adapt(cairn_graph_t* graph, uint32_t kind, uint32_t rank,
                                                  double alpha, double dropout, const char* targets,
                                                  const char* except, const char* saved, const char* ranks,
                                                  const char* alphas, cairn_error_t* error) {
  cairn_adapter_t rule = CAIRN_ADAPTER_INIT;
  rule.kind = kind;
  rule.rank = rank;
  rule.alpha = alpha;
  rule.dropout = dropout;
  rule.targets = targets;
  rule.except = except;
  rule.saved = saved;
  rule.ranks = ranks;
  rule.alphas = alphas;
  return cairn_graph_adapt(graph, &rule, error);
}

static inline cairn_status_t cairn_go_region_begin(cairn_graph_t* graph, const char* name, uint32_t policy,
                                                   uint32_t tier, cairn_region_t* out_region,
                                                   cairn_error_t* error) {
  cairn_region_options_t options = CAIRN_REGION_OPTIONS_INIT;
  options.name = name;
  options.policy = policy;
  options.tier = tier;
  return cairn_graph_region_begin(graph, &options, out_region, error);
}

static inline cairn_status_t cairn_go_graph_freeze(cairn_graph_t* graph, cairn_value_t loss,
                                                   cairn_value_t weight, const cairn_value_t* outputs,
                                                   size_t output_count, cairn_error_t* error) {
  cairn_freeze_options_t options = CAIRN_FREEZE_OPTIONS_INIT;
  options.loss = loss;
  options.weight = weight;
  options.outputs = outputs;
  options.output_count = output_count;
  return cairn_graph_freeze(graph, &options, error);
}

// Does nothing: that Go may pass the pointer is what matters.
static inline void cairn_go_look(void** block) { (void)block; }

// Defined in callbacks.c: hooks are numbers that Go knows a function by; 0 is none.
cairn_status_t cairn_go_instance_create(uintptr_t log, uintptr_t allocator, cairn_instance_t** out_instance,
                                        cairn_error_t* error);
// Keeps what the callback under way on this thread failed with, for the library to ask; gives how much of it there is room for.
size_t cairn_go_keep_failure(const char* words);
cairn_status_t cairn_go_custom_op(cairn_graph_t* graph, const char* name, uint32_t inputs, uint32_t outputs,
                                  uint32_t recomputable, uint32_t has_workspace, uint32_t has_backward,
                                  uintptr_t user, cairn_error_t* error);

static inline cairn_status_t cairn_go_pictures_read(cairn_pictures_t* pictures, uint64_t index, uint32_t rows,
                                                    float* pixels, int32_t* labels, int32_t* others,
                                                    float* shares, uint64_t* items, int32_t* masks,
                                                    uint32_t* out_rows, cairn_error_t* error) {
  cairn_pictures_batch_t to = CAIRN_PICTURES_BATCH_INIT;
  to.pixels = pixels;
  to.labels = labels;
  to.others = others;
  to.shares = shares;
  to.items = items;
  to.masks = masks;
  return cairn_pictures_read(pictures, index, rows, &to, out_rows, error);
}

#endif  // CAIRN_GO_SHIM_H_
