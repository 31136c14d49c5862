//! The enumerations of the header.

/// An enumeration of the header: its words, its numbers, and what newer libraries may say.
macro_rules! enumeration {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $word:ident = $number:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$word_doc])* $word,)*
            /// A number of a newer library than this crate.
            Unknown(u32),
        }

        impl From<u32> for $name {
            fn from(number: u32) -> $name {
                match number {
                    $(cairn_sys::$number => $name::$word,)*
                    other => $name::Unknown(other),
                }
            }
        }

        impl From<$name> for u32 {
            fn from(word: $name) -> u32 {
                match word {
                    $($name::$word => cairn_sys::$number,)*
                    $name::Unknown(other) => other,
                }
            }
        }
    };
}

enumeration! {
    /// Where bytes live.
    Tier {
        /// The arena of the device that computes.
        Device = CAIRN_TIER_DEVICE,
        /// Memory of the host.
        Host = CAIRN_TIER_HOST,
        /// A file.
        Disk = CAIRN_TIER_DISK,
    }
}

impl Tier {
    /// The three tiers, in the order in which arrays by tier have them.
    pub const ALL: [Tier; 3] = [Tier::Device, Tier::Host, Tier::Disk];
}

enumeration! {
    /// The type of a tensor's elements.
    DType {
        /// 32-bit floating point.
        F32 = CAIRN_F32,
        /// bfloat16, in Rust the `u16` of its bits.
        Bf16 = CAIRN_BF16,
        /// 16-bit floating point, in Rust the `u16` of its bits.
        F16 = CAIRN_F16,
        /// 64-bit floating point.
        F64 = CAIRN_F64,
        /// 32-bit signed integer: tokens, classes.
        I32 = CAIRN_I32,
        /// 64-bit signed integer.
        I64 = CAIRN_I64,
        /// A byte.
        U8 = CAIRN_U8,
        /// Of optimizer states alone: blocks of 256 codes of a signed dynamic map and their scale.
        Dynamic8 = CAIRN_DYNAMIC8,
        /// The same with an unsigned map.
        UDynamic8 = CAIRN_UDYNAMIC8,
        /// Of stored parameters alone: float32 as its bfloat16 and the 16 bits below.
        Split = CAIRN_SPLIT,
    }
}

enumeration! {
    /// What happens to the activations of a region between forward and backward.
    Policy {
        /// The planner decides for each value.
        PlannerDecides = CAIRN_REGION_PLANNER_DECIDES,
        /// They are kept in memory.
        Keep = CAIRN_REGION_KEEP,
        /// They are computed again.
        Recompute = CAIRN_REGION_RECOMPUTE,
        /// They go to another tier and come back.
        Offload = CAIRN_REGION_OFFLOAD,
    }
}

enumeration! {
    /// Mixed precision of a plan.
    Amp {
        /// Everything as the graph says.
        Off = CAIRN_AMP_OFF,
        /// Activations of most ops are bfloat16.
        Bf16 = CAIRN_AMP_BF16,
        /// Activations of most ops are 16-bit floating point, and losses are scaled.
        Fp16 = CAIRN_AMP_FP16,
    }
}

enumeration! {
    /// What a plan decided for a value.
    Decision {
        /// It is kept in memory.
        Keep = CAIRN_DECISION_KEEP,
        /// It is computed again.
        Recompute = CAIRN_DECISION_RECOMPUTE,
        /// It goes to a tier and comes back.
        Offload = CAIRN_DECISION_OFFLOAD,
        /// It lives as long as the session.
        Persistent = CAIRN_DECISION_PERSISTENT,
    }
}

enumeration! {
    /// What a plan, or its problem, is rendered as.
    Render {
        /// The plan as JSON, `cairn.plan/1`.
        PlanJson = CAIRN_RENDER_PLAN_JSON,
        /// Its problem as JSON, `cairn.problem/1`.
        ProblemJson = CAIRN_RENDER_PROBLEM_JSON,
        /// One self-contained HTML page.
        Html = CAIRN_RENDER_HTML,
        /// A picture of memory over time.
        Svg = CAIRN_RENDER_SVG,
        /// A binary plan file.
        File = CAIRN_RENDER_FILE,
        /// The trade-off of memory and time as JSON, `cairn.sweep/1`; takes some 20 solutions.
        Sweep = CAIRN_RENDER_SWEEP,
        /// The HTML page with that trade-off.
        Report = CAIRN_RENDER_REPORT,
    }
}

enumeration! {
    /// The lane of work that a [`Span`](crate::Span) was in.
    Lane {
        /// Ops.
        Compute = CAIRN_LANE_COMPUTE,
        /// Copies from the device.
        CopyOut = CAIRN_LANE_COPY_OUT,
        /// Copies to the device.
        CopyIn = CAIRN_LANE_COPY_IN,
        /// Updates by the host's processors, for a device that has its own.
        Host = CAIRN_LANE_HOST,
        /// What those read from the disk.
        HostIn = CAIRN_LANE_HOST_IN,
        /// What those write to the disk.
        HostOut = CAIRN_LANE_HOST_OUT,
    }
}

enumeration! {
    /// What a micro-batch came to.
    Outcome {
        /// Its gradients wait for the rest of the effective batch.
        Accumulated = CAIRN_STEP_ACCUMULATED,
        /// The parameters were updated.
        Applied = CAIRN_STEP_APPLIED,
        /// A loss or gradient was not finite: parameters, moments and schedule did not change.
        SkippedNonFinite = CAIRN_STEP_SKIPPED_NONFINITE,
        /// The weights add up to 0, so that nothing of it counts: parameters, moments and schedule did not change.
        SkippedEmpty = CAIRN_STEP_SKIPPED_EMPTY,
        /// The first of two passes over a micro-batch, for values of the effective batch: it is to be written and run again.
        Gathered = CAIRN_STEP_GATHERED,
    }
}

enumeration! {
    /// How grave a line of the log is.
    Level {
        /// Something to know.
        Info = CAIRN_LOG_INFO,
        /// Something to look at.
        Warning = CAIRN_LOG_WARNING,
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A type of Rust whose slices are tensors' elements as they lie in memory.
pub trait Element: sealed::Sealed + Copy + Default + Send + Sync + 'static {
    /// The element types that it stands for.
    const DTYPES: &'static [DType];
}

macro_rules! element {
    ($($rust:ty: $($dtype:ident)*),*) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const DTYPES: &'static [DType] = &[$(DType::$dtype),*];
        }
    )*};
}

element! { f32: F32, f64: F64, i32: I32, i64: I64, u8: U8 Dynamic8 UDynamic8, u16: Bf16 F16 }
