//! The stepper: micro-batches, accumulation, the optimizer's update.
pub(crate) mod options;
pub(crate) mod report;
pub(crate) mod schedule;

use crate::error::Result;
use crate::files::{metadata, Checkpoint};
use crate::generator::{generator, Generator};
use crate::handle::{blank, check, fill, make, Handle};
use crate::plan::position;
use crate::session::{Inner, Session, SessionMut, Store};
use crate::text::{c_path, Texts};
use cairn_sys as sys;
use options::StepperOptions;
use report::StepReport;
use std::path::Path;
use std::sync::Arc;

/// Trains a session, or the programs of a store. Gradients are sums over the effective batch, divided once by its total
/// weight. It owns what it trains, which [`session`](Stepper::session) lends.
///
/// `Send + Sync`: calls that are not `const` in `cairn.h` take it by `&mut`.
///
/// ```
/// use cairn::{DType, Ends, Instance, Outcome, Parameter, StepperOptions};
/// # let instance = Instance::new()?;
/// # let device = instance.device("cpu")?;
/// let mut graph = instance.graph()?;
/// let x = graph.input("x", &[4, 2], DType::F32)?;
/// let target = graph.input("target", &[4, 1], DType::F32)?;
/// let w = graph.parameter("w", &[1, 2], Parameter::zeros())?;
/// let y = graph.linear(x, w).build()?;
/// let loss = graph.mse(y, target).build()?;
/// let graph = graph.freeze(Ends::loss(loss))?;
///
/// let mut session = graph.plan(&device)?.session(&device)?;
/// session.initialise(1)?;
/// let mut stepper = session.stepper(&StepperOptions::new(0.05))?;
/// for step in 1..=200 {
///     stepper.session().write("x", &[0.0f32, 1.0, 1.0, 0.0, 1.0, 1.0, 2.0, 1.0])?;
///     stepper.session().write("target", &[-1.0f32, 2.0, 1.0, 3.0])?; // 2 a - b
///     let report = stepper.micro()?;
///     assert_eq!((report.step, report.outcome), (step, Outcome::Applied));
/// }
/// let w = stepper.session().read_vec::<f32>("w", 2)?;
/// assert!((w[0] - 2.0).abs() < 0.2 && (w[1] + 1.0).abs() < 0.2, "{w:?}");
/// # Ok::<(), cairn::Error>(())
/// ```
///
/// What is lent ends with the next call:
///
/// ```compile_fail,E0499
/// # fn f(mut stepper: cairn::Stepper) {
/// let mut session = stepper.session();
/// stepper.micro(); // while the session may be in use
/// session.digest();
/// # }
/// ```
#[derive(Debug)]
pub struct Stepper {
    raw: Handle<sys::cairn_stepper_t>,
    names: Vec<String>,
    sessions: Vec<Arc<Inner>>,
    main: usize,
}

// Shared references make const calls only.
unsafe impl Sync for Stepper {}

impl Session {
    /// A stepper that owns the session. Errors, after which the session is gone: `WrongState` (the graph has no loss, or
    /// the plan no optimizer).
    pub fn stepper(self, options: &StepperOptions) -> Result<Stepper> {
        Store { names: vec![String::new()], sessions: vec![self.inner().clone()] }.stepper("", options)
    }
}

impl Store {
    /// A stepper that owns the store, and whose own micro-batches are of one of its programs.
    pub fn stepper(self, program: &str, options: &StepperOptions) -> Result<Stepper> {
        let main = position(&self.names, program)?;
        let session = self.sessions[main].raw.get();
        let raw = options
            .with_raw(|raw| make(|out, error| unsafe { sys::cairn_stepper_create(session, raw, out, error) }))?;
        Ok(Stepper { raw, names: self.names, sessions: self.sessions, main })
    }
}

impl Stepper {
    /// The session that it trains.
    pub fn session(&mut self) -> SessionMut<'_> {
        SessionMut::of(self.sessions[self.main].clone())
    }

    /// The session of another program of its store.
    pub fn session_of(&mut self, program: &str) -> Result<SessionMut<'_>> {
        position(&self.names, program).map(|at| SessionMut::of(self.sessions[at].clone()))
    }

    /// As [`Store::generator`], with the parameters as they are in the middle of training.
    pub fn generator(&mut self, programs: &[&str], vocabulary: u32) -> Result<Generator<'_>> {
        generator(&self.names, &self.sessions, programs, vocabulary)
    }

    /// Gives what it trained back: where it began with a [`Session`], a store with that one, whose name is `""`.
    pub fn into_store(self) -> Store {
        Store { names: self.names, sessions: self.sessions }
    }

    /// One micro-batch on the inputs written; the last of an effective batch updates the parameters. A batch whose loss or
    /// gradients are not finite is skipped, which is no error: see [`StepReport::outcome`].
    ///
    /// Errors: `Cancelled` (the effective batch is discarded), `OutOfMemory` (the message says what is lost), `Io` (of the
    /// disk tier), `NonFinite` (plans with `fuse_update`), `DeviceLost`, and what a custom op's closure failed with.
    pub fn micro(&mut self) -> Result<StepReport> {
        let stepper = self.raw.get();
        self.reported(|out, error| unsafe { sys::cairn_stepper_micro(stepper, out, error) })
    }

    /// The same by another program of the store: its inputs, its length.
    pub fn micro_on(&mut self, program: &str) -> Result<StepReport> {
        let at = position(&self.names, program)?;
        let (stepper, session) = (self.raw.get(), self.sessions[at].raw.get());
        self.reported(|out, error| unsafe { sys::cairn_stepper_micro_on(stepper, session, out, error) })
    }

    /// Ends the effective batch early, with the denominator that it has: the remainder of an epoch. Errors: `WrongState`
    /// (nothing is accumulated).
    pub fn apply(&mut self) -> Result<StepReport> {
        let stepper = self.raw.get();
        self.reported(|out, error| unsafe { sys::cairn_stepper_apply(stepper, out, error) })
    }

    /// Discards what was accumulated.
    pub fn discard(&mut self) -> Result<()> {
        check(|error| unsafe { sys::cairn_stepper_discard(self.raw.get(), error) })
    }

    /// Changes the options of later steps; the seed is kept. Errors: `WrongState` (in the middle of an effective batch).
    pub fn configure(&mut self, options: &StepperOptions) -> Result<()> {
        let stepper = self.raw.get();
        options.with_raw(|raw| check(|error| unsafe { sys::cairn_stepper_configure(stepper, raw, error) }))
    }

    /// Changes a hyper-parameter of later steps: of one group, or with `None` of all whose optimizer has it. Errors:
    /// `WrongState` (in the middle of an effective batch).
    pub fn set_hyper(&mut self, group: Option<&str>, name: &str, value: f64) -> Result<()> {
        let mut texts = Texts::default();
        let (group, name) = (texts.add_some("a group", group)?, texts.add("a hyper-parameter", name)?);
        check(|error| unsafe { sys::cairn_stepper_set(self.raw.get(), group, name, value, error) })
    }

    /// A hyper-parameter as it is now: of one group, or with `None` of the parameters that no group names.
    pub fn hyper(&self, group: Option<&str>, name: &str) -> Result<f64> {
        let mut texts = Texts::default();
        let (group, name) = (texts.add_some("a group", group)?, texts.add("a hyper-parameter", name)?);
        fill(0.0, |out, error| unsafe { sys::cairn_stepper_get(self.raw.get(), group, name, out, error) })
    }

    /// Where it stands, without running anything: steps, micro-batches, and the loss of the effective batch.
    pub fn report(&self) -> Result<StepReport> {
        let stepper = self.raw.get();
        self.reported(|out, error| unsafe { sys::cairn_stepper_report(stepper, out, error) })
    }

    /// Saves graph, parameters, optimizer state and where the run stands into a new directory, with words of the host's
    /// own and copies of files. Durable when it returns, and all or nothing. Errors: `Io`,
    /// `InvalidArgument` (the directory holds other files).
    pub fn save(&mut self, directory: impl AsRef<Path>, words: &[(&str, &str)], files: &[&Path]) -> Result<()> {
        self.save_as(directory.as_ref(), words, files, false)
    }

    /// The same without the frozen parameters: who restores the checkpoint, or loads it, has the same ones in the session
    /// already; they are compared.
    pub fn save_without_frozen(
        &mut self,
        directory: impl AsRef<Path>,
        words: &[(&str, &str)],
        files: &[&Path],
    ) -> Result<()> {
        self.save_as(directory.as_ref(), words, files, true)
    }

    fn save_as(&mut self, directory: &Path, words: &[(&str, &str)], files: &[&Path], without: bool) -> Result<()> {
        let directory = c_path(directory)?;
        let mut texts = Texts::default();
        let rows = metadata(&mut texts, words)?;
        let paths = files.iter().map(|path| c_path(path)).collect::<Result<Vec<_>>>()?;
        let pointers: Vec<_> = paths.iter().map(|path| path.as_ptr()).collect();
        let mut options: sys::cairn_save_options_t = blank();
        (options.metadata, options.metadata_count) = (rows.as_ptr(), rows.len());
        (options.files, options.file_count) = (pointers.as_ptr(), pointers.len());
        options.without_frozen = without.into();
        let stepper = self.raw.get();
        check(|error| unsafe { sys::cairn_stepper_save_as(stepper, directory.as_ptr(), &options, error) })
    }

    /// Goes on exactly where the saved one was: to the same bits. Errors: `CorruptFile`, `WrongState`, and
    /// `InvalidArgument` for a checkpoint of another graph.
    pub fn restore(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        check(|error| unsafe { sys::cairn_stepper_restore(self.raw.get(), checkpoint.raw.get(), error) })
    }

    fn reported(
        &self,
        call: impl FnOnce(*mut sys::cairn_step_report_t, *mut sys::cairn_error_t) -> sys::cairn_status_t,
    ) -> Result<StepReport> {
        let raw = fill(blank(), call);
        self.sessions[self.main].host.explain(raw).map(|raw| StepReport::read(&raw))
    }
}
