//! What the library knows by name: ops, optimizers, schedules, classes of mixed precision, formats.
use crate::handle::{blank, check};
use crate::text::lent;
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
        /// Operands in order; `?` behind a name: may be left out.
        inputs,
        /// `?` behind a name: made only where the description says so.
        outputs,
        /// `name:type`, type `i` integer, `f` real, `s` word, `l` list of integers; `!` behind it: must be given.
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
        /// What it keeps of each parameter; `?name` behind a word: only where that hyper-parameter is not 0.
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
        /// How ops read a parameter that is stored so: `as it lies`; `dequantised`, the plan decodes it before they do;
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
        /// Bytes that a block has beside its values.
        scale_bytes,
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
