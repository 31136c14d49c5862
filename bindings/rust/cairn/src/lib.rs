//! Trains neural networks inside a memory budget.
//!
//! A model is a graph; its regions say where activations may be kept, recomputed or offloaded. A plan decides every byte
//! before anything runs, a session takes that memory and no more, and a stepper trains: the same bits under any budget.
//! This crate is the safe form of the C header `cairn.h`, in its order:
//!
//! | chapter | here |
//! |---|---|
//! | errors | [`Error`], [`Status`], [`MemoryFault`] |
//! | instance and devices | [`Instance`], [`Device`], log and [`Allocator`] by [`InstanceOptions`] |
//! | graph | [`GraphBuilder`] with a method for each op, [`Graph`], [`CustomOp`] |
//! | plan | [`Plan`], [`PlanOptions`], [`PlanSet`], [`Costs`] |
//! | session | [`Session`], [`SessionMut`], [`Store`], [`Monitor`] |
//! | stepper | [`Stepper`], [`StepperOptions`], [`Schedule`], [`StepReport`] |
//! | files | [`Checkpoint`], [`TensorName`], [`Graph::save`], [`Instance::inspect`] |
//! | data | [`Tokenizer`], [`Dataset`] |
//! | generation | [`Generator`], [`Sampling`] |
//! | models | [`Model`], [`ModelOptions`] |
//! | what there is by name | [`ops`](ops()), [`optimizers`], [`schedules`], [`amp_classes`] |
//!
//! ```
//! use cairn::{DType, Ends, Instance, Parameter, PlanOptions, Policy, StepperOptions};
//!
//! let instance = Instance::new()?;
//! let device = instance.device("cpu")?;
//! let mut graph = instance.graph()?;
//! let x = graph.input("x", &[32, 4], DType::F32)?;
//! let target = graph.input("target", &[32, 1], DType::F32)?;
//! let hidden = graph.parameter("hidden", &[64, 4], Parameter::normal(0.3))?;
//! let last = graph.parameter("last", &[1, 64], Parameter::normal(0.1))?;
//! let y = graph.region("body", Policy::PlannerDecides, |graph| {
//!     let h = graph.linear(x, hidden).activation("gelu_tanh").build()?;
//!     graph.linear(h, last).build()
//! })?;
//! let loss = graph.mse(y, target).build()?;
//! let graph = graph.freeze(Ends::loss(loss))?;
//!
//! let plan = graph.plan_with(&device, &PlanOptions::new().budget_share(0.9))?;
//! let mut session = plan.session(&device)?;
//! session.initialise(1)?;
//! session.write("x", &[0.5f32; 32 * 4])?;
//! session.write("target", &[2.0f32; 32])?;
//! let mut stepper = session.stepper(&StepperOptions::new(1e-2))?;
//! let first = stepper.micro()?.loss;
//! for _ in 0..50 {
//!     stepper.micro()?;
//! }
//! assert!(stepper.micro()?.loss < 0.1 * first);
//! # Ok::<(), cairn::Error>(())
//! ```
//!
//! **Ownership.** An object holds one reference of the library's and gives it back when it is dropped; each keeps alive
//! what it was made from, so they may be dropped in any order. What is borrowed (names of values, rows of plans, spans)
//! has the lifetime of what it was asked of. Closures given to an instance or graph live as long as anything that may
//! call them.
//!
//! **Threads.** Calls that `cairn.h` marks `const` take `&self` and may come from several threads at once. Of
//! [`Session`], [`Stepper`], [`Costs`] and [`GraphBuilder`] the others take `&mut self`, so these are `Sync`. [`Instance`],
//! [`Device`], [`Graph`] and [`Plan`] make things from `&self` in calls that must come one after the other, so these are
//! not: put one into a `Mutex` to share it. Everything is `Send`.
//!
//! **Panics.** None of this crate's own. A panic in a closure that the library calls is caught and becomes an error.
#![deny(missing_docs)]
#![warn(unreachable_pub, rust_2018_idioms)]

mod allocator;
mod catalogue;
mod custom_op;
mod data;
mod enums;
mod error;
mod files;
mod generator;
mod graph;
mod handle;
mod host;
mod instance;
mod model;
mod pictures;
mod plan;
mod session;
mod stepper;
mod template;
mod text;

pub use allocator::{Allocator, Limited};
pub use catalogue::{
    amp_classes, formats, ops, optimizers, plan_counters, schedules, settings, AmpClassInfo, FormatInfo, OpInfo,
    OptimizerInfo, PlanCounterInfo, ScheduleInfo, SettingInfo, SettingsOf,
};
pub use custom_op::tensor::{Tensor, TensorMut, TensorType};
pub use custom_op::{Backward, CustomOp, Forward};
pub use data::{Dataset, DatasetInfo, Tokenizer};
pub use enums::{Amp, DType, Decision, Element, Lane, Level, Outcome, Policy, Render, Tier};
pub use error::{Error, MemoryFault, Result, Status};
pub use files::{Checkpoint, ExportOptions, Layout, Merge, MergeDifference, TensorName};
pub use generator::{Generator, GeneratorInfo, Sampling};
pub use graph::adapter::{Adapter, AdapterKind};
pub use graph::builder::{Ends, GraphBuilder, Parameter};
pub use graph::op::{Attr, Op};
pub use graph::ops as op;
pub use graph::value::{Value, ValueInfo, ValueKind};
pub use graph::Graph;
pub use instance::{version, version_number, Device, DeviceInfo, DeviceOptions, Instance, InstanceOptions};
pub use model::{Model, ModelInfo, ModelOptions, ModelReport};
pub use pictures::{PictureBatch, PictureInfo, PictureOptions, Pictures};
pub use plan::costs::Costs;
pub use plan::options::{AmpRule, ParameterGroup, PlanOptions, RegionPolicy};
pub use plan::table::{PlanMemory, PlanOp, PlanSummary, PlanValue};
pub use plan::{Plan, PlanSet};
pub use session::{Monitor, Session, SessionMut, SessionValue, Span, Store, TierUsage};
pub use stepper::options::{LossScale, StepperOptions};
pub use stepper::report::StepReport;
pub use stepper::schedule::{schedule_rates, Rate, Schedule};
pub use stepper::Stepper;
pub use template::Template;
pub use text::Text;
