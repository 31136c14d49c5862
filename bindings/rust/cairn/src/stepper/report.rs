//! What a micro-batch came to.
use crate::enums::Outcome;
use cairn_sys as sys;

macro_rules! report {
    ($($(#[$doc:meta])* $name:ident: $kind:ty = $read:expr,)*) => {
        /// What a micro-batch came to. Arrays are by tier: device, host, disk.
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[non_exhaustive]
        pub struct StepReport {
            $($(#[$doc])* pub $name: $kind,)*
        }

        impl StepReport {
            pub(crate) fn read(raw: &sys::cairn_step_report_t) -> StepReport {
                StepReport { $($name: $read(raw),)* }
            }
        }
    };
}

type Raw = sys::cairn_step_report_t;

report! {
    /// What became of it.
    outcome: Outcome = |raw: &Raw| Outcome::from(raw.outcome),
    /// Effective batches completed after it, applied or skipped.
    step: u64 = |raw: &Raw| raw.step,
    /// Of these: skipped.
    skipped_steps: u64 = |raw: &Raw| raw.skipped_steps,
    /// Micro-batches accumulated after it.
    micro: u32 = |raw: &Raw| raw.micro,
    /// Its loss: sum / weight.
    loss: f64 = |raw: &Raw| raw.loss,
    /// Its weight: the denominator of its loss.
    weight: f64 = |raw: &Raw| raw.weight,
    /// The loss of the effective batch so far.
    step_loss: f64 = |raw: &Raw| raw.step_loss,
    /// The weight of the effective batch so far.
    step_weight: f64 = |raw: &Raw| raw.step_weight,
    /// The gradients' global norm before clipping, where the effective batch is complete.
    gradient_norm: f64 = |raw: &Raw| raw.gradient_norm,
    /// The learning rate.
    rate: f64 = |raw: &Raw| raw.rate,
    /// The loss's scale; 1 but with 16-bit floating point.
    loss_scale: f64 = |raw: &Raw| raw.loss_scale,
    /// How long forward and backward took.
    seconds: f64 = |raw: &Raw| raw.seconds,
    /// Of these: waiting for copies.
    stall_seconds: f64 = |raw: &Raw| raw.stall_seconds,
    /// How long the update took.
    optimizer_seconds: f64 = |raw: &Raw| raw.optimizer_seconds,
    /// How long the host handed work to the device.
    submit_seconds: f64 = |raw: &Raw| raw.submit_seconds,
    /// Bytes copied from the device, by tier.
    copied_out_bytes: [u64; 3] = |raw: &Raw| raw.copied_out_bytes,
    /// Bytes copied back, by tier.
    copied_in_bytes: [u64; 3] = |raw: &Raw| raw.copied_in_bytes,
    /// How long copies from the device took.
    copying_out_seconds: [f64; 3] = |raw: &Raw| raw.copying_out_seconds,
    /// How long copies back took.
    copying_in_seconds: [f64; 3] = |raw: &Raw| raw.copying_in_seconds,
    /// Whether the disk tier failed, and the micro-batch ran again from a plan without it.
    fell_back: bool = |raw: &Raw| raw.fell_back != 0,
}
