// Made from capi/include/cairn/cairn.h by make_bindings.sh. Do not edit.
pub const CAIRN_VERSION_MAJOR: u32 = 1;
pub const CAIRN_VERSION_MINOR: u32 = 0;
pub const CAIRN_VERSION_PATCH: u32 = 0;
pub type cairn_status_t = i32;
pub const CAIRN_STATUS_OK: _bindgen_ty_1 = 0;
pub const CAIRN_STATUS_INVALID_ARGUMENT: _bindgen_ty_1 = 1;
pub const CAIRN_STATUS_WRONG_STATE: _bindgen_ty_1 = 2;
pub const CAIRN_STATUS_OUT_OF_MEMORY: _bindgen_ty_1 = 3;
pub const CAIRN_STATUS_OVER_BUDGET: _bindgen_ty_1 = 4;
pub const CAIRN_STATUS_UNSUPPORTED: _bindgen_ty_1 = 5;
pub const CAIRN_STATUS_NOT_FOUND: _bindgen_ty_1 = 6;
pub const CAIRN_STATUS_CORRUPT_FILE: _bindgen_ty_1 = 7;
pub const CAIRN_STATUS_IO: _bindgen_ty_1 = 8;
pub const CAIRN_STATUS_DEVICE_LOST: _bindgen_ty_1 = 9;
pub const CAIRN_STATUS_CANCELLED: _bindgen_ty_1 = 10;
pub const CAIRN_STATUS_NON_FINITE: _bindgen_ty_1 = 11;
pub const CAIRN_STATUS_INTERNAL: _bindgen_ty_1 = 12;
pub type _bindgen_ty_1 = ::std::os::raw::c_uint;
extern "C" {
    pub fn cairn_status_name(status: cairn_status_t) -> *const ::std::os::raw::c_char;
}
pub const CAIRN_TIER_DEVICE: _bindgen_ty_2 = 0;
pub const CAIRN_TIER_HOST: _bindgen_ty_2 = 1;
pub const CAIRN_TIER_DISK: _bindgen_ty_2 = 2;
pub type _bindgen_ty_2 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_error {
    _unused: [u8; 0],
}
pub type cairn_error_t = cairn_error;
extern "C" {
    pub fn cairn_error_create() -> *mut cairn_error_t;
}
extern "C" {
    pub fn cairn_error_retain(error: *mut cairn_error_t);
}
extern "C" {
    pub fn cairn_error_release(error: *mut cairn_error_t);
}
extern "C" {
    pub fn cairn_error_status(error: *const cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_error_message(error: *const cairn_error_t) -> *const ::std::os::raw::c_char;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_memory_fault {
    pub struct_size: usize,
    pub requested_bytes: u64,
    pub in_use_bytes: u64,
    pub budget_bytes: u64,
    pub smallest_budget_bytes: u64,
    pub tier: u32,
    pub reserved: u32,
    pub region: [::std::os::raw::c_char; 128usize],
}
pub type cairn_memory_fault_t = cairn_memory_fault;
extern "C" {
    pub fn cairn_error_memory_fault(error: *const cairn_error_t, out_fault: *mut cairn_memory_fault_t) -> cairn_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_text {
    _unused: [u8; 0],
}
pub type cairn_text_t = cairn_text;
extern "C" {
    pub fn cairn_text_retain(text: *mut cairn_text_t);
}
extern "C" {
    pub fn cairn_text_release(text: *mut cairn_text_t);
}
extern "C" {
    pub fn cairn_text_data(text: *const cairn_text_t) -> *const ::std::os::raw::c_char;
}
extern "C" {
    pub fn cairn_text_size(text: *const cairn_text_t) -> usize;
}
extern "C" {
    pub fn cairn_version() -> *const ::std::os::raw::c_char;
}
extern "C" {
    pub fn cairn_version_number() -> u32;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_allocator {
    pub struct_size: usize,
    pub user: *mut ::std::os::raw::c_void,
    pub allocate: ::std::option::Option<unsafe extern "C" fn(user: *mut ::std::os::raw::c_void, bytes: usize, alignment: usize) -> *mut ::std::os::raw::c_void>,
    pub release: ::std::option::Option<unsafe extern "C" fn(user: *mut ::std::os::raw::c_void, block: *mut ::std::os::raw::c_void, bytes: usize, alignment: usize)>,
}
pub type cairn_allocator_t = cairn_allocator;
pub const CAIRN_LOG_INFO: _bindgen_ty_3 = 0;
pub const CAIRN_LOG_WARNING: _bindgen_ty_3 = 1;
pub type _bindgen_ty_3 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_instance_options {
    pub struct_size: usize,
    pub allocator: *const cairn_allocator_t,
    pub log: ::std::option::Option<unsafe extern "C" fn(user: *mut ::std::os::raw::c_void, level: i32, message: *const ::std::os::raw::c_char)>,
    pub log_user: *mut ::std::os::raw::c_void,
}
pub type cairn_instance_options_t = cairn_instance_options;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_instance {
    _unused: [u8; 0],
}
pub type cairn_instance_t = cairn_instance;
extern "C" {
    pub fn cairn_instance_create(options: *const cairn_instance_options_t, out_instance: *mut *mut cairn_instance_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_instance_retain(instance: *mut cairn_instance_t);
}
extern "C" {
    pub fn cairn_instance_release(instance: *mut cairn_instance_t);
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_device_info {
    pub struct_size: usize,
    pub name: [::std::os::raw::c_char; 64usize],
    pub description: [::std::os::raw::c_char; 192usize],
    pub memory_bytes: u64,
    pub threads: u32,
    pub fast_bf16: u32,
    pub isa: [::std::os::raw::c_char; 32usize],
    pub disk_access: [::std::os::raw::c_char; 16usize],
}
pub type cairn_device_info_t = cairn_device_info;
extern "C" {
    pub fn cairn_instance_device(instance: *const cairn_instance_t, index: usize, out_info: *mut cairn_device_info_t, error: *mut cairn_error_t) -> cairn_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_device_options {
    pub struct_size: usize,
    pub threads: u32,
    pub verify: u32,
    pub link_bytes_per_second: f64,
    pub disk_directory: *const ::std::os::raw::c_char,
    pub rates: *const ::std::os::raw::c_char,
}
pub type cairn_device_options_t = cairn_device_options;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_device {
    _unused: [u8; 0],
}
pub type cairn_device_t = cairn_device;
extern "C" {
    pub fn cairn_device_open(instance: *mut cairn_instance_t, name: *const ::std::os::raw::c_char, options: *const cairn_device_options_t, out_device: *mut *mut cairn_device_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_device_retain(device: *mut cairn_device_t);
}
extern "C" {
    pub fn cairn_device_release(device: *mut cairn_device_t);
}
pub const CAIRN_F32: _bindgen_ty_4 = 0;
pub const CAIRN_BF16: _bindgen_ty_4 = 1;
pub const CAIRN_F16: _bindgen_ty_4 = 2;
pub const CAIRN_F64: _bindgen_ty_4 = 3;
pub const CAIRN_I32: _bindgen_ty_4 = 4;
pub const CAIRN_I64: _bindgen_ty_4 = 5;
pub const CAIRN_U8: _bindgen_ty_4 = 6;
pub const CAIRN_DYNAMIC8: _bindgen_ty_4 = 8;
pub const CAIRN_UDYNAMIC8: _bindgen_ty_4 = 9;
pub const CAIRN_SPLIT: _bindgen_ty_4 = 10;
pub type _bindgen_ty_4 = ::std::os::raw::c_uint;
pub type cairn_value_t = u32;
pub type cairn_region_t = u32;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_tensor_desc {
    pub name: *const ::std::os::raw::c_char,
    pub dims: *const i64,
    pub rank: u32,
    pub dtype: u32,
}
pub type cairn_tensor_desc_t = cairn_tensor_desc;
pub const CAIRN_ATTR_INTEGER: _bindgen_ty_5 = 0;
pub const CAIRN_ATTR_REAL: _bindgen_ty_5 = 1;
pub const CAIRN_ATTR_WORD: _bindgen_ty_5 = 2;
pub const CAIRN_ATTR_LIST: _bindgen_ty_5 = 3;
pub const CAIRN_ATTR_REALS: _bindgen_ty_5 = 4;
pub type _bindgen_ty_5 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_attr {
    pub name: *const ::std::os::raw::c_char,
    pub integer: i64,
    pub real: f64,
    pub word: *const ::std::os::raw::c_char,
    pub list: *const i64,
    pub list_count: u32,
    pub kind: u32,
    pub reals: *const f64,
}
pub type cairn_attr_t = cairn_attr;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_graph {
    _unused: [u8; 0],
}
pub type cairn_graph_t = cairn_graph;
extern "C" {
    pub fn cairn_graph_create(instance: *mut cairn_instance_t, out_graph: *mut *mut cairn_graph_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_graph_retain(graph: *mut cairn_graph_t);
}
extern "C" {
    pub fn cairn_graph_release(graph: *mut cairn_graph_t);
}
extern "C" {
    pub fn cairn_graph_input(graph: *mut cairn_graph_t, desc: *const cairn_tensor_desc_t, out_value: *mut cairn_value_t, error: *mut cairn_error_t) -> cairn_status_t;
}
pub const CAIRN_INIT_CONSTANT: _bindgen_ty_6 = 0;
pub const CAIRN_INIT_NORMAL: _bindgen_ty_6 = 1;
pub const CAIRN_INIT_UNIFORM: _bindgen_ty_6 = 2;
pub const CAIRN_INIT_TRUNCATED_NORMAL: _bindgen_ty_6 = 3;
pub const CAIRN_INIT_ORTHOGONAL: _bindgen_ty_6 = 4;
pub type _bindgen_ty_6 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_parameter_options {
    pub struct_size: usize,
    pub init_scale: f64,
    pub init: u32,
    pub frozen: u32,
    pub no_decay: u32,
    pub reserved: u32,
}
pub type cairn_parameter_options_t = cairn_parameter_options;
extern "C" {
    pub fn cairn_graph_parameter(graph: *mut cairn_graph_t, desc: *const cairn_tensor_desc_t, options: *const cairn_parameter_options_t, out_value: *mut cairn_value_t, error: *mut cairn_error_t) -> cairn_status_t;
}
pub const CAIRN_RESIDENT_STATISTIC: _bindgen_ty_7 = 3;
pub const CAIRN_RESIDENT_CACHE: _bindgen_ty_7 = 4;
pub type _bindgen_ty_7 = ::std::os::raw::c_uint;
extern "C" {
    pub fn cairn_graph_resident(graph: *mut cairn_graph_t, desc: *const cairn_tensor_desc_t, kind: u32, fill: f64, out_value: *mut cairn_value_t, error: *mut cairn_error_t) -> cairn_status_t;
}
pub const CAIRN_ADAPTER_LORA: _bindgen_ty_8 = 0;
pub const CAIRN_ADAPTER_RSLORA: _bindgen_ty_8 = 1;
pub const CAIRN_ADAPTER_DORA: _bindgen_ty_8 = 2;
pub const CAIRN_ADAPTER_PISSA: _bindgen_ty_8 = 3;
pub type _bindgen_ty_8 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_adapter {
    pub struct_size: usize,
    pub alpha: f64,
    pub dropout: f64,
    pub targets: *const ::std::os::raw::c_char,
    pub except: *const ::std::os::raw::c_char,
    pub saved: *const ::std::os::raw::c_char,
    pub ranks: *const ::std::os::raw::c_char,
    pub alphas: *const ::std::os::raw::c_char,
    pub rank: u32,
    pub kind: u32,
}
pub type cairn_adapter_t = cairn_adapter;
extern "C" {
    pub fn cairn_graph_adapt(graph: *mut cairn_graph_t, rule: *const cairn_adapter_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_graph_op(graph: *mut cairn_graph_t, op: *const ::std::os::raw::c_char, inputs: *const cairn_value_t, input_count: usize, attrs: *const cairn_attr_t, attr_count: usize, out_values: *mut cairn_value_t, out_count: usize, error: *mut cairn_error_t) -> cairn_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_op_info {
    pub struct_size: usize,
    pub name: *const ::std::os::raw::c_char,
    pub inputs: *const ::std::os::raw::c_char,
    pub outputs: *const ::std::os::raw::c_char,
    pub attributes: *const ::std::os::raw::c_char,
    pub description: *const ::std::os::raw::c_char,
    pub amp_class: *const ::std::os::raw::c_char,
}
pub type cairn_op_info_t = cairn_op_info;
extern "C" {
    pub fn cairn_op_describe(index: usize, out_info: *mut cairn_op_info_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_graph_name(graph: *mut cairn_graph_t, value: cairn_value_t, name: *const ::std::os::raw::c_char, error: *mut cairn_error_t) -> cairn_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_tensor {
    pub data: *mut ::std::os::raw::c_void,
    pub dims: [i64; 8usize],
    pub rank: u32,
    pub dtype: u32,
}
pub type cairn_tensor_t = cairn_tensor;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_custom_op {
    pub struct_size: usize,
    pub name: *const ::std::os::raw::c_char,
    pub inputs: u32,
    pub outputs: u32,
    pub recomputable: u32,
    pub reserved: u32,
    pub user: *mut ::std::os::raw::c_void,
    pub shape: ::std::option::Option<unsafe extern "C" fn(user: *mut ::std::os::raw::c_void, in_: *const cairn_tensor_t, out: *mut cairn_tensor_t) -> i32>,
    pub workspace_bytes: ::std::option::Option<unsafe extern "C" fn(user: *mut ::std::os::raw::c_void, in_: *const cairn_tensor_t) -> i64>,
    pub forward: ::std::option::Option<unsafe extern "C" fn(user: *mut ::std::os::raw::c_void, in_: *const cairn_tensor_t, out: *const cairn_tensor_t, workspace: *mut ::std::os::raw::c_void) -> i32>,
    pub backward: ::std::option::Option<unsafe extern "C" fn(user: *mut ::std::os::raw::c_void, in_: *const cairn_tensor_t, out: *const cairn_tensor_t, workspace: *mut ::std::os::raw::c_void) -> i32>,
    pub failure_words: ::std::option::Option<unsafe extern "C" fn(user: *mut ::std::os::raw::c_void) -> *const ::std::os::raw::c_char>,
    pub release_user: ::std::option::Option<unsafe extern "C" fn(user: *mut ::std::os::raw::c_void)>,
}
pub type cairn_custom_op_t = cairn_custom_op;
extern "C" {
    pub fn cairn_graph_custom_op(graph: *mut cairn_graph_t, op: *const cairn_custom_op_t, error: *mut cairn_error_t) -> cairn_status_t;
}
pub const CAIRN_REGION_PLANNER_DECIDES: _bindgen_ty_9 = 0;
pub const CAIRN_REGION_KEEP: _bindgen_ty_9 = 1;
pub const CAIRN_REGION_RECOMPUTE: _bindgen_ty_9 = 2;
pub const CAIRN_REGION_OFFLOAD: _bindgen_ty_9 = 3;
pub type _bindgen_ty_9 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_region_options {
    pub struct_size: usize,
    pub name: *const ::std::os::raw::c_char,
    pub policy: u32,
    pub tier: u32,
}
pub type cairn_region_options_t = cairn_region_options;
extern "C" {
    pub fn cairn_graph_region_begin(graph: *mut cairn_graph_t, options: *const cairn_region_options_t, out_region: *mut cairn_region_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_graph_region_end(graph: *mut cairn_graph_t, region: cairn_region_t, error: *mut cairn_error_t) -> cairn_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_freeze_options {
    pub struct_size: usize,
    pub loss: cairn_value_t,
    pub weight: cairn_value_t,
    pub outputs: *const cairn_value_t,
    pub output_count: usize,
}
pub type cairn_freeze_options_t = cairn_freeze_options;
extern "C" {
    pub fn cairn_graph_freeze(graph: *mut cairn_graph_t, options: *const cairn_freeze_options_t, error: *mut cairn_error_t) -> cairn_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_value_info {
    pub struct_size: usize,
    pub name: *const ::std::os::raw::c_char,
    pub dims: [i64; 8usize],
    pub rank: u32,
    pub dtype: u32,
    pub kind: u32,
    pub region: cairn_region_t,
    pub bytes: u64,
    pub frozen: u32,
    pub reserved: u32,
}
pub type cairn_value_info_t = cairn_value_info;
extern "C" {
    pub fn cairn_graph_value_count(graph: *const cairn_graph_t) -> usize;
}
extern "C" {
    pub fn cairn_graph_value_info(graph: *const cairn_graph_t, value: cairn_value_t, out_info: *mut cairn_value_info_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_graph_find(graph: *const cairn_graph_t, name: *const ::std::os::raw::c_char) -> cairn_value_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_costs {
    _unused: [u8; 0],
}
pub type cairn_costs_t = cairn_costs;
extern "C" {
    pub fn cairn_costs_create(device: *mut cairn_device_t, out_costs: *mut *mut cairn_costs_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_costs_read(instance: *mut cairn_instance_t, json: *const ::std::os::raw::c_char, size: usize, out_costs: *mut *mut cairn_costs_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_costs_retain(costs: *mut cairn_costs_t);
}
extern "C" {
    pub fn cairn_costs_release(costs: *mut cairn_costs_t);
}
extern "C" {
    pub fn cairn_costs_measure_link(costs: *mut cairn_costs_t, device: *mut cairn_device_t, tier: u32, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_costs_json(costs: *const cairn_costs_t, out_json: *mut *mut cairn_text_t, error: *mut cairn_error_t) -> cairn_status_t;
}
pub const CAIRN_AMP_OFF: _bindgen_ty_10 = 0;
pub const CAIRN_AMP_BF16: _bindgen_ty_10 = 1;
pub const CAIRN_AMP_FP16: _bindgen_ty_10 = 2;
pub type _bindgen_ty_10 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_amp_class_info {
    pub struct_size: usize,
    pub name: *const ::std::os::raw::c_char,
    pub description: *const ::std::os::raw::c_char,
    pub by_rule: u32,
    pub reserved: u32,
}
pub type cairn_amp_class_info_t = cairn_amp_class_info;
extern "C" {
    pub fn cairn_amp_class_describe(index: usize, out_info: *mut cairn_amp_class_info_t, error: *mut cairn_error_t) -> cairn_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_amp_rule {
    pub op: *const ::std::os::raw::c_char,
    pub region: *const ::std::os::raw::c_char,
    pub amp_class: *const ::std::os::raw::c_char,
}
pub type cairn_amp_rule_t = cairn_amp_rule;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_format_info {
    pub struct_size: usize,
    pub name: *const ::std::os::raw::c_char,
    pub computed_as: *const ::std::os::raw::c_char,
    pub read: *const ::std::os::raw::c_char,
    pub bits: u32,
    pub block: u32,
    pub scale_bytes: u32,
    pub trains: u32,
    pub row: u32,
    pub reserved: u32,
}
pub type cairn_format_info_t = cairn_format_info;
extern "C" {
    pub fn cairn_format_describe(index: usize, out_info: *mut cairn_format_info_t, error: *mut cairn_error_t) -> cairn_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_parameter_format {
    pub pattern: *const ::std::os::raw::c_char,
    pub format: *const ::std::os::raw::c_char,
}
pub type cairn_parameter_format_t = cairn_parameter_format;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_hyper {
    pub group: *const ::std::os::raw::c_char,
    pub name: *const ::std::os::raw::c_char,
    pub value: f64,
}
pub type cairn_hyper_t = cairn_hyper;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_parameter_group {
    pub pattern: *const ::std::os::raw::c_char,
    pub optimizer: *const ::std::os::raw::c_char,
}
pub type cairn_parameter_group_t = cairn_parameter_group;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_region_policy {
    pub pattern: *const ::std::os::raw::c_char,
    pub policy: u32,
    pub tier: u32,
}
pub type cairn_region_policy_t = cairn_region_policy;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_optimizer_info {
    pub struct_size: usize,
    pub name: *const ::std::os::raw::c_char,
    pub states: *const ::std::os::raw::c_char,
    pub hypers: *const ::std::os::raw::c_char,
    pub description: *const ::std::os::raw::c_char,
    pub otherwise: *const ::std::os::raw::c_char,
}
pub type cairn_optimizer_info_t = cairn_optimizer_info;
extern "C" {
    pub fn cairn_optimizer_describe(index: usize, out_info: *mut cairn_optimizer_info_t, error: *mut cairn_error_t) -> cairn_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_plan_options {
    pub struct_size: usize,
    pub budget_bytes: u64,
    pub budget_share: f64,
    pub link_bytes_per_second: f64,
    pub amp: u32,
    pub no_optimizer: u32,
    pub policy: u32,
    pub tier_count: u32,
    pub tiers: [u32; 4usize],
    pub costs: *const cairn_costs_t,
    pub force_costs: u32,
    pub reserved: u32,
    pub micro_steps: u32,
    pub fuse_update: u32,
    pub optimizer: *const ::std::os::raw::c_char,
    pub groups: *const cairn_parameter_group_t,
    pub hypers: *const cairn_hyper_t,
    pub group_count: u32,
    pub hyper_count: u32,
    pub amp_rules: *const cairn_amp_rule_t,
    pub amp_rule_count: u32,
    pub parameters: u32,
    pub region_policies: *const cairn_region_policy_t,
    pub region_policy_count: u32,
    pub smallest_budget: u32,
    pub formats: *const cairn_parameter_format_t,
    pub format_count: u32,
    pub reserved2: u32,
    pub ema: f64,
}
pub type cairn_plan_options_t = cairn_plan_options;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_plan {
    _unused: [u8; 0],
}
pub type cairn_plan_t = cairn_plan;
extern "C" {
    pub fn cairn_plan_create(graph: *mut cairn_graph_t, device: *mut cairn_device_t, options: *const cairn_plan_options_t, out_plan: *mut *mut cairn_plan_t, error: *mut cairn_error_t) -> cairn_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_program {
    pub name: *const ::std::os::raw::c_char,
    pub graph: *mut cairn_graph_t,
}
pub type cairn_program_t = cairn_program;
extern "C" {
    pub fn cairn_plan_create_set(programs: *const cairn_program_t, count: usize, device: *mut cairn_device_t, options: *const cairn_plan_options_t, out_plans: *mut *mut cairn_plan_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_plan_retain(plan: *mut cairn_plan_t);
}
extern "C" {
    pub fn cairn_plan_release(plan: *mut cairn_plan_t);
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_plan_summary_t {
    pub struct_size: usize,
    pub peak_bytes: [u64; 3usize],
    pub budget_bytes: u64,
    pub live_peak_bytes: u64,
    pub persistent_bytes: u64,
    pub parameters_bytes: u64,
    pub gradients_bytes: u64,
    pub optimizer_bytes: u64,
    pub activations_bytes: u64,
    pub workspace_bytes: u64,
    pub activation_peak_bytes: u64,
    pub keep_bytes: u64,
    pub recompute_bytes: u64,
    pub offload_host_bytes: u64,
    pub offload_disk_bytes: u64,
    pub predicted_seconds: f64,
    pub keep_all_seconds: f64,
    pub bound_seconds: f64,
    pub gap: f64,
    pub solve_seconds: f64,
    pub value_count: u64,
    pub op_count: u64,
    pub instruction_count: u64,
    pub region_count: u64,
    pub update_seconds: f64,
    pub host_seconds: f64,
    pub optimizer_host_bytes: u64,
    pub optimizer_disk_bytes: u64,
}
extern "C" {
    pub fn cairn_plan_summary(plan: *const cairn_plan_t, out_summary: *mut cairn_plan_summary_t, error: *mut cairn_error_t) -> cairn_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_plan_counter_info {
    pub struct_size: usize,
    pub name: *const ::std::os::raw::c_char,
    pub unit: *const ::std::os::raw::c_char,
    pub description: *const ::std::os::raw::c_char,
}
pub type cairn_plan_counter_info_t = cairn_plan_counter_info;
extern "C" {
    pub fn cairn_plan_counter_describe(index: usize, out_info: *mut cairn_plan_counter_info_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_plan_counter(plan: *const cairn_plan_t, name: *const ::std::os::raw::c_char, out_value: *mut f64, error: *mut cairn_error_t) -> cairn_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_plan_memory_t {
    pub struct_size: usize,
    pub parameters_bytes: u64,
    pub gradients_bytes: u64,
    pub optimizer_bytes: u64,
    pub activations_bytes: u64,
    pub workspace_bytes: u64,
    pub peak_at: *const ::std::os::raw::c_char,
}
extern "C" {
    pub fn cairn_plan_memory(plan: *const cairn_plan_t, tier: u32, out_memory: *mut cairn_plan_memory_t, error: *mut cairn_error_t) -> cairn_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_plan_rates_t {
    pub struct_size: usize,
    pub source: *const ::std::os::raw::c_char,
    pub path: *const ::std::os::raw::c_char,
    pub notice: *const ::std::os::raw::c_char,
    pub f32_flops_per_second: f64,
    pub bf16_flops_per_second: f64,
    pub memory_bytes_per_second: f64,
    pub measuring_seconds: f64,
}
extern "C" {
    pub fn cairn_plan_rates(plan: *const cairn_plan_t, out_rates: *mut cairn_plan_rates_t, error: *mut cairn_error_t) -> cairn_status_t;
}
pub const CAIRN_DECISION_KEEP: _bindgen_ty_11 = 0;
pub const CAIRN_DECISION_RECOMPUTE: _bindgen_ty_11 = 1;
pub const CAIRN_DECISION_OFFLOAD: _bindgen_ty_11 = 2;
pub const CAIRN_DECISION_PERSISTENT: _bindgen_ty_11 = 3;
pub type _bindgen_ty_11 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_plan_value_t {
    pub struct_size: usize,
    pub name: *const ::std::os::raw::c_char,
    pub region: *const ::std::os::raw::c_char,
    pub reason: *const ::std::os::raw::c_char,
    pub category: *const ::std::os::raw::c_char,
    pub bytes: u64,
    pub offset_bytes: i64,
    pub decision: u32,
    pub tier: u32,
    pub first_step: i32,
    pub last_step: i32,
}
extern "C" {
    pub fn cairn_plan_value(plan: *const cairn_plan_t, index: usize, out_value: *mut cairn_plan_value_t, error: *mut cairn_error_t) -> cairn_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_plan_op_t {
    pub struct_size: usize,
    pub name: *const ::std::os::raw::c_char,
    pub op: *const ::std::os::raw::c_char,
    pub region: *const ::std::os::raw::c_char,
    pub amp_class: *const ::std::os::raw::c_char,
    pub amp_rule: i32,
    pub reserved: u32,
}
extern "C" {
    pub fn cairn_plan_op(plan: *const cairn_plan_t, index: usize, out_op: *mut cairn_plan_op_t, error: *mut cairn_error_t) -> cairn_status_t;
}
pub const CAIRN_RENDER_PLAN_JSON: _bindgen_ty_12 = 0;
pub const CAIRN_RENDER_PROBLEM_JSON: _bindgen_ty_12 = 1;
pub const CAIRN_RENDER_HTML: _bindgen_ty_12 = 2;
pub const CAIRN_RENDER_SVG: _bindgen_ty_12 = 3;
pub const CAIRN_RENDER_FILE: _bindgen_ty_12 = 4;
pub const CAIRN_RENDER_SWEEP: _bindgen_ty_12 = 5;
pub const CAIRN_RENDER_REPORT: _bindgen_ty_12 = 6;
pub type _bindgen_ty_12 = ::std::os::raw::c_uint;
extern "C" {
    pub fn cairn_plan_render(plan: *const cairn_plan_t, kind: u32, title: *const ::std::os::raw::c_char, out_text: *mut *mut cairn_text_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_problem_solve(instance: *mut cairn_instance_t, json: *const ::std::os::raw::c_char, size: usize, budget_bytes: u64, kind: u32, out_text: *mut *mut cairn_text_t, error: *mut cairn_error_t) -> cairn_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_session {
    _unused: [u8; 0],
}
pub type cairn_session_t = cairn_session;
extern "C" {
    pub fn cairn_session_create(plan: *mut cairn_plan_t, device: *mut cairn_device_t, out_session: *mut *mut cairn_session_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_session_create_set(plans: *const *mut cairn_plan_t, count: usize, device: *mut cairn_device_t, out_sessions: *mut *mut cairn_session_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_session_retain(session: *mut cairn_session_t);
}
extern "C" {
    pub fn cairn_session_release(session: *mut cairn_session_t);
}
extern "C" {
    pub fn cairn_session_initialise(session: *mut cairn_session_t, seed: u64, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_session_write(session: *mut cairn_session_t, name: *const ::std::os::raw::c_char, data: *const ::std::os::raw::c_void, size_bytes: usize, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_session_read(session: *mut cairn_session_t, name: *const ::std::os::raw::c_char, data: *mut ::std::os::raw::c_void, size_bytes: usize, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_session_value_info(session: *const cairn_session_t, name: *const ::std::os::raw::c_char, out_info: *mut cairn_value_info_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_session_run(session: *mut cairn_session_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_session_cancel(session: *mut cairn_session_t);
}
extern "C" {
    pub fn cairn_session_trace(session: *mut cairn_session_t, on: u32, error: *mut cairn_error_t) -> cairn_status_t;
}
pub const CAIRN_LANE_COMPUTE: _bindgen_ty_13 = 0;
pub const CAIRN_LANE_COPY_OUT: _bindgen_ty_13 = 1;
pub const CAIRN_LANE_COPY_IN: _bindgen_ty_13 = 2;
pub const CAIRN_LANE_HOST: _bindgen_ty_13 = 3;
pub const CAIRN_LANE_HOST_IN: _bindgen_ty_13 = 4;
pub const CAIRN_LANE_HOST_OUT: _bindgen_ty_13 = 5;
pub type _bindgen_ty_13 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_span {
    pub struct_size: usize,
    pub name: *const ::std::os::raw::c_char,
    pub begin_seconds: f64,
    pub end_seconds: f64,
    pub live_bytes: u64,
    pub lane: u32,
    pub tier: u32,
}
pub type cairn_span_t = cairn_span;
extern "C" {
    pub fn cairn_session_span(session: *const cairn_session_t, index: usize, out_span: *mut cairn_span_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_costs_add_run(costs: *mut cairn_costs_t, session: *const cairn_session_t, step_seconds: f64, optimizer_seconds: f64, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_costs_measure_kernels(costs: *mut cairn_costs_t, plan: *const cairn_plan_t, device: *mut cairn_device_t, out_count: *mut u64, error: *mut cairn_error_t) -> cairn_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_tier_usage {
    pub struct_size: usize,
    pub reserved_bytes: u64,
    pub peak_bytes: u64,
    pub live_peak_bytes: u64,
    pub pinned_bytes: u64,
    pub staging_bytes: u64,
    pub driver_before_bytes: u64,
    pub driver_bytes: u64,
}
pub type cairn_tier_usage_t = cairn_tier_usage;
extern "C" {
    pub fn cairn_session_usage(session: *const cairn_session_t, tier: u32, out_usage: *mut cairn_tier_usage_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_session_digest(session: *mut cairn_session_t, out_hex: *mut ::std::os::raw::c_char, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_session_base_digest(session: *mut cairn_session_t, out_hex: *mut ::std::os::raw::c_char, error: *mut cairn_error_t) -> cairn_status_t;
}
pub const CAIRN_SCHEDULE_CONSTANT: _bindgen_ty_14 = 0;
pub const CAIRN_SCHEDULE_COSINE: _bindgen_ty_14 = 1;
pub const CAIRN_SCHEDULE_LINEAR: _bindgen_ty_14 = 2;
pub type _bindgen_ty_14 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_schedule_info {
    pub struct_size: usize,
    pub name: *const ::std::os::raw::c_char,
    pub parameters: *const ::std::os::raw::c_char,
    pub description: *const ::std::os::raw::c_char,
    pub ends: u32,
    pub reserved: u32,
}
pub type cairn_schedule_info_t = cairn_schedule_info;
extern "C" {
    pub fn cairn_schedule_describe(index: usize, out_info: *mut cairn_schedule_info_t, error: *mut cairn_error_t) -> cairn_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_schedule_value {
    pub name: *const ::std::os::raw::c_char,
    pub word: *const ::std::os::raw::c_char,
    pub value: f64,
}
pub type cairn_schedule_value_t = cairn_schedule_value;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_schedule {
    pub name: *const ::std::os::raw::c_char,
    pub steps: u64,
    pub values: *const cairn_schedule_value_t,
    pub value_count: u64,
}
pub type cairn_schedule_t = cairn_schedule;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_stepper_options {
    pub struct_size: usize,
    pub seed: u64,
    pub warmup_steps: u64,
    pub total_steps: u64,
    pub rate: f64,
    pub minimum_rate: f64,
    pub beta1: f64,
    pub beta2: f64,
    pub eps: f64,
    pub weight_decay: f64,
    pub clip_norm: f64,
    pub schedule: u32,
    pub micro_steps: u32,
    pub hypers: *const cairn_hyper_t,
    pub hyper_count: u64,
    pub schedules: *const cairn_schedule_t,
    pub schedule_count: u64,
    pub warmup_units: u64,
    pub step_units: u64,
    pub loss_scale: f64,
    pub loss_scale_growth: f64,
    pub loss_scale_backoff: f64,
    pub loss_scale_interval: u32,
    pub reserved: u32,
}
pub type cairn_stepper_options_t = cairn_stepper_options;
pub const CAIRN_SETTINGS_OF_OPTIMIZER: _bindgen_ty_15 = 0;
pub const CAIRN_SETTINGS_OF_SCHEDULE: _bindgen_ty_15 = 1;
pub const CAIRN_SETTINGS_OF_STEPPER: _bindgen_ty_15 = 2;
pub type _bindgen_ty_15 = ::std::os::raw::c_uint;
pub const CAIRN_SETTING_ABOVE: _bindgen_ty_16 = 1;
pub const CAIRN_SETTING_BELOW: _bindgen_ty_16 = 2;
pub const CAIRN_SETTING_INTEGER: _bindgen_ty_16 = 4;
pub const CAIRN_SETTING_OR_ZERO: _bindgen_ty_16 = 8;
pub const CAIRN_SETTING_LIST: _bindgen_ty_16 = 16;
pub const CAIRN_SETTING_SWITCH: _bindgen_ty_16 = 32;
pub type _bindgen_ty_16 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_setting_info {
    pub struct_size: usize,
    pub name: *const ::std::os::raw::c_char,
    pub description: *const ::std::os::raw::c_char,
    pub allowed: *const ::std::os::raw::c_char,
    pub words: *const ::std::os::raw::c_char,
    pub default_value: f64,
    pub least: f64,
    pub most: f64,
    pub traits: u32,
    pub reserved: u32,
}
pub type cairn_setting_info_t = cairn_setting_info;
extern "C" {
    pub fn cairn_setting_describe(kind: u32, owner: *const ::std::os::raw::c_char, index: usize, out_info: *mut cairn_setting_info_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_schedule_rates(options: *const cairn_stepper_options_t, first: u64, count: usize, out_rates: *mut f64, out_momenta: *mut f64, error: *mut cairn_error_t) -> cairn_status_t;
}
pub const CAIRN_STEP_ACCUMULATED: _bindgen_ty_17 = 0;
pub const CAIRN_STEP_APPLIED: _bindgen_ty_17 = 1;
pub const CAIRN_STEP_SKIPPED_NONFINITE: _bindgen_ty_17 = 2;
pub const CAIRN_STEP_SKIPPED_EMPTY: _bindgen_ty_17 = 3;
pub const CAIRN_STEP_GATHERED: _bindgen_ty_17 = 4;
pub type _bindgen_ty_17 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_step_report {
    pub struct_size: usize,
    pub step: u64,
    pub skipped_steps: u64,
    pub loss: f64,
    pub weight: f64,
    pub step_loss: f64,
    pub step_weight: f64,
    pub gradient_norm: f64,
    pub rate: f64,
    pub loss_scale: f64,
    pub seconds: f64,
    pub stall_seconds: f64,
    pub optimizer_seconds: f64,
    pub outcome: u32,
    pub micro: u32,
    pub copied_out_bytes: [u64; 3usize],
    pub copied_in_bytes: [u64; 3usize],
    pub copying_out_seconds: [f64; 3usize],
    pub copying_in_seconds: [f64; 3usize],
    pub fell_back: u32,
    pub reserved: u32,
    pub submit_seconds: f64,
}
pub type cairn_step_report_t = cairn_step_report;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_stepper {
    _unused: [u8; 0],
}
pub type cairn_stepper_t = cairn_stepper;
extern "C" {
    pub fn cairn_stepper_create(session: *mut cairn_session_t, options: *const cairn_stepper_options_t, out_stepper: *mut *mut cairn_stepper_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_stepper_retain(stepper: *mut cairn_stepper_t);
}
extern "C" {
    pub fn cairn_stepper_release(stepper: *mut cairn_stepper_t);
}
extern "C" {
    pub fn cairn_stepper_micro(stepper: *mut cairn_stepper_t, out_report: *mut cairn_step_report_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_stepper_micro_on(stepper: *mut cairn_stepper_t, session: *mut cairn_session_t, out_report: *mut cairn_step_report_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_stepper_apply(stepper: *mut cairn_stepper_t, out_report: *mut cairn_step_report_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_stepper_discard(stepper: *mut cairn_stepper_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_stepper_configure(stepper: *mut cairn_stepper_t, options: *const cairn_stepper_options_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_stepper_set(stepper: *mut cairn_stepper_t, group: *const ::std::os::raw::c_char, name: *const ::std::os::raw::c_char, value: f64, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_stepper_get(stepper: *const cairn_stepper_t, group: *const ::std::os::raw::c_char, name: *const ::std::os::raw::c_char, out_value: *mut f64, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_stepper_report(stepper: *const cairn_stepper_t, out_report: *mut cairn_step_report_t, error: *mut cairn_error_t) -> cairn_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_metadata {
    pub key: *const ::std::os::raw::c_char,
    pub value: *const ::std::os::raw::c_char,
}
pub type cairn_metadata_t = cairn_metadata;
extern "C" {
    pub fn cairn_stepper_save(stepper: *mut cairn_stepper_t, directory: *const ::std::os::raw::c_char, metadata: *const cairn_metadata_t, metadata_count: usize, files: *const *const ::std::os::raw::c_char, file_count: usize, error: *mut cairn_error_t) -> cairn_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_save_options {
    pub struct_size: usize,
    pub metadata: *const cairn_metadata_t,
    pub metadata_count: usize,
    pub files: *const *const ::std::os::raw::c_char,
    pub file_count: usize,
    pub without_frozen: u32,
    pub reserved: u32,
}
pub type cairn_save_options_t = cairn_save_options;
extern "C" {
    pub fn cairn_stepper_save_as(stepper: *mut cairn_stepper_t, directory: *const ::std::os::raw::c_char, options: *const cairn_save_options_t, error: *mut cairn_error_t) -> cairn_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_checkpoint {
    _unused: [u8; 0],
}
pub type cairn_checkpoint_t = cairn_checkpoint;
extern "C" {
    pub fn cairn_checkpoint_open(instance: *mut cairn_instance_t, directory: *const ::std::os::raw::c_char, out_checkpoint: *mut *mut cairn_checkpoint_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_checkpoint_retain(checkpoint: *mut cairn_checkpoint_t);
}
extern "C" {
    pub fn cairn_checkpoint_release(checkpoint: *mut cairn_checkpoint_t);
}
extern "C" {
    pub fn cairn_checkpoint_remove(instance: *mut cairn_instance_t, directory: *const ::std::os::raw::c_char, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_checkpoint_directory(checkpoint: *const cairn_checkpoint_t) -> *const ::std::os::raw::c_char;
}
extern "C" {
    pub fn cairn_checkpoint_metadata(checkpoint: *const cairn_checkpoint_t, key: *const ::std::os::raw::c_char) -> *const ::std::os::raw::c_char;
}
extern "C" {
    pub fn cairn_checkpoint_verify(checkpoint: *const cairn_checkpoint_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_checkpoint_graph(checkpoint: *const cairn_checkpoint_t, out_graph: *mut *mut cairn_graph_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_stepper_restore(stepper: *mut cairn_stepper_t, checkpoint: *const cairn_checkpoint_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_session_load(session: *mut cairn_session_t, checkpoint: *const cairn_checkpoint_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_session_load_ema(session: *mut cairn_session_t, checkpoint: *const cairn_checkpoint_t, error: *mut cairn_error_t) -> cairn_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_name {
    pub ours: *const ::std::os::raw::c_char,
    pub theirs: *const ::std::os::raw::c_char,
    pub transposed: u32,
    pub stacked: u32,
}
pub type cairn_name_t = cairn_name;
extern "C" {
    pub fn cairn_session_export(session: *mut cairn_session_t, path: *const ::std::os::raw::c_char, names: *const cairn_name_t, name_count: usize, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_session_import(session: *mut cairn_session_t, path: *const ::std::os::raw::c_char, names: *const cairn_name_t, name_count: usize, error: *mut cairn_error_t) -> cairn_status_t;
}
pub const CAIRN_MERGE_MATRIX: _bindgen_ty_18 = 0;
pub const CAIRN_MERGE_TABLE: _bindgen_ty_18 = 1;
pub type _bindgen_ty_18 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_merge {
    pub weight: *const ::std::os::raw::c_char,
    pub a: *const ::std::os::raw::c_char,
    pub b: *const ::std::os::raw::c_char,
    pub magnitude: *const ::std::os::raw::c_char,
    pub format: *const ::std::os::raw::c_char,
    pub scale: f64,
    pub kind: u32,
    pub reserved: u32,
}
pub type cairn_merge_t = cairn_merge;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_layout {
    pub ours: *const ::std::os::raw::c_char,
    pub groups: u32,
    pub ways: u32,
    pub unit: u32,
    pub offset: f32,
}
pub type cairn_layout_t = cairn_layout;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_import_options {
    pub struct_size: usize,
    pub layouts: *const cairn_layout_t,
    pub layout_count: usize,
}
pub type cairn_import_options_t = cairn_import_options;
extern "C" {
    pub fn cairn_session_import_as(session: *mut cairn_session_t, path: *const ::std::os::raw::c_char, names: *const cairn_name_t, name_count: usize, options: *const cairn_import_options_t, error: *mut cairn_error_t) -> cairn_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_export_options {
    pub struct_size: usize,
    pub dtype: *const ::std::os::raw::c_char,
    pub frozen_dtype: *const ::std::os::raw::c_char,
    pub directory: u32,
    pub reserved: u32,
    pub shard_bytes: u64,
    pub files: *const *const ::std::os::raw::c_char,
    pub file_count: usize,
    pub file_name: *const ::std::os::raw::c_char,
    pub metadata: *const cairn_metadata_t,
    pub metadata_count: usize,
    pub merges: *const cairn_merge_t,
    pub merge_count: usize,
    pub out_difference: *mut f64,
    pub dequantise: u32,
    pub reserved2: u32,
    pub container: *const ::std::os::raw::c_char,
    pub gguf_metadata: *const ::std::os::raw::c_char,
    pub layouts: *const cairn_layout_t,
    pub layout_count: usize,
}
pub type cairn_export_options_t = cairn_export_options;
extern "C" {
    pub fn cairn_session_export_as(session: *mut cairn_session_t, path: *const ::std::os::raw::c_char, names: *const cairn_name_t, name_count: usize, options: *const cairn_export_options_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_graph_save(graph: *const cairn_graph_t, path: *const ::std::os::raw::c_char, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_graph_load(instance: *mut cairn_instance_t, path: *const ::std::os::raw::c_char, out_graph: *mut *mut cairn_graph_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_inspect(instance: *const cairn_instance_t, path: *const ::std::os::raw::c_char, out_json: *mut *mut cairn_text_t, error: *mut cairn_error_t) -> cairn_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_tokenizer {
    _unused: [u8; 0],
}
pub type cairn_tokenizer_t = cairn_tokenizer;
extern "C" {
    pub fn cairn_tokenizer_open(instance: *mut cairn_instance_t, kind: *const ::std::os::raw::c_char, path: *const ::std::os::raw::c_char, out_tokenizer: *mut *mut cairn_tokenizer_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_tokenizer_train(instance: *mut cairn_instance_t, text_path: *const ::std::os::raw::c_char, vocabulary: u32, model_path: *const ::std::os::raw::c_char, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_tokenizer_retain(tokenizer: *mut cairn_tokenizer_t);
}
extern "C" {
    pub fn cairn_tokenizer_release(tokenizer: *mut cairn_tokenizer_t);
}
extern "C" {
    pub fn cairn_tokenizer_vocabulary(tokenizer: *const cairn_tokenizer_t) -> u32;
}
extern "C" {
    pub fn cairn_tokenizer_encode(tokenizer: *const cairn_tokenizer_t, text: *const ::std::os::raw::c_char, size: usize, out_tokens: *mut *mut cairn_text_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_tokenizer_decode(tokenizer: *const cairn_tokenizer_t, tokens: *const i32, count: usize, out_text: *mut *mut cairn_text_t, error: *mut cairn_error_t) -> cairn_status_t;
}
pub const CAIRN_ENCODE_SPECIAL: _bindgen_ty_19 = 1;
pub type _bindgen_ty_19 = ::std::os::raw::c_uint;
extern "C" {
    pub fn cairn_tokenizer_encode_with(tokenizer: *const cairn_tokenizer_t, text: *const ::std::os::raw::c_char, size: usize, flags: u32, out_tokens: *mut *mut cairn_text_t, out_offsets: *mut *mut cairn_text_t, error: *mut cairn_error_t) -> cairn_status_t;
}
pub const CAIRN_DECODE_SKIP_SPECIAL: _bindgen_ty_20 = 1;
pub const CAIRN_DECODE_BYTES: _bindgen_ty_20 = 2;
pub type _bindgen_ty_20 = ::std::os::raw::c_uint;
extern "C" {
    pub fn cairn_tokenizer_decode_with(tokenizer: *const cairn_tokenizer_t, tokens: *const i32, count: usize, flags: u32, out_text: *mut *mut cairn_text_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_tokenizer_token(tokenizer: *const cairn_tokenizer_t, id: i32, out_token: *mut *mut cairn_text_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_tokenizer_find(tokenizer: *const cairn_tokenizer_t, token: *const ::std::os::raw::c_char, size: usize, out_id: *mut i32, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_tokenizer_save(tokenizer: *const cairn_tokenizer_t, path: *const ::std::os::raw::c_char, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_tokenizer_write(tokenizer: *const cairn_tokenizer_t, text_path: *const ::std::os::raw::c_char, token_path: *const ::std::os::raw::c_char, error: *mut cairn_error_t) -> cairn_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_dataset {
    _unused: [u8; 0],
}
pub type cairn_dataset_t = cairn_dataset;
extern "C" {
    pub fn cairn_dataset_open(instance: *mut cairn_instance_t, token_path: *const ::std::os::raw::c_char, length: u32, out_dataset: *mut *mut cairn_dataset_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_dataset_random(instance: *mut cairn_instance_t, seed: u64, vocabulary: u32, length: u32, out_dataset: *mut *mut cairn_dataset_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_dataset_retain(dataset: *mut cairn_dataset_t);
}
extern "C" {
    pub fn cairn_dataset_release(dataset: *mut cairn_dataset_t);
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_dataset_info_t {
    pub struct_size: usize,
    pub tokens: u64,
    pub windows: u64,
    pub vocabulary: u32,
    pub length: u32,
}
extern "C" {
    pub fn cairn_dataset_info(dataset: *const cairn_dataset_t, out_info: *mut cairn_dataset_info_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_dataset_batch(dataset: *const cairn_dataset_t, seed: u64, index: u64, batch: u32, inputs: *mut i32, targets: *mut i32, out_rows: *mut u32, error: *mut cairn_error_t) -> cairn_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_pictures {
    _unused: [u8; 0],
}
pub type cairn_pictures_t = cairn_pictures;
pub const CAIRN_PICTURES_ERROR: _bindgen_ty_21 = 0;
pub const CAIRN_PICTURES_SKIP: _bindgen_ty_21 = 1;
pub const CAIRN_PICTURES_REPLACE: _bindgen_ty_21 = 2;
pub type _bindgen_ty_21 = ::std::os::raw::c_uint;
pub const CAIRN_CROP_CENTRE: _bindgen_ty_22 = 0;
pub const CAIRN_CROP_RANDOM_RESIZED: _bindgen_ty_22 = 1;
pub const CAIRN_CROP_PADDED: _bindgen_ty_22 = 2;
pub type _bindgen_ty_22 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_pictures_options {
    pub struct_size: usize,
    pub data: *const ::std::os::raw::c_char,
    pub test: u32,
    pub width: u32,
    pub height: u32,
    pub channels: u32,
    pub held_out: f64,
    pub most: u64,
    pub seed: u64,
    pub classes: u32,
    pub shuffle: u32,
    pub workers: u32,
    pub ahead: u32,
    pub bad: u32,
    pub crop: u32,
    pub bicubic: u32,
    pub padding: u32,
    pub resize: f64,
    pub scale: [f64; 2usize],
    pub ratio: [f64; 2usize],
    pub flip: f64,
    pub brightness: f64,
    pub contrast: f64,
    pub saturation: f64,
    pub hue: f64,
    pub randaugment: u32,
    pub magnitude: u32,
    pub mixup: f64,
    pub cutmix: f64,
    pub mean: [f32; 3usize],
    pub deviation: [f32; 3usize],
}
pub type cairn_pictures_options_t = cairn_pictures_options;
extern "C" {
    pub fn cairn_pictures_open(instance: *mut cairn_instance_t, options: *const cairn_pictures_options_t, out_pictures: *mut *mut cairn_pictures_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_pictures_retain(pictures: *mut cairn_pictures_t);
}
extern "C" {
    pub fn cairn_pictures_release(pictures: *mut cairn_pictures_t);
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_pictures_info_t {
    pub struct_size: usize,
    pub count: u64,
    pub bad: u64,
    pub classes: u32,
    pub texts: u32,
}
extern "C" {
    pub fn cairn_pictures_info(pictures: *mut cairn_pictures_t, out_info: *mut cairn_pictures_info_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_pictures_class(pictures: *const cairn_pictures_t, number: u32, out_name: *mut *mut cairn_text_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_pictures_content(pictures: *const cairn_pictures_t, out_digest: *mut *mut cairn_text_t, error: *mut cairn_error_t) -> cairn_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_pictures_batch {
    pub struct_size: usize,
    pub pixels: *mut f32,
    pub labels: *mut i32,
    pub others: *mut i32,
    pub shares: *mut f32,
    pub items: *mut u64,
    pub masks: *mut i32,
}
pub type cairn_pictures_batch_t = cairn_pictures_batch;
extern "C" {
    pub fn cairn_pictures_read(pictures: *mut cairn_pictures_t, index: u64, batch: u32, to: *const cairn_pictures_batch_t, out_rows: *mut u32, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_pictures_text(pictures: *const cairn_pictures_t, item: u64, out_text: *mut *mut cairn_text_t, error: *mut cairn_error_t) -> cairn_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_template {
    _unused: [u8; 0],
}
pub type cairn_template_t = cairn_template;
extern "C" {
    pub fn cairn_template_create(source: *const ::std::os::raw::c_char, size: usize, name: *const ::std::os::raw::c_char, out_template: *mut *mut cairn_template_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_template_retain(chat_template: *mut cairn_template_t);
}
extern "C" {
    pub fn cairn_template_release(chat_template: *mut cairn_template_t);
}
extern "C" {
    pub fn cairn_template_render(chat_template: *const cairn_template_t, values: *const ::std::os::raw::c_char, size: usize, out_text: *mut *mut cairn_text_t, error: *mut cairn_error_t) -> cairn_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_generator {
    _unused: [u8; 0],
}
pub type cairn_generator_t = cairn_generator;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_sampling {
    pub struct_size: usize,
    pub repetition_penalty: f64,
    pub temperature: f64,
    pub top_p: f64,
    pub min_p: f64,
    pub seed: u64,
    pub top_k: u32,
    pub reserved: u32,
}
pub type cairn_sampling_t = cairn_sampling;
extern "C" {
    pub fn cairn_sampling_draw(sampling: *const cairn_sampling_t, logits: *const f32, count: usize, seen: *const i32, seen_count: usize, out_token: *mut i32, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_generator_create(sessions: *const *mut cairn_session_t, count: usize, vocabulary: u32, out_generator: *mut *mut cairn_generator_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_generator_retain(generator: *mut cairn_generator_t);
}
extern "C" {
    pub fn cairn_generator_release(generator: *mut cairn_generator_t);
}
extern "C" {
    pub fn cairn_generator_begin(generator: *mut cairn_generator_t, sample: u32, prompt: *const i32, count: usize, sampling: *const cairn_sampling_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_generator_extend(generator: *mut cairn_generator_t, sample: u32, text: *const i32, count: usize, sampling: *const cairn_sampling_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_generator_end(generator: *mut cairn_generator_t, sample: u32, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_generator_next(generator: *mut cairn_generator_t, out_tokens: *mut i32, count: usize, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_generator_logits(generator: *const cairn_generator_t, sample: u32, out_logits: *mut f32, count: usize, error: *mut cairn_error_t) -> cairn_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_generator_info_t {
    pub struct_size: usize,
    pub samples: u64,
    pub vocabulary: u64,
    pub capacity: u64,
    pub cache_bytes: u64,
    pub prefill_tokens: u64,
    pub decode_tokens: u64,
    pub prefill_seconds: f64,
    pub decode_seconds: f64,
}
extern "C" {
    pub fn cairn_generator_info(generator: *const cairn_generator_t, out_info: *mut cairn_generator_info_t, error: *mut cairn_error_t) -> cairn_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_model {
    _unused: [u8; 0],
}
pub type cairn_model_t = cairn_model;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_model_options {
    pub struct_size: usize,
    pub settings: *const *const ::std::os::raw::c_char,
    pub setting_count: usize,
    pub device: *const ::std::os::raw::c_char,
    pub amp: *const ::std::os::raw::c_char,
    pub format: *const ::std::os::raw::c_char,
    pub budget_bytes: u64,
    pub seed: u64,
    pub steps: u64,
    pub threads: u32,
    pub accumulate: u32,
    pub context: u32,
    pub reserved: u32,
}
pub type cairn_model_options_t = cairn_model_options;
extern "C" {
    pub fn cairn_model_open(instance: *mut cairn_instance_t, path: *const ::std::os::raw::c_char, options: *const cairn_model_options_t, out_model: *mut *mut cairn_model_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_model_retain(model: *mut cairn_model_t);
}
extern "C" {
    pub fn cairn_model_release(model: *mut cairn_model_t);
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_model_info {
    pub struct_size: usize,
    pub parameters: u64,
    pub trainable_parameters: u64,
    pub planned_bytes: [u64; 3usize],
    pub seq: u64,
    pub batch: u64,
    pub vocabulary: u64,
}
pub type cairn_model_info_t = cairn_model_info;
extern "C" {
    pub fn cairn_model_describe(model: *mut cairn_model_t, out_info: *mut cairn_model_info_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_model_add(model: *mut cairn_model_t, prompt: *const ::std::os::raw::c_char, answer: *const ::std::os::raw::c_char, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_model_add_row(model: *mut cairn_model_t, json: *const ::std::os::raw::c_char, error: *mut cairn_error_t) -> cairn_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cairn_model_report {
    pub struct_size: usize,
    pub loss: f64,
    pub seconds: f64,
    pub step: u64,
    pub tokens: u64,
}
pub type cairn_model_report_t = cairn_model_report;
extern "C" {
    pub fn cairn_model_train(model: *mut cairn_model_t, steps: u64, out_report: *mut cairn_model_report_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_model_generate(model: *mut cairn_model_t, prompt: *const ::std::os::raw::c_char, tokens: u32, sampling: *const cairn_sampling_t, out_text: *mut *mut cairn_text_t, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_model_save(model: *mut cairn_model_t, directory: *const ::std::os::raw::c_char, error: *mut cairn_error_t) -> cairn_status_t;
}
extern "C" {
    pub fn cairn_model_export(model: *mut cairn_model_t, path: *const ::std::os::raw::c_char, form: *const ::std::os::raw::c_char, error: *mut cairn_error_t) -> cairn_status_t;
}
