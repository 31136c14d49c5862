-- Made from capi/include/cairn/cairn.h by make_cdef.sh. Do not edit.
return [[
typedef int32_t cairn_status_t;
enum {
 CAIRN_STATUS_OK = 0,
 CAIRN_STATUS_INVALID_ARGUMENT = 1,
 CAIRN_STATUS_WRONG_STATE = 2,
 CAIRN_STATUS_OUT_OF_MEMORY = 3,
 CAIRN_STATUS_OVER_BUDGET = 4,
 CAIRN_STATUS_UNSUPPORTED = 5,
 CAIRN_STATUS_NOT_FOUND = 6,
 CAIRN_STATUS_CORRUPT_FILE = 7,
 CAIRN_STATUS_IO = 8,
 CAIRN_STATUS_DEVICE_LOST = 9,
 CAIRN_STATUS_CANCELLED = 10,
 CAIRN_STATUS_NON_FINITE = 11,
 CAIRN_STATUS_INTERNAL = 12
};
 const char* cairn_status_name(cairn_status_t status);
enum { CAIRN_TIER_DEVICE = 0, CAIRN_TIER_HOST = 1, CAIRN_TIER_DISK = 2 };
typedef struct cairn_error cairn_error_t;
 cairn_error_t* cairn_error_create(void);
 void cairn_error_retain(cairn_error_t* error);
 void cairn_error_release(cairn_error_t* error);
 cairn_status_t cairn_error_status(const cairn_error_t* error);
 const char* cairn_error_message(const cairn_error_t* error);
typedef struct cairn_memory_fault {
 size_t struct_size;
 uint64_t requested_bytes;
 uint64_t in_use_bytes;
 uint64_t budget_bytes;
 uint64_t smallest_budget_bytes;
 uint32_t tier;
 uint32_t reserved;
 char region[128];
} cairn_memory_fault_t;
 cairn_status_t cairn_error_memory_fault(const cairn_error_t* error, cairn_memory_fault_t* out_fault);
typedef struct cairn_text cairn_text_t;
 void cairn_text_retain(cairn_text_t* text);
 void cairn_text_release(cairn_text_t* text);
 const char* cairn_text_data(const cairn_text_t* text);
 size_t cairn_text_size(const cairn_text_t* text);
 const char* cairn_version(void);
 uint32_t cairn_version_number(void);
typedef struct cairn_allocator {
 size_t struct_size;
 void* user;
 void* (*allocate)(void* user, size_t bytes, size_t alignment);
 void (*release)(void* user, void* block, size_t bytes, size_t alignment);
} cairn_allocator_t;
enum { CAIRN_LOG_INFO = 0, CAIRN_LOG_WARNING = 1 };
typedef struct cairn_instance_options {
 size_t struct_size;
 const cairn_allocator_t* allocator;
 void (*log)(void* user, int32_t level, const char* message);
 void* log_user;
} cairn_instance_options_t;
typedef struct cairn_instance cairn_instance_t;
 cairn_status_t cairn_instance_create(const cairn_instance_options_t* options,
 cairn_instance_t** out_instance, cairn_error_t* error);
 void cairn_instance_retain(cairn_instance_t* instance);
 void cairn_instance_release(cairn_instance_t* instance);
typedef struct cairn_device_info {
 size_t struct_size;
 char name[64];
 char description[192];
 uint64_t memory_bytes;
 uint32_t threads;
 uint32_t fast_bf16;
 char isa[32];
 char disk_access[16];
} cairn_device_info_t;
 cairn_status_t cairn_instance_device(const cairn_instance_t* instance, size_t index,
 cairn_device_info_t* out_info, cairn_error_t* error);
typedef struct cairn_device_options {
 size_t struct_size;
 uint32_t threads;
 uint32_t verify;
 double link_bytes_per_second;
 const char* disk_directory;
 const char* rates;
} cairn_device_options_t;
typedef struct cairn_device cairn_device_t;
 cairn_status_t cairn_device_open(cairn_instance_t* instance, const char* name,
 const cairn_device_options_t* options,
 cairn_device_t** out_device, cairn_error_t* error);
 void cairn_device_retain(cairn_device_t* device);
 void cairn_device_release(cairn_device_t* device);
enum { CAIRN_F32 = 0, CAIRN_BF16 = 1, CAIRN_F16 = 2, CAIRN_F64 = 3, CAIRN_I32 = 4, CAIRN_I64 = 5, CAIRN_U8 = 6,
 CAIRN_DYNAMIC8 = 8, CAIRN_UDYNAMIC8 = 9, CAIRN_SPLIT = 10 };
typedef uint32_t cairn_value_t;
typedef uint32_t cairn_region_t;
typedef struct cairn_tensor_desc {
 const char* name;
 const int64_t* dims;
 uint32_t rank;
 uint32_t dtype;
} cairn_tensor_desc_t;
enum {
 CAIRN_ATTR_INTEGER = 0,
 CAIRN_ATTR_REAL = 1,
 CAIRN_ATTR_WORD = 2,
 CAIRN_ATTR_LIST = 3,
 CAIRN_ATTR_REALS = 4
};
typedef struct cairn_attr {
 const char* name;
 int64_t integer;
 double real;
 const char* word;
 const int64_t* list;
 uint32_t list_count;
 uint32_t kind;
 const double* reals;
} cairn_attr_t;
typedef struct cairn_graph cairn_graph_t;
 cairn_status_t cairn_graph_create(cairn_instance_t* instance, cairn_graph_t** out_graph,
 cairn_error_t* error);
 void cairn_graph_retain(cairn_graph_t* graph);
 void cairn_graph_release(cairn_graph_t* graph);
 cairn_status_t cairn_graph_input(cairn_graph_t* graph, const cairn_tensor_desc_t* desc,
 cairn_value_t* out_value, cairn_error_t* error);
enum {
 CAIRN_INIT_CONSTANT = 0,
 CAIRN_INIT_NORMAL = 1,
 CAIRN_INIT_UNIFORM = 2,
 CAIRN_INIT_TRUNCATED_NORMAL = 3,
 CAIRN_INIT_ORTHOGONAL = 4
};
typedef struct cairn_parameter_options {
 size_t struct_size;
 double init_scale;
 uint32_t init;
 uint32_t frozen;
 uint32_t no_decay;
 uint32_t reserved;
} cairn_parameter_options_t;
 cairn_status_t cairn_graph_parameter(cairn_graph_t* graph, const cairn_tensor_desc_t* desc,
 const cairn_parameter_options_t* options,
 cairn_value_t* out_value, cairn_error_t* error);
enum { CAIRN_RESIDENT_STATISTIC = 3, CAIRN_RESIDENT_CACHE = 4 };
 cairn_status_t cairn_graph_resident(cairn_graph_t* graph, const cairn_tensor_desc_t* desc,
 uint32_t kind, double fill, cairn_value_t* out_value,
 cairn_error_t* error);
enum { CAIRN_ADAPTER_LORA = 0, CAIRN_ADAPTER_RSLORA = 1, CAIRN_ADAPTER_DORA = 2, CAIRN_ADAPTER_PISSA = 3 };
typedef struct cairn_adapter {
 size_t struct_size;
 double alpha;
 double dropout;
 const char* targets;
 const char* except;
 const char* saved;
 const char* ranks;
 const char* alphas;
 uint32_t rank;
 uint32_t kind;
} cairn_adapter_t;
 cairn_status_t cairn_graph_adapt(cairn_graph_t* graph, const cairn_adapter_t* rule,
 cairn_error_t* error);
 cairn_status_t cairn_graph_op(cairn_graph_t* graph, const char* op, const cairn_value_t* inputs,
 size_t input_count, const cairn_attr_t* attrs, size_t attr_count,
 cairn_value_t* out_values, size_t out_count,
 cairn_error_t* error);
typedef struct cairn_op_info {
 size_t struct_size;
 const char* name;
 const char* inputs;
 const char* outputs;
 const char* attributes;
 const char* description;
 const char* amp_class;
} cairn_op_info_t;
 cairn_status_t cairn_op_describe(size_t index, cairn_op_info_t* out_info, cairn_error_t* error);
 cairn_status_t cairn_graph_name(cairn_graph_t* graph, cairn_value_t value, const char* name,
 cairn_error_t* error);
typedef struct cairn_tensor {
 void* data;
 int64_t dims[8];
 uint32_t rank;
 uint32_t dtype;
} cairn_tensor_t;
typedef struct cairn_custom_op {
 size_t struct_size;
 const char* name;
 uint32_t inputs;
 uint32_t outputs;
 uint32_t recomputable;
 uint32_t reserved;
 void* user;
 int32_t (*shape)(void* user, const cairn_tensor_t* in, cairn_tensor_t* out);
 int64_t (*workspace_bytes)(void* user, const cairn_tensor_t* in);
 int32_t (*forward)(void* user, const cairn_tensor_t* in, const cairn_tensor_t* out, void* workspace);
 int32_t (*backward)(void* user, const cairn_tensor_t* in, const cairn_tensor_t* out, void* workspace);
 const char* (*failure_words)(void* user);
 void (*release_user)(void* user);
} cairn_custom_op_t;
 cairn_status_t cairn_graph_custom_op(cairn_graph_t* graph, const cairn_custom_op_t* op,
 cairn_error_t* error);
enum {
 CAIRN_REGION_PLANNER_DECIDES = 0,
 CAIRN_REGION_KEEP = 1,
 CAIRN_REGION_RECOMPUTE = 2,
 CAIRN_REGION_OFFLOAD = 3
};
typedef struct cairn_region_options {
 size_t struct_size;
 const char* name;
 uint32_t policy;
 uint32_t tier;
} cairn_region_options_t;
 cairn_status_t cairn_graph_region_begin(cairn_graph_t* graph,
 const cairn_region_options_t* options,
 cairn_region_t* out_region, cairn_error_t* error);
 cairn_status_t cairn_graph_region_end(cairn_graph_t* graph, cairn_region_t region,
 cairn_error_t* error);
typedef struct cairn_freeze_options {
 size_t struct_size;
 cairn_value_t loss;
 cairn_value_t weight;
 const cairn_value_t* outputs;
 size_t output_count;
} cairn_freeze_options_t;
 cairn_status_t cairn_graph_freeze(cairn_graph_t* graph, const cairn_freeze_options_t* options,
 cairn_error_t* error);
typedef struct cairn_value_info {
 size_t struct_size;
 const char* name;
 int64_t dims[8];
 uint32_t rank;
 uint32_t dtype;
 uint32_t kind;
 cairn_region_t region;
 uint64_t bytes;
 uint32_t frozen;
 uint32_t reserved;
} cairn_value_info_t;
 size_t cairn_graph_value_count(const cairn_graph_t* graph);
 cairn_status_t cairn_graph_value_info(const cairn_graph_t* graph, cairn_value_t value,
 cairn_value_info_t* out_info, cairn_error_t* error);
 cairn_value_t cairn_graph_find(const cairn_graph_t* graph, const char* name);
typedef struct cairn_costs cairn_costs_t;
 cairn_status_t cairn_costs_create(cairn_device_t* device, cairn_costs_t** out_costs,
 cairn_error_t* error);
 cairn_status_t cairn_costs_read(cairn_instance_t* instance, const char* json, size_t size,
 cairn_costs_t** out_costs, cairn_error_t* error);
 void cairn_costs_retain(cairn_costs_t* costs);
 void cairn_costs_release(cairn_costs_t* costs);
 cairn_status_t cairn_costs_measure_link(cairn_costs_t* costs, cairn_device_t* device,
 uint32_t tier, cairn_error_t* error);
 cairn_status_t cairn_costs_json(const cairn_costs_t* costs, cairn_text_t** out_json,
 cairn_error_t* error);
enum { CAIRN_AMP_OFF = 0, CAIRN_AMP_BF16 = 1, CAIRN_AMP_FP16 = 2 };
typedef struct cairn_amp_class_info {
 size_t struct_size;
 const char* name;
 const char* description;
 uint32_t by_rule;
 uint32_t reserved;
} cairn_amp_class_info_t;
 cairn_status_t cairn_amp_class_describe(size_t index, cairn_amp_class_info_t* out_info,
 cairn_error_t* error);
typedef struct cairn_amp_rule {
 const char* op;
 const char* region;
 const char* amp_class;
} cairn_amp_rule_t;
typedef struct cairn_format_info {
 size_t struct_size;
 const char* name;
 const char* computed_as;
 const char* read;
 uint32_t bits;
 uint32_t block;
 uint32_t scale_bytes;
 uint32_t trains;
 uint32_t row;
 uint32_t reserved;
} cairn_format_info_t;
 cairn_status_t cairn_format_describe(size_t index, cairn_format_info_t* out_info,
 cairn_error_t* error);
typedef struct cairn_parameter_format {
 const char* pattern;
 const char* format;
} cairn_parameter_format_t;
typedef struct cairn_hyper {
 const char* group;
 const char* name;
 double value;
} cairn_hyper_t;
typedef struct cairn_parameter_group {
 const char* pattern;
 const char* optimizer;
} cairn_parameter_group_t;
typedef struct cairn_region_policy {
 const char* pattern;
 uint32_t policy;
 uint32_t tier;
} cairn_region_policy_t;
typedef struct cairn_optimizer_info {
 size_t struct_size;
 const char* name;
 const char* states;
 const char* hypers;
 const char* description;
 const char* otherwise;
} cairn_optimizer_info_t;
 cairn_status_t cairn_optimizer_describe(size_t index, cairn_optimizer_info_t* out_info,
 cairn_error_t* error);
typedef struct cairn_plan_options {
 size_t struct_size;
 uint64_t budget_bytes;
 double budget_share;
 double link_bytes_per_second;
 uint32_t amp;
 uint32_t no_optimizer;
 uint32_t policy;
 uint32_t tier_count;
 uint32_t tiers[4];
 const cairn_costs_t* costs;
 uint32_t force_costs;
 uint32_t reserved;
 uint32_t micro_steps;
 uint32_t fuse_update;
 const char* optimizer;
 const cairn_parameter_group_t* groups;
 const cairn_hyper_t* hypers;
 uint32_t group_count, hyper_count;
 const cairn_amp_rule_t* amp_rules;
 uint32_t amp_rule_count;
 uint32_t parameters;
 const cairn_region_policy_t* region_policies;
 uint32_t region_policy_count;
 uint32_t smallest_budget;
 const cairn_parameter_format_t* formats;
 uint32_t format_count;
 uint32_t reserved2;
 double ema;
} cairn_plan_options_t;
typedef struct cairn_plan cairn_plan_t;
 cairn_status_t cairn_plan_create(cairn_graph_t* graph, cairn_device_t* device,
 const cairn_plan_options_t* options, cairn_plan_t** out_plan,
 cairn_error_t* error);
typedef struct cairn_program {
 const char* name;
 cairn_graph_t* graph;
} cairn_program_t;
 cairn_status_t cairn_plan_create_set(const cairn_program_t* programs, size_t count,
 cairn_device_t* device,
 const cairn_plan_options_t* options,
 cairn_plan_t** out_plans, cairn_error_t* error);
 void cairn_plan_retain(cairn_plan_t* plan);
 void cairn_plan_release(cairn_plan_t* plan);
typedef struct cairn_plan_summary_t {
 size_t struct_size;
 uint64_t peak_bytes[3];
 uint64_t budget_bytes;
 uint64_t live_peak_bytes;
 uint64_t persistent_bytes;
 uint64_t parameters_bytes, gradients_bytes, optimizer_bytes, activations_bytes, workspace_bytes;
 uint64_t activation_peak_bytes;
 uint64_t keep_bytes, recompute_bytes, offload_host_bytes, offload_disk_bytes;
 double predicted_seconds, keep_all_seconds, bound_seconds, gap, solve_seconds;
 uint64_t value_count, op_count, instruction_count, region_count;
 double update_seconds;
 double host_seconds;
 uint64_t optimizer_host_bytes, optimizer_disk_bytes;
} cairn_plan_summary_t;
 cairn_status_t cairn_plan_summary(const cairn_plan_t* plan, cairn_plan_summary_t* out_summary,
 cairn_error_t* error);
typedef struct cairn_plan_counter_info {
 size_t struct_size;
 const char* name;
 const char* unit;
 const char* description;
} cairn_plan_counter_info_t;
 cairn_status_t cairn_plan_counter_describe(size_t index, cairn_plan_counter_info_t* out_info,
 cairn_error_t* error);
 cairn_status_t cairn_plan_counter(const cairn_plan_t* plan, const char* name, double* out_value,
 cairn_error_t* error);
typedef struct cairn_plan_memory_t {
 size_t struct_size;
 uint64_t parameters_bytes, gradients_bytes, optimizer_bytes, activations_bytes, workspace_bytes;
 const char* peak_at;
} cairn_plan_memory_t;
 cairn_status_t cairn_plan_memory(const cairn_plan_t* plan, uint32_t tier,
 cairn_plan_memory_t* out_memory, cairn_error_t* error);
typedef struct cairn_plan_rates_t {
 size_t struct_size;
 const char* source;
 const char* path;
 const char* notice;
 double f32_flops_per_second, bf16_flops_per_second;
 double memory_bytes_per_second;
 double measuring_seconds;
} cairn_plan_rates_t;
 cairn_status_t cairn_plan_rates(const cairn_plan_t* plan, cairn_plan_rates_t* out_rates,
 cairn_error_t* error);
enum { CAIRN_DECISION_KEEP = 0, CAIRN_DECISION_RECOMPUTE = 1, CAIRN_DECISION_OFFLOAD = 2, CAIRN_DECISION_PERSISTENT = 3 };
typedef struct cairn_plan_value_t {
 size_t struct_size;
 const char* name;
 const char* region;
 const char* reason;
 const char* category;
 uint64_t bytes;
 int64_t offset_bytes;
 uint32_t decision;
 uint32_t tier;
 int32_t first_step, last_step;
} cairn_plan_value_t;
 cairn_status_t cairn_plan_value(const cairn_plan_t* plan, size_t index,
 cairn_plan_value_t* out_value, cairn_error_t* error);
typedef struct cairn_plan_op_t {
 size_t struct_size;
 const char* name;
 const char* op;
 const char* region;
 const char* amp_class;
 int32_t amp_rule;
 uint32_t reserved;
} cairn_plan_op_t;
 cairn_status_t cairn_plan_op(const cairn_plan_t* plan, size_t index, cairn_plan_op_t* out_op,
 cairn_error_t* error);
enum { CAIRN_RENDER_PLAN_JSON = 0, CAIRN_RENDER_PROBLEM_JSON = 1, CAIRN_RENDER_HTML = 2, CAIRN_RENDER_SVG = 3,
 CAIRN_RENDER_FILE = 4, CAIRN_RENDER_SWEEP = 5, CAIRN_RENDER_REPORT = 6 };
 cairn_status_t cairn_plan_render(const cairn_plan_t* plan, uint32_t kind, const char* title,
 cairn_text_t** out_text, cairn_error_t* error);
 cairn_status_t cairn_problem_solve(cairn_instance_t* instance, const char* json, size_t size,
 uint64_t budget_bytes, uint32_t kind, cairn_text_t** out_text,
 cairn_error_t* error);
typedef struct cairn_session cairn_session_t;
 cairn_status_t cairn_session_create(cairn_plan_t* plan, cairn_device_t* device,
 cairn_session_t** out_session, cairn_error_t* error);
 cairn_status_t cairn_session_create_set(cairn_plan_t* const* plans, size_t count,
 cairn_device_t* device,
 cairn_session_t** out_sessions,
 cairn_error_t* error);
 void cairn_session_retain(cairn_session_t* session);
 void cairn_session_release(cairn_session_t* session);
 cairn_status_t cairn_session_initialise(cairn_session_t* session, uint64_t seed,
 cairn_error_t* error);
 cairn_status_t cairn_session_write(cairn_session_t* session, const char* name, const void* data,
 size_t size_bytes, cairn_error_t* error);
 cairn_status_t cairn_session_read(cairn_session_t* session, const char* name, void* data,
 size_t size_bytes, cairn_error_t* error);
 cairn_status_t cairn_session_value_info(const cairn_session_t* session, const char* name,
 cairn_value_info_t* out_info, cairn_error_t* error);
 cairn_status_t cairn_session_run(cairn_session_t* session, cairn_error_t* error);
 void cairn_session_cancel(cairn_session_t* session);
 cairn_status_t cairn_session_trace(cairn_session_t* session, uint32_t on, cairn_error_t* error);
enum { CAIRN_LANE_COMPUTE = 0, CAIRN_LANE_COPY_OUT = 1, CAIRN_LANE_COPY_IN = 2, CAIRN_LANE_HOST = 3 ,
 CAIRN_LANE_HOST_IN = 4, CAIRN_LANE_HOST_OUT = 5 };
typedef struct cairn_span {
 size_t struct_size;
 const char* name;
 double begin_seconds;
 double end_seconds;
 uint64_t live_bytes;
 uint32_t lane;
 uint32_t tier;
} cairn_span_t;
 cairn_status_t cairn_session_span(const cairn_session_t* session, size_t index,
 cairn_span_t* out_span, cairn_error_t* error);
 cairn_status_t cairn_costs_add_run(cairn_costs_t* costs, const cairn_session_t* session,
 double step_seconds, double optimizer_seconds,
 cairn_error_t* error);
 cairn_status_t cairn_costs_measure_kernels(cairn_costs_t* costs, const cairn_plan_t* plan,
 cairn_device_t* device, uint64_t* out_count,
 cairn_error_t* error);
typedef struct cairn_tier_usage {
 size_t struct_size;
 uint64_t reserved_bytes;
 uint64_t peak_bytes;
 uint64_t live_peak_bytes;
 uint64_t pinned_bytes;
 uint64_t staging_bytes;
 uint64_t driver_before_bytes, driver_bytes;
} cairn_tier_usage_t;
 cairn_status_t cairn_session_usage(const cairn_session_t* session, uint32_t tier,
 cairn_tier_usage_t* out_usage, cairn_error_t* error);
 cairn_status_t cairn_session_digest(cairn_session_t* session, char out_hex[33],
 cairn_error_t* error);
 cairn_status_t cairn_session_base_digest(cairn_session_t* session, char out_hex[33],
 cairn_error_t* error);
enum { CAIRN_SCHEDULE_CONSTANT = 0, CAIRN_SCHEDULE_COSINE = 1, CAIRN_SCHEDULE_LINEAR = 2 };
typedef struct cairn_schedule_info {
 size_t struct_size;
 const char* name;
 const char* parameters;
 const char* description;
 uint32_t ends;
 uint32_t reserved;
} cairn_schedule_info_t;
 cairn_status_t cairn_schedule_describe(size_t index, cairn_schedule_info_t* out_info,
 cairn_error_t* error);
typedef struct cairn_schedule_value {
 const char* name;
 const char* word;
 double value;
} cairn_schedule_value_t;
typedef struct cairn_schedule {
 const char* name;
 uint64_t steps;
 const cairn_schedule_value_t* values;
 uint64_t value_count;
} cairn_schedule_t;
typedef struct cairn_stepper_options {
 size_t struct_size;
 uint64_t seed;
 uint64_t warmup_steps;
 uint64_t total_steps;
 double rate, minimum_rate;
 double beta1, beta2, eps, weight_decay;
 double clip_norm;
 uint32_t schedule;
 uint32_t micro_steps;
 const cairn_hyper_t* hypers;
 uint64_t hyper_count;
 const cairn_schedule_t* schedules;
 uint64_t schedule_count;
 uint64_t warmup_units;
 uint64_t step_units;
 double loss_scale;
 double loss_scale_growth;
 double loss_scale_backoff;
 uint32_t loss_scale_interval;
 uint32_t reserved;
} cairn_stepper_options_t;
enum { CAIRN_SETTINGS_OF_OPTIMIZER = 0, CAIRN_SETTINGS_OF_SCHEDULE = 1, CAIRN_SETTINGS_OF_STEPPER = 2 };
enum {
 CAIRN_SETTING_ABOVE = 1,
 CAIRN_SETTING_BELOW = 2,
 CAIRN_SETTING_INTEGER = 4,
 CAIRN_SETTING_OR_ZERO = 8,
 CAIRN_SETTING_LIST = 16,
 CAIRN_SETTING_SWITCH = 32
};
typedef struct cairn_setting_info {
 size_t struct_size;
 const char* name;
 const char* description;
 const char* allowed;
 const char* words;
 double default_value;
 double least, most;
 uint32_t traits;
 uint32_t reserved;
} cairn_setting_info_t;
 cairn_status_t cairn_setting_describe(uint32_t kind, const char* owner, size_t index,
 cairn_setting_info_t* out_info, cairn_error_t* error);
 cairn_status_t cairn_schedule_rates(const cairn_stepper_options_t* options, uint64_t first,
 size_t count, double* out_rates, double* out_momenta,
 cairn_error_t* error);
enum {
 CAIRN_STEP_ACCUMULATED = 0,
 CAIRN_STEP_APPLIED = 1,
 CAIRN_STEP_SKIPPED_NONFINITE = 2,
 CAIRN_STEP_SKIPPED_EMPTY = 3,
 CAIRN_STEP_GATHERED = 4
};
typedef struct cairn_step_report {
 size_t struct_size;
 uint64_t step;
 uint64_t skipped_steps;
 double loss, weight;
 double step_loss, step_weight;
 double gradient_norm;
 double rate, loss_scale;
 double seconds, stall_seconds, optimizer_seconds;
 uint32_t outcome;
 uint32_t micro;
 uint64_t copied_out_bytes[3], copied_in_bytes[3];
 double copying_out_seconds[3], copying_in_seconds[3];
 uint32_t fell_back;
 uint32_t reserved;
 double submit_seconds;
} cairn_step_report_t;
typedef struct cairn_stepper cairn_stepper_t;
 cairn_status_t cairn_stepper_create(cairn_session_t* session,
 const cairn_stepper_options_t* options,
 cairn_stepper_t** out_stepper, cairn_error_t* error);
 void cairn_stepper_retain(cairn_stepper_t* stepper);
 void cairn_stepper_release(cairn_stepper_t* stepper);
 cairn_status_t cairn_stepper_micro(cairn_stepper_t* stepper, cairn_step_report_t* out_report,
 cairn_error_t* error);
 cairn_status_t cairn_stepper_micro_on(cairn_stepper_t* stepper, cairn_session_t* session,
 cairn_step_report_t* out_report,
 cairn_error_t* error);
 cairn_status_t cairn_stepper_apply(cairn_stepper_t* stepper, cairn_step_report_t* out_report,
 cairn_error_t* error);
 cairn_status_t cairn_stepper_discard(cairn_stepper_t* stepper, cairn_error_t* error);
 cairn_status_t cairn_stepper_configure(cairn_stepper_t* stepper,
 const cairn_stepper_options_t* options,
 cairn_error_t* error);
 cairn_status_t cairn_stepper_set(cairn_stepper_t* stepper, const char* group, const char* name,
 double value, cairn_error_t* error);
 cairn_status_t cairn_stepper_get(const cairn_stepper_t* stepper, const char* group,
 const char* name, double* out_value, cairn_error_t* error);
 cairn_status_t cairn_stepper_report(const cairn_stepper_t* stepper,
 cairn_step_report_t* out_report, cairn_error_t* error);
typedef struct cairn_metadata {
 const char* key;
 const char* value;
} cairn_metadata_t;
 cairn_status_t cairn_stepper_save(cairn_stepper_t* stepper, const char* directory,
 const cairn_metadata_t* metadata, size_t metadata_count,
 const char* const* files, size_t file_count,
 cairn_error_t* error);
typedef struct cairn_save_options {
 size_t struct_size;
 const cairn_metadata_t* metadata;
 size_t metadata_count;
 const char* const* files;
 size_t file_count;
 uint32_t without_frozen;
 uint32_t reserved;
} cairn_save_options_t;
 cairn_status_t cairn_stepper_save_as(cairn_stepper_t* stepper, const char* directory,
 const cairn_save_options_t* options,
 cairn_error_t* error);
typedef struct cairn_checkpoint cairn_checkpoint_t;
 cairn_status_t cairn_checkpoint_open(cairn_instance_t* instance, const char* directory,
 cairn_checkpoint_t** out_checkpoint, cairn_error_t* error);
 void cairn_checkpoint_retain(cairn_checkpoint_t* checkpoint);
 void cairn_checkpoint_release(cairn_checkpoint_t* checkpoint);
 cairn_status_t cairn_checkpoint_remove(cairn_instance_t* instance, const char* directory,
 cairn_error_t* error);
 const char* cairn_checkpoint_directory(const cairn_checkpoint_t* checkpoint);
 const char* cairn_checkpoint_metadata(const cairn_checkpoint_t* checkpoint, const char* key);
 cairn_status_t cairn_checkpoint_verify(const cairn_checkpoint_t* checkpoint, cairn_error_t* error);
 cairn_status_t cairn_checkpoint_graph(const cairn_checkpoint_t* checkpoint,
 cairn_graph_t** out_graph, cairn_error_t* error);
 cairn_status_t cairn_stepper_restore(cairn_stepper_t* stepper,
 const cairn_checkpoint_t* checkpoint, cairn_error_t* error);
 cairn_status_t cairn_session_load(cairn_session_t* session,
 const cairn_checkpoint_t* checkpoint, cairn_error_t* error);
 cairn_status_t cairn_session_load_ema(cairn_session_t* session,
 const cairn_checkpoint_t* checkpoint,
 cairn_error_t* error);
typedef struct cairn_name {
 const char* ours;
 const char* theirs;
 uint32_t transposed;
 uint32_t stacked;
} cairn_name_t;
 cairn_status_t cairn_session_export(cairn_session_t* session, const char* path,
 const cairn_name_t* names, size_t name_count,
 cairn_error_t* error);
 cairn_status_t cairn_session_import(cairn_session_t* session, const char* path,
 const cairn_name_t* names, size_t name_count,
 cairn_error_t* error);
enum { CAIRN_MERGE_MATRIX = 0, CAIRN_MERGE_TABLE = 1 };
typedef struct cairn_merge {
 const char *weight, *a, *b, *magnitude, *format;
 double scale;
 uint32_t kind;
 uint32_t reserved;
} cairn_merge_t;
typedef struct cairn_layout {
 const char* ours;
 uint32_t groups, ways, unit;
 float offset;
} cairn_layout_t;
typedef struct cairn_import_options {
 size_t struct_size;
 const cairn_layout_t* layouts;
 size_t layout_count;
} cairn_import_options_t;
 cairn_status_t cairn_session_import_as(cairn_session_t* session, const char* path,
 const cairn_name_t* names, size_t name_count,
 const cairn_import_options_t* options,
 cairn_error_t* error);
typedef struct cairn_export_options {
 size_t struct_size;
 const char* dtype;
 const char* frozen_dtype;
 uint32_t directory;
 uint32_t reserved;
 uint64_t shard_bytes;
 const char* const* files;
 size_t file_count;
 const char* file_name;
 const cairn_metadata_t* metadata;
 size_t metadata_count;
 const cairn_merge_t* merges;
 size_t merge_count;
 double* out_difference;
 uint32_t dequantise;
 uint32_t reserved2;
 const char* container;
 const char* gguf_metadata;
 const cairn_layout_t* layouts;
 size_t layout_count;
} cairn_export_options_t;
 cairn_status_t cairn_session_export_as(cairn_session_t* session, const char* path,
 const cairn_name_t* names, size_t name_count,
 const cairn_export_options_t* options,
 cairn_error_t* error);
 cairn_status_t cairn_graph_save(const cairn_graph_t* graph, const char* path,
 cairn_error_t* error);
 cairn_status_t cairn_graph_load(cairn_instance_t* instance, const char* path,
 cairn_graph_t** out_graph, cairn_error_t* error);
 cairn_status_t cairn_inspect(const cairn_instance_t* instance, const char* path,
 cairn_text_t** out_json, cairn_error_t* error);
typedef struct cairn_tokenizer cairn_tokenizer_t;
 cairn_status_t cairn_tokenizer_open(cairn_instance_t* instance, const char* kind,
 const char* path, cairn_tokenizer_t** out_tokenizer,
 cairn_error_t* error);
 cairn_status_t cairn_tokenizer_train(cairn_instance_t* instance, const char* text_path,
 uint32_t vocabulary, const char* model_path,
 cairn_error_t* error);
 void cairn_tokenizer_retain(cairn_tokenizer_t* tokenizer);
 void cairn_tokenizer_release(cairn_tokenizer_t* tokenizer);
 uint32_t cairn_tokenizer_vocabulary(const cairn_tokenizer_t* tokenizer);
 cairn_status_t cairn_tokenizer_encode(const cairn_tokenizer_t* tokenizer, const char* text,
 size_t size, cairn_text_t** out_tokens,
 cairn_error_t* error);
 cairn_status_t cairn_tokenizer_decode(const cairn_tokenizer_t* tokenizer, const int32_t* tokens,
 size_t count, cairn_text_t** out_text,
 cairn_error_t* error);
enum { CAIRN_ENCODE_SPECIAL = 1 };
 cairn_status_t cairn_tokenizer_encode_with(const cairn_tokenizer_t* tokenizer,
 const char* text, size_t size, uint32_t flags,
 cairn_text_t** out_tokens,
 cairn_text_t** out_offsets, cairn_error_t* error);
enum { CAIRN_DECODE_SKIP_SPECIAL = 1, CAIRN_DECODE_BYTES = 2 };
 cairn_status_t cairn_tokenizer_decode_with(const cairn_tokenizer_t* tokenizer,
 const int32_t* tokens, size_t count,
 uint32_t flags, cairn_text_t** out_text,
 cairn_error_t* error);
 cairn_status_t cairn_tokenizer_token(const cairn_tokenizer_t* tokenizer, int32_t id,
 cairn_text_t** out_token, cairn_error_t* error);
 cairn_status_t cairn_tokenizer_find(const cairn_tokenizer_t* tokenizer, const char* token,
 size_t size, int32_t* out_id, cairn_error_t* error);
 cairn_status_t cairn_tokenizer_save(const cairn_tokenizer_t* tokenizer, const char* path,
 cairn_error_t* error);
 cairn_status_t cairn_tokenizer_write(const cairn_tokenizer_t* tokenizer, const char* text_path,
 const char* token_path, cairn_error_t* error);
typedef struct cairn_dataset cairn_dataset_t;
 cairn_status_t cairn_dataset_open(cairn_instance_t* instance, const char* token_path,
 uint32_t length, cairn_dataset_t** out_dataset,
 cairn_error_t* error);
 cairn_status_t cairn_dataset_random(cairn_instance_t* instance, uint64_t seed,
 uint32_t vocabulary, uint32_t length,
 cairn_dataset_t** out_dataset, cairn_error_t* error);
 void cairn_dataset_retain(cairn_dataset_t* dataset);
 void cairn_dataset_release(cairn_dataset_t* dataset);
typedef struct cairn_dataset_info_t {
 size_t struct_size;
 uint64_t tokens, windows;
 uint32_t vocabulary, length;
} cairn_dataset_info_t;
 cairn_status_t cairn_dataset_info(const cairn_dataset_t* dataset,
 cairn_dataset_info_t* out_info, cairn_error_t* error);
 cairn_status_t cairn_dataset_batch(const cairn_dataset_t* dataset, uint64_t seed,
 uint64_t index, uint32_t batch, int32_t* inputs,
 int32_t* targets, uint32_t* out_rows, cairn_error_t* error);
typedef struct cairn_pictures cairn_pictures_t;
enum { CAIRN_PICTURES_ERROR = 0, CAIRN_PICTURES_SKIP = 1, CAIRN_PICTURES_REPLACE = 2 };
enum { CAIRN_CROP_CENTRE = 0, CAIRN_CROP_RANDOM_RESIZED = 1, CAIRN_CROP_PADDED = 2 };
typedef struct cairn_pictures_options {
 size_t struct_size;
 const char* data;
 uint32_t test;
 uint32_t width, height;
 uint32_t channels;
 double held_out;
 uint64_t most;
 uint64_t seed;
 uint32_t classes;
 uint32_t shuffle;
 uint32_t workers;
 uint32_t ahead;
 uint32_t bad;
 uint32_t crop;
 uint32_t bicubic;
 uint32_t padding;
 double resize;
 double scale[2];
 double ratio[2];
 double flip;
 double brightness, contrast, saturation, hue;
 uint32_t randaugment;
 uint32_t magnitude;
 double mixup, cutmix;
 float mean[3];
 float deviation[3];
} cairn_pictures_options_t;
 cairn_status_t cairn_pictures_open(cairn_instance_t* instance,
 const cairn_pictures_options_t* options,
 cairn_pictures_t** out_pictures, cairn_error_t* error);
 void cairn_pictures_retain(cairn_pictures_t* pictures);
 void cairn_pictures_release(cairn_pictures_t* pictures);
typedef struct cairn_pictures_info_t {
 size_t struct_size;
 uint64_t count;
 uint64_t bad;
 uint32_t classes;
 uint32_t texts;
} cairn_pictures_info_t;
 cairn_status_t cairn_pictures_info(cairn_pictures_t* pictures,
 cairn_pictures_info_t* out_info, cairn_error_t* error);
 cairn_status_t cairn_pictures_class(const cairn_pictures_t* pictures, uint32_t number,
 cairn_text_t** out_name, cairn_error_t* error);
 cairn_status_t cairn_pictures_content(const cairn_pictures_t* pictures,
 cairn_text_t** out_digest, cairn_error_t* error);
typedef struct cairn_pictures_batch {
 size_t struct_size;
 float* pixels;
 int32_t* labels;
 int32_t* others;
 float* shares;
 uint64_t* items;
 int32_t* masks;
} cairn_pictures_batch_t;
 cairn_status_t cairn_pictures_read(cairn_pictures_t* pictures, uint64_t index,
 uint32_t batch, const cairn_pictures_batch_t* to,
 uint32_t* out_rows, cairn_error_t* error);
 cairn_status_t cairn_pictures_text(const cairn_pictures_t* pictures, uint64_t item,
 cairn_text_t** out_text, cairn_error_t* error);
typedef struct cairn_template cairn_template_t;
 cairn_status_t cairn_template_create(const char* source, size_t size, const char* name,
 cairn_template_t** out_template, cairn_error_t* error);
 void cairn_template_retain(cairn_template_t* chat_template);
 void cairn_template_release(cairn_template_t* chat_template);
 cairn_status_t cairn_template_render(const cairn_template_t* chat_template, const char* values,
 size_t size, cairn_text_t** out_text, cairn_error_t* error);
typedef struct cairn_generator cairn_generator_t;
typedef struct cairn_sampling {
 size_t struct_size;
 double repetition_penalty;
 double temperature;
 double top_p;
 double min_p;
 uint64_t seed;
 uint32_t top_k;
 uint32_t reserved;
} cairn_sampling_t;
 cairn_status_t cairn_sampling_draw(const cairn_sampling_t* sampling, const float* logits,
 size_t count, const int32_t* seen, size_t seen_count,
 int32_t* out_token, cairn_error_t* error);
 cairn_status_t cairn_generator_create(cairn_session_t* const* sessions, size_t count,
 uint32_t vocabulary,
 cairn_generator_t** out_generator,
 cairn_error_t* error);
 void cairn_generator_retain(cairn_generator_t* generator);
 void cairn_generator_release(cairn_generator_t* generator);
 cairn_status_t cairn_generator_begin(cairn_generator_t* generator, uint32_t sample,
 const int32_t* prompt, size_t count,
 const cairn_sampling_t* sampling, cairn_error_t* error);
 cairn_status_t cairn_generator_extend(cairn_generator_t* generator, uint32_t sample,
 const int32_t* text, size_t count,
 const cairn_sampling_t* sampling, cairn_error_t* error);
 cairn_status_t cairn_generator_end(cairn_generator_t* generator, uint32_t sample,
 cairn_error_t* error);
 cairn_status_t cairn_generator_next(cairn_generator_t* generator, int32_t* out_tokens,
 size_t count, cairn_error_t* error);
 cairn_status_t cairn_generator_logits(const cairn_generator_t* generator, uint32_t sample,
 float* out_logits, size_t count,
 cairn_error_t* error);
typedef struct cairn_generator_info_t {
 size_t struct_size;
 uint64_t samples, vocabulary;
 uint64_t capacity;
 uint64_t cache_bytes;
 uint64_t prefill_tokens, decode_tokens;
 double prefill_seconds, decode_seconds;
} cairn_generator_info_t;
 cairn_status_t cairn_generator_info(const cairn_generator_t* generator,
 cairn_generator_info_t* out_info, cairn_error_t* error);
typedef struct cairn_model cairn_model_t;
typedef struct cairn_model_options {
 size_t struct_size;
 const char* const* settings;
 size_t setting_count;
 const char* device;
 const char* amp;
 const char* format;
 uint64_t budget_bytes;
 uint64_t seed;
 uint64_t steps;
 uint32_t threads;
 uint32_t accumulate;
 uint32_t context;
 uint32_t reserved;
} cairn_model_options_t;
 cairn_status_t cairn_model_open(cairn_instance_t* instance, const char* path,
 const cairn_model_options_t* options, cairn_model_t** out_model,
 cairn_error_t* error);
 void cairn_model_retain(cairn_model_t* model);
 void cairn_model_release(cairn_model_t* model);
typedef struct cairn_model_info {
 size_t struct_size;
 uint64_t parameters, trainable_parameters;
 uint64_t planned_bytes[3];
 uint64_t seq, batch, vocabulary;
} cairn_model_info_t;
 cairn_status_t cairn_model_describe(cairn_model_t* model, cairn_model_info_t* out_info,
 cairn_error_t* error);
 cairn_status_t cairn_model_add(cairn_model_t* model, const char* prompt, const char* answer,
 cairn_error_t* error);
 cairn_status_t cairn_model_add_row(cairn_model_t* model, const char* json, cairn_error_t* error);
typedef struct cairn_model_report {
 size_t struct_size;
 double loss;
 double seconds;
 uint64_t step;
 uint64_t tokens;
} cairn_model_report_t;
 cairn_status_t cairn_model_train(cairn_model_t* model, uint64_t steps,
 cairn_model_report_t* out_report, cairn_error_t* error);
 cairn_status_t cairn_model_generate(cairn_model_t* model, const char* prompt, uint32_t tokens,
 const cairn_sampling_t* sampling, cairn_text_t** out_text,
 cairn_error_t* error);
 cairn_status_t cairn_model_save(cairn_model_t* model, const char* directory,
 cairn_error_t* error);
 cairn_status_t cairn_model_export(cairn_model_t* model, const char* path, const char* form,
 cairn_error_t* error);
]]
