//! What the library knows by name: ops, optimizers, schedules, what these take, classes of mixed precision, formats,
//! counters.
use crate::error::{Result, Status};
use crate::handle::{blank, check};
use crate::text::{lent, Texts};
use cairn_sys as sys;

macro_rules! catalogue {
    ($(#[$list_doc:meta])* $list:ident, $(#[$doc:meta])* $name:ident, $raw:ident, $describe:ident {
        $($(#[$field_doc:meta])* $field:ident,)*
    } { $($(#[$flag_doc:meta])* $flag:ident,)* } $({ $($(#[$number_doc:meta])* $number:ident,)* })?) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $name {
            $($(#[$field_doc])* pub $field: &'static str,)*
            $($(#[$flag_doc])* pub $flag: bool,)*
            $($($(#[$number_doc])* pub $number: u32,)*)?
        }

        $(#[$list_doc])*
        pub fn $list() -> impl Iterator<Item = $name> {
            (0..).map_while(|index| {
                let mut raw: sys::$raw = blank();
                check(|error| unsafe { sys::$describe(index, &mut raw, error) }).ok()?;
                // The texts live as long as the library.
                Some(unsafe { $name { $($field: lent(raw.$field),)* $($flag: raw.$flag != 0,)* $($($number: raw.$number,)*)? } })
            })
        }
    };
}

catalogue! {
    /// The ops of the library.
    ///
    /// ```
    /// let linear = cairn::ops().find(|op| op.name == "linear").unwrap();
    /// assert_eq!(linear.inputs, "x w b?");
    /// ```
    ops,
    /// An op of the library. Words in its texts are separated by blanks.
    OpInfo, cairn_op_info_t, cairn_op_describe {
        /// As [`GraphBuilder::op`](crate::GraphBuilder::op) takes it.
        name,
        /// Operands in order; `?` after a name: may be left out.
        inputs,
        /// `?` after a name: made only where the description says so.
        outputs,
        /// `name:type`, type `i` integer, `f` real, `s` word, `l` list of integers, `r` list of reals; `!` after it: must be given.
        attributes,
        /// What it computes, shapes and defaults.
        description,
        /// What mixed precision makes of it where no rule says otherwise.
        amp_class,
    } {}
}

catalogue! {
    /// The optimizers that plans know.
    ///
    /// ```
    /// assert!(cairn::optimizers().any(|optimizer| optimizer.name == "adamw"));
    /// ```
    optimizers,
    /// An optimizer.
    OptimizerInfo, cairn_optimizer_info_t, cairn_optimizer_describe {
        /// As [`PlanOptions::optimizer`](crate::PlanOptions::optimizer) takes it.
        name,
        /// What it keeps of each parameter; `?name` after a word: only where that hyper-parameter is not 0.
        states,
        /// `name=default`, separated by blanks.
        hypers,
        /// How it updates.
        description,
        /// The optimizer of those parameters that this one does not take; empty: it takes all.
        otherwise,
    } {}
}

catalogue! {
    /// The schedules that steppers know.
    ///
    /// ```
    /// let cosine = cairn::schedules().find(|schedule| schedule.name == "cosine").unwrap();
    /// assert!(cosine.ends);
    /// ```
    schedules,
    /// A schedule of the learning rate.
    ScheduleInfo, cairn_schedule_info_t, cairn_schedule_describe {
        /// As [`Schedule::new`](crate::Schedule::new) takes it.
        name,
        /// `name=default`, `name=word|word` (the first is the default), or `name=` for a list; separated by blanks.
        parameters,
        /// What it does.
        description,
    } {
        /// Whether it is laid out over its steps, and needs to know where it ends.
        ends,
    }
}

catalogue! {
    /// The classes that ops have under mixed precision.
    ///
    /// ```
    /// let by_rule: Vec<_> = cairn::amp_classes().filter(|class| class.by_rule).map(|class| class.name).collect();
    /// assert!(by_rule.contains(&"half") && by_rule.contains(&"full"));
    /// ```
    amp_classes,
    /// A class of mixed precision.
    AmpClassInfo, cairn_amp_class_info_t, cairn_amp_class_describe {
        /// As [`AmpRule`](crate::AmpRule) takes it.
        name,
        /// What it does.
        description,
    } {
        /// Whether a rule may give it.
        by_rule,
    }
}

catalogue! {
    /// The formats that tensors are stored in.
    ///
    /// ```
    /// let int8 = cairn::formats().find(|format| format.name == "int8").unwrap();
    /// assert!(int8.block == 64 && int8.read == "dequantised" && !int8.trains);
    /// ```
    formats,
    /// A format that tensors are stored in.
    FormatInfo, cairn_format_info_t, cairn_format_describe {
        /// As [`PlanOptions::format`](crate::PlanOptions::format) takes it.
        name,
        /// The format that kernels compute with.
        computed_as,
        /// How ops read a parameter that is stored so: `as stored`; `dequantised`, the plan decodes it before they do;
        /// `by updates`: only optimizers read it.
        read,
    } {
        /// Whether a parameter that is trained may be stored so.
        trains,
    } {
        /// Bits of one value.
        bits,
        /// Values that are stored together.
        block,
        /// What the last dimension of a parameter is a multiple of.
        row,
        /// Bytes of a block besides its values.
        scale_bytes,
    }
}

catalogue! {
    /// What plans count of how they do things.
    plan_counters,
    /// A number that plans count.
    PlanCounterInfo, cairn_plan_counter_info_t, cairn_plan_counter_describe {
        /// As [`Plan::counter`](crate::Plan::counter) takes it.
        name,
        /// `count`, `bytes`, `seconds`, or `tier`: 0 device, 1 host, 2 disk.
        unit,
        /// What it counts.
        description,
    } {}
}

/// What has settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsOf<'a> {
    /// An optimizer, by its name.
    Optimizer(&'a str),
    /// A schedule, by its name.
    Schedule(&'a str),
    /// Every stepper.
    Stepper,
}

/// A number or a word that an optimizer, a schedule or a stepper takes, and what it may be.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct SettingInfo {
    /// Its name.
    pub name: &'static str,
    /// What it is; of a schedule's empty: the schedule's own description says it.
    pub description: &'static str,
    /// What it may be, in words; empty where `words` says it.
    pub allowed: &'static str,
    /// It is one of these, separated by blanks, the first by default; empty: it is a number.
    pub words: &'static str,
    /// The default.
    pub default_value: f64,
    /// The lower bound.
    pub least: f64,
    /// The upper bound.
    pub most: f64,
    /// Whether the lower bound itself is out of range.
    pub above: bool,
    /// Whether the upper bound itself is out of range.
    pub below: bool,
    /// Whether it is an integer.
    pub integer: bool,
    /// Whether 0 is in range, too, and stands for a default.
    pub or_zero: bool,
    /// Whether it is several such numbers, ascending.
    pub list: bool,
    /// Whether it is 0 or 1, no or yes.
    pub switch: bool,
}

/// What an optimizer, a schedule or a stepper takes. Errors: `InvalidArgument` (there is none of that name).
///
/// ```
/// let settings = cairn::settings(cairn::SettingsOf::Optimizer("adamw"))?;
/// let beta1 = settings.iter().find(|setting| setting.name == "beta1").unwrap();
/// assert_eq!((beta1.least, beta1.most, beta1.below), (0.0, 1.0, true));
/// # Ok::<(), cairn::Error>(())
/// ```
pub fn settings(of: SettingsOf<'_>) -> Result<Vec<SettingInfo>> {
    let (kind, owner) = match of {
        SettingsOf::Optimizer(name) => (sys::CAIRN_SETTINGS_OF_OPTIMIZER, Some(name)),
        SettingsOf::Schedule(name) => (sys::CAIRN_SETTINGS_OF_SCHEDULE, Some(name)),
        SettingsOf::Stepper => (sys::CAIRN_SETTINGS_OF_STEPPER, None),
    };
    let mut texts = Texts::default();
    let owner = texts.add_some("the name of what has settings", owner)?;
    let mut rows = Vec::new();
    loop {
        let mut raw: sys::cairn_setting_info_t = blank();
        match check(|error| unsafe { sys::cairn_setting_describe(kind, owner, rows.len(), &mut raw, error) }) {
            Err(error) if error.status() == Status::NotFound => return Ok(rows),
            done => done?,
        }
        let is = |trait_: u32| raw.traits & trait_ != 0;
        // The texts live as long as the library.
        rows.push(unsafe {
            SettingInfo {
                name: lent(raw.name),
                description: lent(raw.description),
                allowed: lent(raw.allowed),
                words: lent(raw.words),
                default_value: raw.default_value,
                least: raw.least,
                most: raw.most,
                above: is(sys::CAIRN_SETTING_ABOVE),
                below: is(sys::CAIRN_SETTING_BELOW),
                integer: is(sys::CAIRN_SETTING_INTEGER),
                or_zero: is(sys::CAIRN_SETTING_OR_ZERO),
                list: is(sys::CAIRN_SETTING_LIST),
                switch: is(sys::CAIRN_SETTING_SWITCH),
            }
        });
    }
}

#[cfg(test)]
mod tests {
    /// Every op of the library that the methods were made from has one, and none is made up.
    #[test]
    fn ops_have_methods() {
        let known: Vec<_> = super::ops().map(|op| op.name).collect();
        for name in crate::graph::ops::NAMES {
            assert!(known.contains(name), "{name}");
        }
    }
}
