//! What a plan says about itself.
use crate::enums::{Decision, Tier};
use crate::text::lent;
use cairn_sys as sys;

macro_rules! summary {
    ($($(#[$doc:meta])* $name:ident: $kind:ty,)*) => {
        /// A plan in numbers. Bytes are of the device where no tier is named, and seconds are of one micro-batch.
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[non_exhaustive]
        pub struct PlanSummary {
            $($(#[$doc])* pub $name: $kind,)*
        }

        impl PlanSummary {
            pub(crate) fn read(raw: &sys::cairn_plan_summary_t) -> PlanSummary {
                PlanSummary { $($name: raw.$name,)* }
            }
        }
    };
}

summary! {
    /// Per tier (device, host, disk): what a session takes, and the highest byte that a run uses.
    peak_bytes: [u64; 3],
    /// The budget; 0: none.
    budget_bytes: u64,
    /// Most bytes alive at once: the arena less the gaps of its layout.
    live_peak_bytes: u64,
    /// Parameters, gradients, moments, packed weights and inputs.
    persistent_bytes: u64,
    /// Parameters at the peak.
    parameters_bytes: u64,
    /// Gradients at the peak.
    gradients_bytes: u64,
    /// Optimizer state at the peak.
    optimizer_bytes: u64,
    /// Activations at the peak.
    activations_bytes: u64,
    /// Workspace of kernels at the peak.
    workspace_bytes: u64,
    /// Most bytes of activations at once.
    activation_peak_bytes: u64,
    /// Of the values that backward needs: kept.
    keep_bytes: u64,
    /// Of the values that backward needs: computed again.
    recompute_bytes: u64,
    /// Of the values that backward needs: offloaded to the host.
    offload_host_bytes: u64,
    /// Of the values that backward needs: offloaded to disk.
    offload_disk_bytes: u64,
    /// What the plan is predicted to take.
    predicted_seconds: f64,
    /// What keeping everything would take.
    keep_all_seconds: f64,
    /// What no plan under this budget can be faster than.
    bound_seconds: f64,
    /// How far the plan may be from the best: (predicted - bound) / bound.
    gap: f64,
    /// How long planning took.
    solve_seconds: f64,
    /// Rows of [`Plan::values`](crate::Plan::values).
    value_count: u64,
    /// Ops of forward and backward.
    op_count: u64,
    /// Instructions of the program that a session runs.
    instruction_count: u64,
    /// Regions of the graph.
    region_count: u64,
    /// Predicted, once per step: packed weights, gradient norm, optimizer.
    update_seconds: f64,
    /// Predicted: inputs written, work submitted, loss read.
    host_seconds: f64,
    /// Ops whose seconds come from a profile.
    measured_op_count: u64,
    /// Of optimizer state and master weights: in the host tier.
    optimizer_host_bytes: u64,
    /// Of optimizer state and master weights: in the disk tier.
    optimizer_disk_bytes: u64,
    /// Packed weights, for faster products.
    packed_bytes: u64,
    /// Packed weights that were given up to meet the budget.
    unpacked_bytes: u64,
    /// Ops that write over an input.
    in_place_op_count: u64,
    /// Where what lives on the host is updated: 1 there, where it lies; 0 on the device, or nothing lives there.
    update_at: u64,
    /// Parameters that are updated where the next micro-batch uses them first, or as soon as they are looked at.
    deferred_update_count: u64,
    /// Of those: that the host's processors update, where the device does not reach the host's memory.
    host_update_count: u64,
    /// Whose gradients the host's processors add up there, for such a device.
    host_add_count: u64,
}

/// A row of a plan's table of values. Texts are borrowed from the plan.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PlanValue<'p> {
    /// The value's name.
    pub name: &'p str,
    /// The path of its region; empty outside.
    pub region: &'p str,
    /// Why it was decided so.
    pub reason: &'p str,
    /// What it is: parameter, gradient, optimizer, packed, input, output, scratch, activation, backward.
    pub category: &'p str,
    /// Its size.
    pub bytes: u64,
    /// Where it first lies in the device's arena; `None`: it lives in a tier.
    pub offset_bytes: Option<u64>,
    /// What was decided.
    pub decision: Decision,
    /// With `Offload`: where it goes; with `Persistent`: where it lives.
    pub tier: Tier,
    /// The plan's steps at which its life begins and ends.
    pub steps: (i32, i32),
}

impl<'p> PlanValue<'p> {
    /// # Safety
    /// The texts live for `'p`.
    pub(crate) unsafe fn read(raw: &sys::cairn_plan_value_t) -> PlanValue<'p> {
        PlanValue {
            name: lent(raw.name),
            region: lent(raw.region),
            reason: lent(raw.reason),
            category: lent(raw.category),
            bytes: raw.bytes,
            offset_bytes: u64::try_from(raw.offset_bytes).ok(),
            decision: Decision::from(raw.decision),
            tier: Tier::from(raw.tier),
            steps: (raw.first_step, raw.last_step),
        }
    }
}

/// What the bytes of a tier are for, at the tier's peak, which they add up to. Borrowed from the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanMemory<'p> {
    /// Parameters; on the device with packed weights.
    pub parameters_bytes: u64,
    /// Gradients.
    pub gradients_bytes: u64,
    /// Optimizer state.
    pub optimizer_bytes: u64,
    /// Activations; in a lower tier: the copies that come back.
    pub activations_bytes: u64,
    /// Workspace of kernels and gaps of the layout.
    pub workspace_bytes: u64,
    /// The op that runs at the peak, or is the next to; empty: what persists is all there is.
    pub peak_at: &'p str,
}

impl<'p> PlanMemory<'p> {
    /// # Safety
    /// The text lives for `'p`.
    pub(crate) unsafe fn read(raw: &sys::cairn_plan_memory_t) -> PlanMemory<'p> {
        PlanMemory {
            parameters_bytes: raw.parameters_bytes,
            gradients_bytes: raw.gradients_bytes,
            optimizer_bytes: raw.optimizer_bytes,
            activations_bytes: raw.activations_bytes,
            workspace_bytes: raw.workspace_bytes,
            peak_at: lent(raw.peak_at),
        }
    }
}

/// An op of the graph that was planned, and its precision. Texts are borrowed from the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanOp<'p> {
    /// The op's name in the graph.
    pub name: &'p str,
    /// What it is, as [`GraphBuilder::op`](crate::GraphBuilder::op) took it.
    pub op: &'p str,
    /// The path of its region; empty outside.
    pub region: &'p str,
    /// Its class of mixed precision.
    pub amp_class: &'p str,
    /// The number of the rule that says so; `None`: the class is the op's own.
    pub amp_rule: Option<usize>,
}

impl<'p> PlanOp<'p> {
    /// # Safety
    /// The texts live for `'p`.
    pub(crate) unsafe fn read(raw: &sys::cairn_plan_op_t) -> PlanOp<'p> {
        PlanOp {
            name: lent(raw.name),
            op: lent(raw.op),
            region: lent(raw.region),
            amp_class: lent(raw.amp_class),
            amp_rule: usize::try_from(raw.amp_rule).ok(),
        }
    }
}

/// What a plan's predicted seconds rest on.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct PlanRates<'p> {
    /// `"measured"` by this process, `"cached"` from an earlier one, `"file"`, `"model"`, `"profile"` or
    /// `"device-model"`.
    pub source: &'p str,
    /// The file that rates stand in; empty: none.
    pub path: &'p str,
    /// Why rates were not kept, or what was kept is not used; empty: nothing to tell.
    pub notice: &'p str,
    /// Of long products in float32.
    pub f32_flops_per_second: f64,
    /// Of long products in bfloat16.
    pub bf16_flops_per_second: f64,
    /// Of streams that no cache holds.
    pub memory_bytes_per_second: f64,
    /// That measuring took, now or then.
    pub measuring_seconds: f64,
}

impl<'p> PlanRates<'p> {
    /// # Safety
    /// The texts live for `'p`.
    pub(crate) unsafe fn read(raw: &sys::cairn_plan_rates_t) -> PlanRates<'p> {
        PlanRates {
            source: lent(raw.source),
            path: lent(raw.path),
            notice: lent(raw.notice),
            f32_flops_per_second: raw.f32_flops_per_second,
            bf16_flops_per_second: raw.bf16_flops_per_second,
            memory_bytes_per_second: raw.memory_bytes_per_second,
            measuring_seconds: raw.measuring_seconds,
        }
    }
}
