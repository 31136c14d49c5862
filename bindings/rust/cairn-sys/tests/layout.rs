//! Every struct lies in memory as the C header promises. Made from capi/abi/layout.txt by make_bindings.sh.
use cairn_sys::*;
use std::mem::{size_of, MaybeUninit};
use std::ptr::addr_of;

macro_rules! place {
    ($type:ident, $field:ident) => {{
        let base = MaybeUninit::<$type>::zeroed();
        let at = base.as_ptr();
        // Only addresses inside `base` are taken; all fields may be zero.
        unsafe { (addr_of!((*at).$field) as usize - at as usize, size_of_field(addr_of!((*at).$field))) }
    }};
}

fn size_of_field<T>(_: *const T) -> usize {
    size_of::<T>()
}

#[test]
fn cairn_memory_fault_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_memory_fault_t>(), 176);
    assert_eq!(place!(cairn_memory_fault_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_memory_fault_t, requested_bytes), (8, 8));
    assert_eq!(place!(cairn_memory_fault_t, in_use_bytes), (16, 8));
    assert_eq!(place!(cairn_memory_fault_t, budget_bytes), (24, 8));
    assert_eq!(place!(cairn_memory_fault_t, smallest_budget_bytes), (32, 8));
    assert_eq!(place!(cairn_memory_fault_t, tier), (40, 4));
    assert_eq!(place!(cairn_memory_fault_t, reserved), (44, 4));
    assert_eq!(place!(cairn_memory_fault_t, region), (48, 128));
}

#[test]
fn cairn_allocator_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_allocator_t>(), 32);
    assert_eq!(place!(cairn_allocator_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_allocator_t, user), (8, 8));
    assert_eq!(place!(cairn_allocator_t, allocate), (16, 8));
    assert_eq!(place!(cairn_allocator_t, release), (24, 8));
}

#[test]
fn cairn_instance_options_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_instance_options_t>(), 32);
    assert_eq!(place!(cairn_instance_options_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_instance_options_t, allocator), (8, 8));
    assert_eq!(place!(cairn_instance_options_t, log), (16, 8));
    assert_eq!(place!(cairn_instance_options_t, log_user), (24, 8));
}

#[test]
fn cairn_device_info_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_device_info_t>(), 328);
    assert_eq!(place!(cairn_device_info_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_device_info_t, name), (8, 64));
    assert_eq!(place!(cairn_device_info_t, description), (72, 192));
    assert_eq!(place!(cairn_device_info_t, memory_bytes), (264, 8));
    assert_eq!(place!(cairn_device_info_t, threads), (272, 4));
    assert_eq!(place!(cairn_device_info_t, fast_bf16), (276, 4));
    assert_eq!(place!(cairn_device_info_t, isa), (280, 32));
    assert_eq!(place!(cairn_device_info_t, disk_access), (312, 16));
}

#[test]
fn cairn_device_options_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_device_options_t>(), 40);
    assert_eq!(place!(cairn_device_options_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_device_options_t, threads), (8, 4));
    assert_eq!(place!(cairn_device_options_t, verify), (12, 4));
    assert_eq!(place!(cairn_device_options_t, link_bytes_per_second), (16, 8));
    assert_eq!(place!(cairn_device_options_t, disk_directory), (24, 8));
    assert_eq!(place!(cairn_device_options_t, rates), (32, 8));
}

#[test]
fn cairn_tensor_desc_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_tensor_desc_t>(), 24);
    assert_eq!(place!(cairn_tensor_desc_t, name), (0, 8));
    assert_eq!(place!(cairn_tensor_desc_t, dims), (8, 8));
    assert_eq!(place!(cairn_tensor_desc_t, rank), (16, 4));
    assert_eq!(place!(cairn_tensor_desc_t, dtype), (20, 4));
}

#[test]
fn cairn_attr_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_attr_t>(), 56);
    assert_eq!(place!(cairn_attr_t, name), (0, 8));
    assert_eq!(place!(cairn_attr_t, integer), (8, 8));
    assert_eq!(place!(cairn_attr_t, real), (16, 8));
    assert_eq!(place!(cairn_attr_t, word), (24, 8));
    assert_eq!(place!(cairn_attr_t, list), (32, 8));
    assert_eq!(place!(cairn_attr_t, list_count), (40, 4));
    assert_eq!(place!(cairn_attr_t, kind), (44, 4));
    assert_eq!(place!(cairn_attr_t, reals), (48, 8));
}

#[test]
fn cairn_parameter_options_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_parameter_options_t>(), 32);
    assert_eq!(place!(cairn_parameter_options_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_parameter_options_t, init_scale), (8, 8));
    assert_eq!(place!(cairn_parameter_options_t, init), (16, 4));
    assert_eq!(place!(cairn_parameter_options_t, frozen), (20, 4));
    assert_eq!(place!(cairn_parameter_options_t, no_decay), (24, 4));
    assert_eq!(place!(cairn_parameter_options_t, reserved), (28, 4));
}

#[test]
fn cairn_adapter_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_adapter_t>(), 72);
    assert_eq!(place!(cairn_adapter_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_adapter_t, alpha), (8, 8));
    assert_eq!(place!(cairn_adapter_t, dropout), (16, 8));
    assert_eq!(place!(cairn_adapter_t, targets), (24, 8));
    assert_eq!(place!(cairn_adapter_t, except), (32, 8));
    assert_eq!(place!(cairn_adapter_t, saved), (40, 8));
    assert_eq!(place!(cairn_adapter_t, ranks), (48, 8));
    assert_eq!(place!(cairn_adapter_t, alphas), (56, 8));
    assert_eq!(place!(cairn_adapter_t, rank), (64, 4));
    assert_eq!(place!(cairn_adapter_t, kind), (68, 4));
}

#[test]
fn cairn_op_info_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_op_info_t>(), 56);
    assert_eq!(place!(cairn_op_info_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_op_info_t, name), (8, 8));
    assert_eq!(place!(cairn_op_info_t, inputs), (16, 8));
    assert_eq!(place!(cairn_op_info_t, outputs), (24, 8));
    assert_eq!(place!(cairn_op_info_t, attributes), (32, 8));
    assert_eq!(place!(cairn_op_info_t, description), (40, 8));
    assert_eq!(place!(cairn_op_info_t, amp_class), (48, 8));
}

#[test]
fn cairn_tensor_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_tensor_t>(), 80);
    assert_eq!(place!(cairn_tensor_t, data), (0, 8));
    assert_eq!(place!(cairn_tensor_t, dims), (8, 64));
    assert_eq!(place!(cairn_tensor_t, rank), (72, 4));
    assert_eq!(place!(cairn_tensor_t, dtype), (76, 4));
}

#[test]
fn cairn_custom_op_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_custom_op_t>(), 88);
    assert_eq!(place!(cairn_custom_op_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_custom_op_t, name), (8, 8));
    assert_eq!(place!(cairn_custom_op_t, inputs), (16, 4));
    assert_eq!(place!(cairn_custom_op_t, outputs), (20, 4));
    assert_eq!(place!(cairn_custom_op_t, recomputable), (24, 4));
    assert_eq!(place!(cairn_custom_op_t, reserved), (28, 4));
    assert_eq!(place!(cairn_custom_op_t, user), (32, 8));
    assert_eq!(place!(cairn_custom_op_t, shape), (40, 8));
    assert_eq!(place!(cairn_custom_op_t, workspace_bytes), (48, 8));
    assert_eq!(place!(cairn_custom_op_t, forward), (56, 8));
    assert_eq!(place!(cairn_custom_op_t, backward), (64, 8));
    assert_eq!(place!(cairn_custom_op_t, failure_words), (72, 8));
    assert_eq!(place!(cairn_custom_op_t, release_user), (80, 8));
}

#[test]
fn cairn_region_options_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_region_options_t>(), 24);
    assert_eq!(place!(cairn_region_options_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_region_options_t, name), (8, 8));
    assert_eq!(place!(cairn_region_options_t, policy), (16, 4));
    assert_eq!(place!(cairn_region_options_t, tier), (20, 4));
}

#[test]
fn cairn_freeze_options_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_freeze_options_t>(), 32);
    assert_eq!(place!(cairn_freeze_options_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_freeze_options_t, loss), (8, 4));
    assert_eq!(place!(cairn_freeze_options_t, weight), (12, 4));
    assert_eq!(place!(cairn_freeze_options_t, outputs), (16, 8));
    assert_eq!(place!(cairn_freeze_options_t, output_count), (24, 8));
}

#[test]
fn cairn_value_info_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_value_info_t>(), 112);
    assert_eq!(place!(cairn_value_info_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_value_info_t, name), (8, 8));
    assert_eq!(place!(cairn_value_info_t, dims), (16, 64));
    assert_eq!(place!(cairn_value_info_t, rank), (80, 4));
    assert_eq!(place!(cairn_value_info_t, dtype), (84, 4));
    assert_eq!(place!(cairn_value_info_t, kind), (88, 4));
    assert_eq!(place!(cairn_value_info_t, region), (92, 4));
    assert_eq!(place!(cairn_value_info_t, bytes), (96, 8));
    assert_eq!(place!(cairn_value_info_t, frozen), (104, 4));
    assert_eq!(place!(cairn_value_info_t, reserved), (108, 4));
}

#[test]
fn cairn_amp_class_info_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_amp_class_info_t>(), 32);
    assert_eq!(place!(cairn_amp_class_info_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_amp_class_info_t, name), (8, 8));
    assert_eq!(place!(cairn_amp_class_info_t, description), (16, 8));
    assert_eq!(place!(cairn_amp_class_info_t, by_rule), (24, 4));
    assert_eq!(place!(cairn_amp_class_info_t, reserved), (28, 4));
}

#[test]
fn cairn_amp_rule_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_amp_rule_t>(), 24);
    assert_eq!(place!(cairn_amp_rule_t, op), (0, 8));
    assert_eq!(place!(cairn_amp_rule_t, region), (8, 8));
    assert_eq!(place!(cairn_amp_rule_t, amp_class), (16, 8));
}

#[test]
fn cairn_format_info_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_format_info_t>(), 56);
    assert_eq!(place!(cairn_format_info_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_format_info_t, name), (8, 8));
    assert_eq!(place!(cairn_format_info_t, computed_as), (16, 8));
    assert_eq!(place!(cairn_format_info_t, read), (24, 8));
    assert_eq!(place!(cairn_format_info_t, bits), (32, 4));
    assert_eq!(place!(cairn_format_info_t, block), (36, 4));
    assert_eq!(place!(cairn_format_info_t, scale_bytes), (40, 4));
    assert_eq!(place!(cairn_format_info_t, trains), (44, 4));
    assert_eq!(place!(cairn_format_info_t, row), (48, 4));
    assert_eq!(place!(cairn_format_info_t, reserved), (52, 4));
}

#[test]
fn cairn_parameter_format_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_parameter_format_t>(), 16);
    assert_eq!(place!(cairn_parameter_format_t, pattern), (0, 8));
    assert_eq!(place!(cairn_parameter_format_t, format), (8, 8));
}

#[test]
fn cairn_hyper_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_hyper_t>(), 24);
    assert_eq!(place!(cairn_hyper_t, group), (0, 8));
    assert_eq!(place!(cairn_hyper_t, name), (8, 8));
    assert_eq!(place!(cairn_hyper_t, value), (16, 8));
}

#[test]
fn cairn_parameter_group_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_parameter_group_t>(), 16);
    assert_eq!(place!(cairn_parameter_group_t, pattern), (0, 8));
    assert_eq!(place!(cairn_parameter_group_t, optimizer), (8, 8));
}

#[test]
fn cairn_region_policy_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_region_policy_t>(), 16);
    assert_eq!(place!(cairn_region_policy_t, pattern), (0, 8));
    assert_eq!(place!(cairn_region_policy_t, policy), (8, 4));
    assert_eq!(place!(cairn_region_policy_t, tier), (12, 4));
}

#[test]
fn cairn_optimizer_info_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_optimizer_info_t>(), 48);
    assert_eq!(place!(cairn_optimizer_info_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_optimizer_info_t, name), (8, 8));
    assert_eq!(place!(cairn_optimizer_info_t, states), (16, 8));
    assert_eq!(place!(cairn_optimizer_info_t, hypers), (24, 8));
    assert_eq!(place!(cairn_optimizer_info_t, description), (32, 8));
    assert_eq!(place!(cairn_optimizer_info_t, otherwise), (40, 8));
}

#[test]
fn cairn_plan_options_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_plan_options_t>(), 176);
    assert_eq!(place!(cairn_plan_options_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_plan_options_t, budget_bytes), (8, 8));
    assert_eq!(place!(cairn_plan_options_t, budget_share), (16, 8));
    assert_eq!(place!(cairn_plan_options_t, link_bytes_per_second), (24, 8));
    assert_eq!(place!(cairn_plan_options_t, amp), (32, 4));
    assert_eq!(place!(cairn_plan_options_t, no_optimizer), (36, 4));
    assert_eq!(place!(cairn_plan_options_t, policy), (40, 4));
    assert_eq!(place!(cairn_plan_options_t, tier_count), (44, 4));
    assert_eq!(place!(cairn_plan_options_t, tiers), (48, 16));
    assert_eq!(place!(cairn_plan_options_t, costs), (64, 8));
    assert_eq!(place!(cairn_plan_options_t, force_costs), (72, 4));
    assert_eq!(place!(cairn_plan_options_t, reserved), (76, 4));
    assert_eq!(place!(cairn_plan_options_t, micro_steps), (80, 4));
    assert_eq!(place!(cairn_plan_options_t, fuse_update), (84, 4));
    assert_eq!(place!(cairn_plan_options_t, optimizer), (88, 8));
    assert_eq!(place!(cairn_plan_options_t, groups), (96, 8));
    assert_eq!(place!(cairn_plan_options_t, hypers), (104, 8));
    assert_eq!(place!(cairn_plan_options_t, group_count), (112, 4));
    assert_eq!(place!(cairn_plan_options_t, hyper_count), (116, 4));
    assert_eq!(place!(cairn_plan_options_t, amp_rules), (120, 8));
    assert_eq!(place!(cairn_plan_options_t, amp_rule_count), (128, 4));
    assert_eq!(place!(cairn_plan_options_t, parameters), (132, 4));
    assert_eq!(place!(cairn_plan_options_t, region_policies), (136, 8));
    assert_eq!(place!(cairn_plan_options_t, region_policy_count), (144, 4));
    assert_eq!(place!(cairn_plan_options_t, smallest_budget), (148, 4));
    assert_eq!(place!(cairn_plan_options_t, formats), (152, 8));
    assert_eq!(place!(cairn_plan_options_t, format_count), (160, 4));
    assert_eq!(place!(cairn_plan_options_t, reserved2), (164, 4));
    assert_eq!(place!(cairn_plan_options_t, ema), (168, 8));
}

#[test]
fn cairn_program_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_program_t>(), 16);
    assert_eq!(place!(cairn_program_t, name), (0, 8));
    assert_eq!(place!(cairn_program_t, graph), (8, 8));
}

#[test]
fn cairn_plan_summary_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_plan_summary_t>(), 240);
    assert_eq!(place!(cairn_plan_summary_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_plan_summary_t, peak_bytes), (8, 24));
    assert_eq!(place!(cairn_plan_summary_t, budget_bytes), (32, 8));
    assert_eq!(place!(cairn_plan_summary_t, live_peak_bytes), (40, 8));
    assert_eq!(place!(cairn_plan_summary_t, persistent_bytes), (48, 8));
    assert_eq!(place!(cairn_plan_summary_t, parameters_bytes), (56, 8));
    assert_eq!(place!(cairn_plan_summary_t, gradients_bytes), (64, 8));
    assert_eq!(place!(cairn_plan_summary_t, optimizer_bytes), (72, 8));
    assert_eq!(place!(cairn_plan_summary_t, activations_bytes), (80, 8));
    assert_eq!(place!(cairn_plan_summary_t, workspace_bytes), (88, 8));
    assert_eq!(place!(cairn_plan_summary_t, activation_peak_bytes), (96, 8));
    assert_eq!(place!(cairn_plan_summary_t, keep_bytes), (104, 8));
    assert_eq!(place!(cairn_plan_summary_t, recompute_bytes), (112, 8));
    assert_eq!(place!(cairn_plan_summary_t, offload_host_bytes), (120, 8));
    assert_eq!(place!(cairn_plan_summary_t, offload_disk_bytes), (128, 8));
    assert_eq!(place!(cairn_plan_summary_t, predicted_seconds), (136, 8));
    assert_eq!(place!(cairn_plan_summary_t, keep_all_seconds), (144, 8));
    assert_eq!(place!(cairn_plan_summary_t, bound_seconds), (152, 8));
    assert_eq!(place!(cairn_plan_summary_t, gap), (160, 8));
    assert_eq!(place!(cairn_plan_summary_t, solve_seconds), (168, 8));
    assert_eq!(place!(cairn_plan_summary_t, value_count), (176, 8));
    assert_eq!(place!(cairn_plan_summary_t, op_count), (184, 8));
    assert_eq!(place!(cairn_plan_summary_t, instruction_count), (192, 8));
    assert_eq!(place!(cairn_plan_summary_t, region_count), (200, 8));
    assert_eq!(place!(cairn_plan_summary_t, update_seconds), (208, 8));
    assert_eq!(place!(cairn_plan_summary_t, host_seconds), (216, 8));
    assert_eq!(place!(cairn_plan_summary_t, optimizer_host_bytes), (224, 8));
    assert_eq!(place!(cairn_plan_summary_t, optimizer_disk_bytes), (232, 8));
}

#[test]
fn cairn_plan_counter_info_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_plan_counter_info_t>(), 32);
    assert_eq!(place!(cairn_plan_counter_info_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_plan_counter_info_t, name), (8, 8));
    assert_eq!(place!(cairn_plan_counter_info_t, unit), (16, 8));
    assert_eq!(place!(cairn_plan_counter_info_t, description), (24, 8));
}

#[test]
fn cairn_plan_memory_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_plan_memory_t>(), 56);
    assert_eq!(place!(cairn_plan_memory_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_plan_memory_t, parameters_bytes), (8, 8));
    assert_eq!(place!(cairn_plan_memory_t, gradients_bytes), (16, 8));
    assert_eq!(place!(cairn_plan_memory_t, optimizer_bytes), (24, 8));
    assert_eq!(place!(cairn_plan_memory_t, activations_bytes), (32, 8));
    assert_eq!(place!(cairn_plan_memory_t, workspace_bytes), (40, 8));
    assert_eq!(place!(cairn_plan_memory_t, peak_at), (48, 8));
}

#[test]
fn cairn_plan_rates_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_plan_rates_t>(), 64);
    assert_eq!(place!(cairn_plan_rates_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_plan_rates_t, source), (8, 8));
    assert_eq!(place!(cairn_plan_rates_t, path), (16, 8));
    assert_eq!(place!(cairn_plan_rates_t, notice), (24, 8));
    assert_eq!(place!(cairn_plan_rates_t, f32_flops_per_second), (32, 8));
    assert_eq!(place!(cairn_plan_rates_t, bf16_flops_per_second), (40, 8));
    assert_eq!(place!(cairn_plan_rates_t, memory_bytes_per_second), (48, 8));
    assert_eq!(place!(cairn_plan_rates_t, measuring_seconds), (56, 8));
}

#[test]
fn cairn_plan_value_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_plan_value_t>(), 72);
    assert_eq!(place!(cairn_plan_value_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_plan_value_t, name), (8, 8));
    assert_eq!(place!(cairn_plan_value_t, region), (16, 8));
    assert_eq!(place!(cairn_plan_value_t, reason), (24, 8));
    assert_eq!(place!(cairn_plan_value_t, category), (32, 8));
    assert_eq!(place!(cairn_plan_value_t, bytes), (40, 8));
    assert_eq!(place!(cairn_plan_value_t, offset_bytes), (48, 8));
    assert_eq!(place!(cairn_plan_value_t, decision), (56, 4));
    assert_eq!(place!(cairn_plan_value_t, tier), (60, 4));
    assert_eq!(place!(cairn_plan_value_t, first_step), (64, 4));
    assert_eq!(place!(cairn_plan_value_t, last_step), (68, 4));
}

#[test]
fn cairn_plan_op_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_plan_op_t>(), 48);
    assert_eq!(place!(cairn_plan_op_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_plan_op_t, name), (8, 8));
    assert_eq!(place!(cairn_plan_op_t, op), (16, 8));
    assert_eq!(place!(cairn_plan_op_t, region), (24, 8));
    assert_eq!(place!(cairn_plan_op_t, amp_class), (32, 8));
    assert_eq!(place!(cairn_plan_op_t, amp_rule), (40, 4));
    assert_eq!(place!(cairn_plan_op_t, reserved), (44, 4));
}

#[test]
fn cairn_span_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_span_t>(), 48);
    assert_eq!(place!(cairn_span_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_span_t, name), (8, 8));
    assert_eq!(place!(cairn_span_t, begin_seconds), (16, 8));
    assert_eq!(place!(cairn_span_t, end_seconds), (24, 8));
    assert_eq!(place!(cairn_span_t, live_bytes), (32, 8));
    assert_eq!(place!(cairn_span_t, lane), (40, 4));
    assert_eq!(place!(cairn_span_t, tier), (44, 4));
}

#[test]
fn cairn_tier_usage_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_tier_usage_t>(), 64);
    assert_eq!(place!(cairn_tier_usage_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_tier_usage_t, reserved_bytes), (8, 8));
    assert_eq!(place!(cairn_tier_usage_t, peak_bytes), (16, 8));
    assert_eq!(place!(cairn_tier_usage_t, live_peak_bytes), (24, 8));
    assert_eq!(place!(cairn_tier_usage_t, pinned_bytes), (32, 8));
    assert_eq!(place!(cairn_tier_usage_t, staging_bytes), (40, 8));
    assert_eq!(place!(cairn_tier_usage_t, driver_before_bytes), (48, 8));
    assert_eq!(place!(cairn_tier_usage_t, driver_bytes), (56, 8));
}

#[test]
fn cairn_schedule_info_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_schedule_info_t>(), 40);
    assert_eq!(place!(cairn_schedule_info_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_schedule_info_t, name), (8, 8));
    assert_eq!(place!(cairn_schedule_info_t, parameters), (16, 8));
    assert_eq!(place!(cairn_schedule_info_t, description), (24, 8));
    assert_eq!(place!(cairn_schedule_info_t, ends), (32, 4));
    assert_eq!(place!(cairn_schedule_info_t, reserved), (36, 4));
}

#[test]
fn cairn_schedule_value_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_schedule_value_t>(), 24);
    assert_eq!(place!(cairn_schedule_value_t, name), (0, 8));
    assert_eq!(place!(cairn_schedule_value_t, word), (8, 8));
    assert_eq!(place!(cairn_schedule_value_t, value), (16, 8));
}

#[test]
fn cairn_schedule_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_schedule_t>(), 32);
    assert_eq!(place!(cairn_schedule_t, name), (0, 8));
    assert_eq!(place!(cairn_schedule_t, steps), (8, 8));
    assert_eq!(place!(cairn_schedule_t, values), (16, 8));
    assert_eq!(place!(cairn_schedule_t, value_count), (24, 8));
}

#[test]
fn cairn_stepper_options_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_stepper_options_t>(), 176);
    assert_eq!(place!(cairn_stepper_options_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_stepper_options_t, seed), (8, 8));
    assert_eq!(place!(cairn_stepper_options_t, warmup_steps), (16, 8));
    assert_eq!(place!(cairn_stepper_options_t, total_steps), (24, 8));
    assert_eq!(place!(cairn_stepper_options_t, rate), (32, 8));
    assert_eq!(place!(cairn_stepper_options_t, minimum_rate), (40, 8));
    assert_eq!(place!(cairn_stepper_options_t, beta1), (48, 8));
    assert_eq!(place!(cairn_stepper_options_t, beta2), (56, 8));
    assert_eq!(place!(cairn_stepper_options_t, eps), (64, 8));
    assert_eq!(place!(cairn_stepper_options_t, weight_decay), (72, 8));
    assert_eq!(place!(cairn_stepper_options_t, clip_norm), (80, 8));
    assert_eq!(place!(cairn_stepper_options_t, schedule), (88, 4));
    assert_eq!(place!(cairn_stepper_options_t, micro_steps), (92, 4));
    assert_eq!(place!(cairn_stepper_options_t, hypers), (96, 8));
    assert_eq!(place!(cairn_stepper_options_t, hyper_count), (104, 8));
    assert_eq!(place!(cairn_stepper_options_t, schedules), (112, 8));
    assert_eq!(place!(cairn_stepper_options_t, schedule_count), (120, 8));
    assert_eq!(place!(cairn_stepper_options_t, warmup_units), (128, 8));
    assert_eq!(place!(cairn_stepper_options_t, step_units), (136, 8));
    assert_eq!(place!(cairn_stepper_options_t, loss_scale), (144, 8));
    assert_eq!(place!(cairn_stepper_options_t, loss_scale_growth), (152, 8));
    assert_eq!(place!(cairn_stepper_options_t, loss_scale_backoff), (160, 8));
    assert_eq!(place!(cairn_stepper_options_t, loss_scale_interval), (168, 4));
    assert_eq!(place!(cairn_stepper_options_t, reserved), (172, 4));
}

#[test]
fn cairn_setting_info_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_setting_info_t>(), 72);
    assert_eq!(place!(cairn_setting_info_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_setting_info_t, name), (8, 8));
    assert_eq!(place!(cairn_setting_info_t, description), (16, 8));
    assert_eq!(place!(cairn_setting_info_t, allowed), (24, 8));
    assert_eq!(place!(cairn_setting_info_t, words), (32, 8));
    assert_eq!(place!(cairn_setting_info_t, default_value), (40, 8));
    assert_eq!(place!(cairn_setting_info_t, least), (48, 8));
    assert_eq!(place!(cairn_setting_info_t, most), (56, 8));
    assert_eq!(place!(cairn_setting_info_t, traits), (64, 4));
    assert_eq!(place!(cairn_setting_info_t, reserved), (68, 4));
}

#[test]
fn cairn_step_report_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_step_report_t>(), 224);
    assert_eq!(place!(cairn_step_report_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_step_report_t, step), (8, 8));
    assert_eq!(place!(cairn_step_report_t, skipped_steps), (16, 8));
    assert_eq!(place!(cairn_step_report_t, loss), (24, 8));
    assert_eq!(place!(cairn_step_report_t, weight), (32, 8));
    assert_eq!(place!(cairn_step_report_t, step_loss), (40, 8));
    assert_eq!(place!(cairn_step_report_t, step_weight), (48, 8));
    assert_eq!(place!(cairn_step_report_t, gradient_norm), (56, 8));
    assert_eq!(place!(cairn_step_report_t, rate), (64, 8));
    assert_eq!(place!(cairn_step_report_t, loss_scale), (72, 8));
    assert_eq!(place!(cairn_step_report_t, seconds), (80, 8));
    assert_eq!(place!(cairn_step_report_t, stall_seconds), (88, 8));
    assert_eq!(place!(cairn_step_report_t, optimizer_seconds), (96, 8));
    assert_eq!(place!(cairn_step_report_t, outcome), (104, 4));
    assert_eq!(place!(cairn_step_report_t, micro), (108, 4));
    assert_eq!(place!(cairn_step_report_t, copied_out_bytes), (112, 24));
    assert_eq!(place!(cairn_step_report_t, copied_in_bytes), (136, 24));
    assert_eq!(place!(cairn_step_report_t, copying_out_seconds), (160, 24));
    assert_eq!(place!(cairn_step_report_t, copying_in_seconds), (184, 24));
    assert_eq!(place!(cairn_step_report_t, fell_back), (208, 4));
    assert_eq!(place!(cairn_step_report_t, reserved), (212, 4));
    assert_eq!(place!(cairn_step_report_t, submit_seconds), (216, 8));
}

#[test]
fn cairn_metadata_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_metadata_t>(), 16);
    assert_eq!(place!(cairn_metadata_t, key), (0, 8));
    assert_eq!(place!(cairn_metadata_t, value), (8, 8));
}

#[test]
fn cairn_save_options_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_save_options_t>(), 48);
    assert_eq!(place!(cairn_save_options_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_save_options_t, metadata), (8, 8));
    assert_eq!(place!(cairn_save_options_t, metadata_count), (16, 8));
    assert_eq!(place!(cairn_save_options_t, files), (24, 8));
    assert_eq!(place!(cairn_save_options_t, file_count), (32, 8));
    assert_eq!(place!(cairn_save_options_t, without_frozen), (40, 4));
    assert_eq!(place!(cairn_save_options_t, reserved), (44, 4));
}

#[test]
fn cairn_name_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_name_t>(), 24);
    assert_eq!(place!(cairn_name_t, ours), (0, 8));
    assert_eq!(place!(cairn_name_t, theirs), (8, 8));
    assert_eq!(place!(cairn_name_t, transposed), (16, 4));
    assert_eq!(place!(cairn_name_t, stacked), (20, 4));
}

#[test]
fn cairn_merge_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_merge_t>(), 56);
    assert_eq!(place!(cairn_merge_t, weight), (0, 8));
    assert_eq!(place!(cairn_merge_t, a), (8, 8));
    assert_eq!(place!(cairn_merge_t, b), (16, 8));
    assert_eq!(place!(cairn_merge_t, magnitude), (24, 8));
    assert_eq!(place!(cairn_merge_t, format), (32, 8));
    assert_eq!(place!(cairn_merge_t, scale), (40, 8));
    assert_eq!(place!(cairn_merge_t, kind), (48, 4));
    assert_eq!(place!(cairn_merge_t, reserved), (52, 4));
}

#[test]
fn cairn_layout_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_layout_t>(), 24);
    assert_eq!(place!(cairn_layout_t, ours), (0, 8));
    assert_eq!(place!(cairn_layout_t, groups), (8, 4));
    assert_eq!(place!(cairn_layout_t, ways), (12, 4));
    assert_eq!(place!(cairn_layout_t, unit), (16, 4));
    assert_eq!(place!(cairn_layout_t, offset), (20, 4));
}

#[test]
fn cairn_import_options_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_import_options_t>(), 24);
    assert_eq!(place!(cairn_import_options_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_import_options_t, layouts), (8, 8));
    assert_eq!(place!(cairn_import_options_t, layout_count), (16, 8));
}

#[test]
fn cairn_export_options_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_export_options_t>(), 144);
    assert_eq!(place!(cairn_export_options_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_export_options_t, dtype), (8, 8));
    assert_eq!(place!(cairn_export_options_t, frozen_dtype), (16, 8));
    assert_eq!(place!(cairn_export_options_t, directory), (24, 4));
    assert_eq!(place!(cairn_export_options_t, reserved), (28, 4));
    assert_eq!(place!(cairn_export_options_t, shard_bytes), (32, 8));
    assert_eq!(place!(cairn_export_options_t, files), (40, 8));
    assert_eq!(place!(cairn_export_options_t, file_count), (48, 8));
    assert_eq!(place!(cairn_export_options_t, file_name), (56, 8));
    assert_eq!(place!(cairn_export_options_t, metadata), (64, 8));
    assert_eq!(place!(cairn_export_options_t, metadata_count), (72, 8));
    assert_eq!(place!(cairn_export_options_t, merges), (80, 8));
    assert_eq!(place!(cairn_export_options_t, merge_count), (88, 8));
    assert_eq!(place!(cairn_export_options_t, out_difference), (96, 8));
    assert_eq!(place!(cairn_export_options_t, dequantise), (104, 4));
    assert_eq!(place!(cairn_export_options_t, reserved2), (108, 4));
    assert_eq!(place!(cairn_export_options_t, container), (112, 8));
    assert_eq!(place!(cairn_export_options_t, gguf_metadata), (120, 8));
    assert_eq!(place!(cairn_export_options_t, layouts), (128, 8));
    assert_eq!(place!(cairn_export_options_t, layout_count), (136, 8));
}

#[test]
fn cairn_dataset_info_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_dataset_info_t>(), 32);
    assert_eq!(place!(cairn_dataset_info_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_dataset_info_t, tokens), (8, 8));
    assert_eq!(place!(cairn_dataset_info_t, windows), (16, 8));
    assert_eq!(place!(cairn_dataset_info_t, vocabulary), (24, 4));
    assert_eq!(place!(cairn_dataset_info_t, length), (28, 4));
}

#[test]
fn cairn_pictures_options_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_pictures_options_t>(), 216);
    assert_eq!(place!(cairn_pictures_options_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_pictures_options_t, data), (8, 8));
    assert_eq!(place!(cairn_pictures_options_t, test), (16, 4));
    assert_eq!(place!(cairn_pictures_options_t, width), (20, 4));
    assert_eq!(place!(cairn_pictures_options_t, height), (24, 4));
    assert_eq!(place!(cairn_pictures_options_t, channels), (28, 4));
    assert_eq!(place!(cairn_pictures_options_t, held_out), (32, 8));
    assert_eq!(place!(cairn_pictures_options_t, most), (40, 8));
    assert_eq!(place!(cairn_pictures_options_t, seed), (48, 8));
    assert_eq!(place!(cairn_pictures_options_t, classes), (56, 4));
    assert_eq!(place!(cairn_pictures_options_t, shuffle), (60, 4));
    assert_eq!(place!(cairn_pictures_options_t, workers), (64, 4));
    assert_eq!(place!(cairn_pictures_options_t, ahead), (68, 4));
    assert_eq!(place!(cairn_pictures_options_t, bad), (72, 4));
    assert_eq!(place!(cairn_pictures_options_t, crop), (76, 4));
    assert_eq!(place!(cairn_pictures_options_t, bicubic), (80, 4));
    assert_eq!(place!(cairn_pictures_options_t, padding), (84, 4));
    assert_eq!(place!(cairn_pictures_options_t, resize), (88, 8));
    assert_eq!(place!(cairn_pictures_options_t, scale), (96, 16));
    assert_eq!(place!(cairn_pictures_options_t, ratio), (112, 16));
    assert_eq!(place!(cairn_pictures_options_t, flip), (128, 8));
    assert_eq!(place!(cairn_pictures_options_t, brightness), (136, 8));
    assert_eq!(place!(cairn_pictures_options_t, contrast), (144, 8));
    assert_eq!(place!(cairn_pictures_options_t, saturation), (152, 8));
    assert_eq!(place!(cairn_pictures_options_t, hue), (160, 8));
    assert_eq!(place!(cairn_pictures_options_t, randaugment), (168, 4));
    assert_eq!(place!(cairn_pictures_options_t, magnitude), (172, 4));
    assert_eq!(place!(cairn_pictures_options_t, mixup), (176, 8));
    assert_eq!(place!(cairn_pictures_options_t, cutmix), (184, 8));
    assert_eq!(place!(cairn_pictures_options_t, mean), (192, 12));
    assert_eq!(place!(cairn_pictures_options_t, deviation), (204, 12));
}

#[test]
fn cairn_pictures_info_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_pictures_info_t>(), 32);
    assert_eq!(place!(cairn_pictures_info_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_pictures_info_t, count), (8, 8));
    assert_eq!(place!(cairn_pictures_info_t, bad), (16, 8));
    assert_eq!(place!(cairn_pictures_info_t, classes), (24, 4));
    assert_eq!(place!(cairn_pictures_info_t, texts), (28, 4));
}

#[test]
fn cairn_pictures_batch_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_pictures_batch_t>(), 56);
    assert_eq!(place!(cairn_pictures_batch_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_pictures_batch_t, pixels), (8, 8));
    assert_eq!(place!(cairn_pictures_batch_t, labels), (16, 8));
    assert_eq!(place!(cairn_pictures_batch_t, others), (24, 8));
    assert_eq!(place!(cairn_pictures_batch_t, shares), (32, 8));
    assert_eq!(place!(cairn_pictures_batch_t, items), (40, 8));
    assert_eq!(place!(cairn_pictures_batch_t, masks), (48, 8));
}

#[test]
fn cairn_sampling_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_sampling_t>(), 56);
    assert_eq!(place!(cairn_sampling_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_sampling_t, repetition_penalty), (8, 8));
    assert_eq!(place!(cairn_sampling_t, temperature), (16, 8));
    assert_eq!(place!(cairn_sampling_t, top_p), (24, 8));
    assert_eq!(place!(cairn_sampling_t, min_p), (32, 8));
    assert_eq!(place!(cairn_sampling_t, seed), (40, 8));
    assert_eq!(place!(cairn_sampling_t, top_k), (48, 4));
    assert_eq!(place!(cairn_sampling_t, reserved), (52, 4));
}

#[test]
fn cairn_generator_info_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_generator_info_t>(), 72);
    assert_eq!(place!(cairn_generator_info_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_generator_info_t, samples), (8, 8));
    assert_eq!(place!(cairn_generator_info_t, vocabulary), (16, 8));
    assert_eq!(place!(cairn_generator_info_t, capacity), (24, 8));
    assert_eq!(place!(cairn_generator_info_t, cache_bytes), (32, 8));
    assert_eq!(place!(cairn_generator_info_t, prefill_tokens), (40, 8));
    assert_eq!(place!(cairn_generator_info_t, decode_tokens), (48, 8));
    assert_eq!(place!(cairn_generator_info_t, prefill_seconds), (56, 8));
    assert_eq!(place!(cairn_generator_info_t, decode_seconds), (64, 8));
}

#[test]
fn cairn_model_options_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_model_options_t>(), 88);
    assert_eq!(place!(cairn_model_options_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_model_options_t, settings), (8, 8));
    assert_eq!(place!(cairn_model_options_t, setting_count), (16, 8));
    assert_eq!(place!(cairn_model_options_t, device), (24, 8));
    assert_eq!(place!(cairn_model_options_t, amp), (32, 8));
    assert_eq!(place!(cairn_model_options_t, format), (40, 8));
    assert_eq!(place!(cairn_model_options_t, budget_bytes), (48, 8));
    assert_eq!(place!(cairn_model_options_t, seed), (56, 8));
    assert_eq!(place!(cairn_model_options_t, steps), (64, 8));
    assert_eq!(place!(cairn_model_options_t, threads), (72, 4));
    assert_eq!(place!(cairn_model_options_t, accumulate), (76, 4));
    assert_eq!(place!(cairn_model_options_t, context), (80, 4));
    assert_eq!(place!(cairn_model_options_t, reserved), (84, 4));
}

#[test]
fn cairn_model_info_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_model_info_t>(), 72);
    assert_eq!(place!(cairn_model_info_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_model_info_t, parameters), (8, 8));
    assert_eq!(place!(cairn_model_info_t, trainable_parameters), (16, 8));
    assert_eq!(place!(cairn_model_info_t, planned_bytes), (24, 24));
    assert_eq!(place!(cairn_model_info_t, seq), (48, 8));
    assert_eq!(place!(cairn_model_info_t, batch), (56, 8));
    assert_eq!(place!(cairn_model_info_t, vocabulary), (64, 8));
}

#[test]
fn cairn_model_report_t_lies_as_promised() {
    assert_eq!(size_of::<cairn_model_report_t>(), 40);
    assert_eq!(place!(cairn_model_report_t, struct_size), (0, 8));
    assert_eq!(place!(cairn_model_report_t, loss), (8, 8));
    assert_eq!(place!(cairn_model_report_t, seconds), (16, 8));
    assert_eq!(place!(cairn_model_report_t, step), (24, 8));
    assert_eq!(place!(cairn_model_report_t, tokens), (32, 8));
}
