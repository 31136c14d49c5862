//! Schedules of the learning rate.
use super::options::StepperOptions;
use crate::error::{Error, Result};
use crate::handle::check;
use crate::text::Texts;
use cairn_sys as sys;

/// A schedule of the learning rate and its parameters; [`schedules`](crate::schedules) lists them. Several follow each
/// other, each for as many steps as it says.
///
/// ```
/// use cairn::{schedule_rates, Schedule, StepperOptions};
/// let options = StepperOptions::new(1e-3)
///     .total_steps(100)
///     .then(Schedule::new("linear").steps(10).value("start_factor", 0.1).value("end_factor", 1.0))
///     .then(Schedule::new("cosine"));
/// let rates = schedule_rates(&options, 0, 100)?;
/// assert!(rates[0].rate < rates[9].rate && rates[99].rate < rates[10].rate);
/// # Ok::<(), cairn::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Schedule {
    name: String,
    steps: u64,
    values: Vec<(String, Setting)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Setting {
    Number(f64),
    Word(String),
}

impl Schedule {
    /// A schedule with its parameters' defaults.
    pub fn new(name: &str) -> Schedule {
        Schedule { name: name.to_string(), steps: 0, values: Vec::new() }
    }

    /// How many steps it lasts before the next one begins; only the last one may leave it open.
    pub fn steps(mut self, steps: u64) -> Schedule {
        self.steps = steps;
        self
    }

    /// A parameter. A list has one of these for each element, ascending.
    pub fn value(mut self, name: &str, value: f64) -> Schedule {
        self.values.push((name.to_string(), Setting::Number(value)));
        self
    }

    /// A parameter that is one of a few words.
    pub fn word(mut self, name: &str, word: &str) -> Schedule {
        self.values.push((name.to_string(), Setting::Word(word.to_string())));
        self
    }

    /// The values and the name and borrow from `texts`.
    pub(crate) fn raw_values(&self, texts: &mut Texts) -> Result<Vec<sys::cairn_schedule_value_t>> {
        let raw = |(name, setting): &(String, Setting)| {
            let name = texts.add("a parameter of a schedule", name)?;
            Ok(match setting {
                Setting::Number(value) => sys::cairn_schedule_value_t { name, word: std::ptr::null(), value: *value },
                Setting::Word(word) => {
                    sys::cairn_schedule_value_t { name, word: texts.add("a word of a schedule", word)?, value: 0.0 }
                }
            })
        };
        self.values.iter().map(raw).collect()
    }

    /// Borrows `values` and from `texts`.
    pub(crate) fn raw(
        &self,
        texts: &mut Texts,
        values: &[sys::cairn_schedule_value_t],
    ) -> Result<sys::cairn_schedule_t> {
        Ok(sys::cairn_schedule_t {
            name: texts.add("the name of a schedule", &self.name)?,
            steps: self.steps,
            values: values.as_ptr(),
            value_count: values.len() as u64,
        })
    }
}

/// What a schedule gives one step.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Rate {
    /// The learning rate.
    pub rate: f64,
    /// The momentum, where the schedule has one.
    pub momentum: Option<f64>,
}

const MAX_RATES: usize = 1 << 27;

/// What a stepper with these options would give the updates of steps `first` to `first + count - 1`, counted from 0.
pub fn schedule_rates(options: &StepperOptions, first: u64, count: usize) -> Result<Vec<Rate>> {
    // A program whose memory has no room for them would end.
    if count > MAX_RATES {
        return Err(Error::argument(format!(
            "count is {count}; at most {MAX_RATES} are given at once: ask for them in parts"
        )));
    }
    let (mut rates, mut momenta) = (vec![0.0; count], vec![0.0; count]);
    let (to_rates, to_momenta) = (rates.as_mut_ptr(), momenta.as_mut_ptr());
    options.with_raw(|raw| {
        check(|error| unsafe { sys::cairn_schedule_rates(raw, first, count, to_rates, to_momenta, error) })
    })?;
    let each = |(rate, momentum): (f64, f64)| Rate { rate, momentum: (!momentum.is_nan()).then_some(momentum) };
    Ok(rates.into_iter().zip(momenta).map(each).collect())
}
