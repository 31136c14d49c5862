//! How parameters are updated.
use super::schedule::Schedule;
use crate::error::Result;
use crate::handle::blank;
use crate::plan::options::Hyper;
use crate::text::Texts;
use cairn_sys as sys;

/// The scale of losses in plans with [`Amp::Fp16`](crate::Amp::Fp16), by the rule of `torch.amp.GradScaler`: a step whose
/// gradients are not finite is skipped and multiplies it by `backoff`; `interval` others in a row multiply it by `growth`.
/// A field of 0 means the default.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LossScale {
    /// The first scale; 0: 2^16 over the rows of an effective batch.
    pub initial: f64,
    /// 0: 2.
    pub growth: f64,
    /// 0: 0.5.
    pub backoff: f64,
    /// 0: 2000.
    pub interval: u32,
}

/// How a stepper updates parameters.
///
/// ```
/// use cairn::{LossScale, StepperOptions};
/// let options = StepperOptions::new(1e-2)
///     .cosine(1000, 1e-3)
///     .warmup_steps(50)
///     .micro_steps(4)
///     .clip_norm(0.5)
///     .hyper("beta2", 0.98)
///     .loss_scale(LossScale { initial: 1024.0, ..LossScale::default() });
/// # let _ = options;
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct StepperOptions {
    seed: u64,
    warmup_steps: u64,
    warmup_units: u64,
    step_units: u64,
    total_steps: u64,
    rate: f64,
    minimum_rate: f64,
    clip_norm: f64,
    schedule: u32,
    schedules: Vec<Schedule>,
    micro_steps: u32,
    hypers: Vec<Hyper>,
    loss_scale: LossScale,
}

impl StepperOptions {
    /// A constant learning rate, one micro-batch a step, gradients clipped at a global norm of 1.
    pub fn new(rate: f64) -> StepperOptions {
        StepperOptions {
            seed: 0,
            warmup_steps: 0,
            warmup_units: 0,
            step_units: 0,
            total_steps: 0,
            rate,
            minimum_rate: 0.0,
            clip_norm: 1.0,
            schedule: sys::CAIRN_SCHEDULE_CONSTANT,
            schedules: Vec::new(),
            micro_steps: 1,
            hypers: Vec::new(),
            loss_scale: LossScale::default(),
        }
    }

    /// Of dropout.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Micro-batches of an effective batch.
    pub fn micro_steps(mut self, micro_steps: u32) -> Self {
        self.micro_steps = micro_steps;
        self
    }

    /// The global norm at which gradients are clipped; 0: not at all.
    pub fn clip_norm(mut self, norm: f64) -> Self {
        self.clip_norm = norm;
        self
    }

    /// A linear climb to the rate before the schedule, whose own steps count from its end.
    pub fn warmup_steps(mut self, steps: u64) -> Self {
        self.warmup_steps = steps;
        self
    }

    /// The same counted in samples, tokens, ...: how many of them in all, and how many a step takes.
    pub fn warmup_units(mut self, units: u64, step_units: u64) -> Self {
        self.warmup_units = units;
        self.step_units = step_units;
        self
    }

    /// Half a cosine down to a lowest rate at step `total_steps`, the warm-up included.
    pub fn cosine(mut self, total_steps: u64, minimum_rate: f64) -> Self {
        self.schedule = sys::CAIRN_SCHEDULE_COSINE;
        self.minimum_rate = minimum_rate;
        self.total_steps(total_steps)
    }

    /// A straight line down to a lowest rate at step `total_steps`, the warm-up included.
    pub fn linear(mut self, total_steps: u64, minimum_rate: f64) -> Self {
        self.schedule = sys::CAIRN_SCHEDULE_LINEAR;
        self.minimum_rate = minimum_rate;
        self.total_steps(total_steps)
    }

    /// One more schedule, after those named before, instead of `cosine` and `linear`.
    pub fn then(mut self, schedule: Schedule) -> Self {
        self.schedule = sys::CAIRN_SCHEDULE_CONSTANT;
        self.schedules.push(schedule);
        self
    }

    /// Where schedules end that have an end, the warm-up included.
    pub fn total_steps(mut self, steps: u64) -> Self {
        self.total_steps = steps;
        self
    }

    /// The lowest rate, where the schedule ends.
    pub fn minimum_rate(mut self, rate: f64) -> Self {
        self.minimum_rate = rate;
        self
    }

    /// A hyper-parameter of all groups whose optimizer has one of that name, instead of the plan's.
    pub fn hyper(mut self, name: &str, value: f64) -> Self {
        self.hypers.push(Hyper::new(None, name, value));
        self
    }

    /// A hyper-parameter of one group, by its pattern; `""`: of the parameters that no group names.
    pub fn hyper_of(mut self, group: &str, name: &str, value: f64) -> Self {
        self.hypers.push(Hyper::new(Some(group), name, value));
        self
    }

    /// The scale of losses in plans with 16-bit floating point.
    pub fn loss_scale(mut self, scale: LossScale) -> Self {
        self.loss_scale = scale;
        self
    }

    /// Runs `call` with the header's struct, which borrows all it points to.
    pub(crate) fn with_raw<T>(&self, call: impl FnOnce(&sys::cairn_stepper_options_t) -> Result<T>) -> Result<T> {
        let mut texts = Texts::default();
        let hypers = self.hypers.iter().map(|hyper| hyper.raw(&mut texts)).collect::<Result<Vec<_>>>()?;
        let values = self.schedules.iter().map(|each| each.raw_values(&mut texts)).collect::<Result<Vec<_>>>()?;
        let pairs = self.schedules.iter().zip(&values);
        let schedules = pairs.map(|(each, values)| each.raw(&mut texts, values)).collect::<Result<Vec<_>>>()?;
        let mut raw: sys::cairn_stepper_options_t = blank();
        raw.seed = self.seed;
        raw.warmup_steps = self.warmup_steps;
        raw.warmup_units = self.warmup_units;
        raw.step_units = self.step_units;
        raw.total_steps = self.total_steps;
        raw.rate = self.rate;
        raw.minimum_rate = self.minimum_rate;
        raw.clip_norm = self.clip_norm;
        raw.schedule = self.schedule;
        raw.micro_steps = self.micro_steps;
        // As CAIRN_STEPPER_OPTIONS_INIT has them; `hypers` take their place.
        (raw.beta1, raw.beta2, raw.eps, raw.weight_decay) = (0.9, 0.95, 1e-8, 0.1);
        (raw.hypers, raw.hyper_count) = (hypers.as_ptr(), hypers.len() as u64);
        (raw.schedules, raw.schedule_count) = (schedules.as_ptr(), schedules.len() as u64);
        raw.loss_scale = self.loss_scale.initial;
        raw.loss_scale_growth = self.loss_scale.growth;
        raw.loss_scale_backoff = self.loss_scale.backoff;
        raw.loss_scale_interval = self.loss_scale.interval;
        call(&raw)
    }
}

/// The rate of `CAIRN_STEPPER_OPTIONS_INIT`.
impl Default for StepperOptions {
    fn default() -> StepperOptions {
        StepperOptions::new(3e-4)
    }
}
