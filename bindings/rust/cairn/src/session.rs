//! Sessions: memory taken, values written and read, runs.
use crate::enums::{DType, Element, Lane, Tier};
use crate::error::{Error, Result};
use crate::files::Checkpoint;
use crate::graph::value::ValueKind;
use crate::handle::{blank, check, make, make_all, Handle};
use crate::host::Host;
use crate::plan::{position, Plan, PlanSet};
use crate::text::{c_text, from_chars, lent};
use crate::Device;
use cairn_sys as sys;
use std::any::{type_name, TypeId};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Weak};

/// A session's handle, and after it what it may call back.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) raw: Handle<sys::cairn_session_t>,
    pub(crate) host: Host,
}

// Other threads see it through a `Monitor`, whose two calls may run during any other.
unsafe impl Sync for Inner {}

/// All memory that a plan names, taken; runs take no more. What it can do stands at [`SessionMut`], to which it derefs.
///
/// `Send + Sync`: calls that are not `const` in `cairn.h` take it by `&mut`. It keeps alive what it was made from.
///
/// ```compile_fail,E0382
/// # fn f(session: cairn::Session) {
/// drop(session);
/// session.digest(); // used after it was given up
/// # }
/// ```
///
/// ```compile_fail,E0499
/// # fn f(mut session: cairn::Session) {
/// std::thread::scope(|scope| {
///     scope.spawn(|| session.run());
///     scope.spawn(|| session.run()); // at the same time
/// });
/// # }
/// ```
#[derive(Debug)]
pub struct Session(SessionMut<'static>);

impl Deref for Session {
    type Target = SessionMut<'static>;
    fn deref(&self) -> &SessionMut<'static> {
        &self.0
    }
}

impl DerefMut for Session {
    fn deref_mut(&mut self) -> &mut SessionMut<'static> {
        &mut self.0
    }
}

impl Session {
    pub(crate) fn of(inner: Arc<Inner>) -> Session {
        Session(SessionMut::of(inner))
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.0.inner
    }
}

impl Plan {
    /// Takes the memory. Errors: `OutOfMemory` (the fault says how much was asked for), `Io` (disk tier).
    pub fn session(&self, device: &Device) -> Result<Session> {
        let host = self.host.and(&device.host);
        let (plan, device) = (self.raw.get(), device.raw.get());
        let raw = make(|out, error| unsafe { sys::cairn_session_create(plan, device, out, error) })?;
        Ok(Session::of(Arc::new(Inner { raw, host })))
    }
}

impl PlanSet {
    /// Opens all programs on one store, which takes memory once.
    pub fn sessions(&self, device: &Device) -> Result<Store> {
        let plans: Vec<_> = self.iter().map(|plan| plan.raw.get()).collect();
        let host = self.iter().fold(device.host.clone(), |host, plan| host.and(&plan.host));
        let (first, count, device) = (plans.as_ptr(), plans.len(), device.raw.get());
        let made =
            make_all(count, |out, error| unsafe { sys::cairn_session_create_set(first, count, device, out, error) })?;
        let sessions = made.into_iter().map(|raw| Arc::new(Inner { raw, host: host.clone() })).collect();
        Ok(Store { names: self.names.clone(), sessions })
    }
}

/// Sessions of several programs on one store: parameters, gradients and optimizer state are the same values in all of
/// them, inputs and outputs are each program's own. They count as one session: one call at a time.
///
/// `Send + Sync`: it lends one of its sessions at a time, by `&mut`.
#[derive(Debug)]
pub struct Store {
    pub(crate) names: Vec<String>,
    pub(crate) sessions: Vec<Arc<Inner>>,
}

impl Store {
    /// The names of the programs, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// The session of the program of that name.
    pub fn session(&mut self, name: &str) -> Result<SessionMut<'_>> {
        position(&self.names, name).map(|at| SessionMut::of(self.sessions[at].clone()))
    }
}

/// A session for as long as nothing else uses it: what a [`Session`] derefs to, and what a [`Store`] or
/// [`Stepper`](crate::Stepper) lends.
///
/// `Send + Sync`: calls that are not `const` in `cairn.h` take it by `&mut`.
#[derive(Debug)]
pub struct SessionMut<'a> {
    inner: Arc<Inner>,
    alone: PhantomData<&'a mut ()>,
}

impl<'a> SessionMut<'a> {
    pub(crate) fn of(inner: Arc<Inner>) -> SessionMut<'a> {
        SessionMut { inner, alone: PhantomData }
    }

    pub(crate) fn raw(&self) -> *mut sys::cairn_session_t {
        self.inner.raw.get()
    }

    /// Fills all parameters as they are to start; the same numbers on every device.
    pub fn initialise(&mut self, seed: u64) -> Result<()> {
        check(|error| unsafe { sys::cairn_session_initialise(self.raw(), seed, error) })
    }

    /// What a value is that `write` or `read` takes, by name.
    pub fn value(&self, name: &str) -> Result<SessionValue> {
        let name = c_text("a name", name)?;
        let mut raw: sys::cairn_value_info_t = blank();
        check(|error| unsafe { sys::cairn_session_value_info(self.raw(), name.as_ptr(), &mut raw, error) })?;
        Ok(SessionValue {
            dims: raw.dims[..raw.rank as usize].to_vec(),
            dtype: DType::from(raw.dtype),
            kind: ValueKind::from(raw.kind),
            bytes: raw.bytes,
        })
    }

    /// Refuses numbers of another type than the value's: bits of `[0, 1]` are other numbers where f32 is wanted. Bytes may
    /// stand for any; what is wrong with a name that is not known, the library says.
    fn check_type<T: Element>(&self, name: &str) -> Result<()> {
        match self.value(name) {
            Ok(value) if !T::DTYPES.contains(&value.dtype) && TypeId::of::<T>() != TypeId::of::<u8>() => {
                Err(Error::argument(format!(
                    "'{name}' is {:?}: numbers of {} were given; take the type that stands for it",
                    value.dtype,
                    type_name::<T>()
                )))
            }
            _ => Ok(()),
        }
    }

    /// Copies an input or parameter in, by name; `data` has all its elements, row by row, of its type; as `u8` the bytes of
    /// any. Tokens and classes are checked: `InvalidArgument` names position and number.
    ///
    /// ```
    /// # use cairn::{DType, Ends, Instance, Status};
    /// # let instance = Instance::new()?;
    /// # let device = instance.device("cpu")?;
    /// # let mut graph = instance.graph()?;
    /// # let x = graph.input("x", &[3], DType::F32)?;
    /// # let y = graph.relu(x).build()?;
    /// # let graph = graph.freeze(Ends::outputs(&[y]))?;
    /// # let mut session = graph.plan(&device)?.session(&device)?;
    /// session.write("x", &[0.0f32, 1.0, 2.0])?;
    /// let error = session.write("x", &[0, 1, 2]).unwrap_err(); // i32 has as many bytes, and other bits
    /// assert_eq!(error.status(), Status::InvalidArgument);
    /// # Ok::<(), cairn::Error>(())
    /// ```
    pub fn write<T: Element>(&mut self, name: &str, data: &[T]) -> Result<()> {
        self.check_type::<T>(name)?;
        let name = c_text("a name", name)?;
        let (bytes, size) = (data.as_ptr().cast(), std::mem::size_of_val(data));
        check(|error| unsafe { sys::cairn_session_write(self.raw(), name.as_ptr(), bytes, size, error) })
    }

    /// Copies a value that persists out, by name: an input, a parameter, `"NAME/gradient"`, an output, the loss. `data`
    /// has room for all its elements, and their type; as `u8` for the bytes of any.
    pub fn read<T: Element>(&mut self, name: &str, data: &mut [T]) -> Result<()> {
        self.check_type::<T>(name)?;
        let name = c_text("a name", name)?;
        let (bytes, size) = (data.as_mut_ptr().cast(), std::mem::size_of_val(data));
        // All bits are values of T.
        check(|error| unsafe { sys::cairn_session_read(self.raw(), name.as_ptr(), bytes, size, error) })
    }

    /// The same into a new list of `count` elements.
    pub fn read_vec<T: Element>(&mut self, name: &str, count: usize) -> Result<Vec<T>> {
        // Memory is taken for no count but the value's own, so that a wrong one is an error however large it is.
        let bytes = self.value(name)?.bytes;
        if (count as u64).checked_mul(std::mem::size_of::<T>() as u64) != Some(bytes) {
            self.check_type::<T>(name)?;
            return Err(Error::argument(format!(
                "'{name}' has {bytes} bytes; {count} numbers of {} were asked for",
                type_name::<T>()
            )));
        }
        let mut data = vec![T::default(); count];
        self.read(name, &mut data)?;
        Ok(data)
    }

    /// One run on the inputs written: forward of a graph without a loss; forward and backward of a plan without an
    /// optimizer. Errors: `Cancelled`, `WrongState` (the plan has an optimizer: use a [`Stepper`](crate::Stepper)), and
    /// what a custom op's closure failed with.
    pub fn run(&mut self) -> Result<()> {
        let result = check(|error| unsafe { sys::cairn_session_run(self.raw(), error) });
        self.inner.host.explain(result)
    }

    /// Cancels runs and watches memory from any thread, also while the session runs.
    pub fn monitor(&self) -> Monitor {
        Monitor(Arc::downgrade(&self.inner))
    }

    /// Whether later runs record when each op and copy ran.
    pub fn trace(&mut self, on: bool) -> Result<()> {
        check(|error| unsafe { sys::cairn_session_trace(self.raw(), on.into(), error) })
    }

    /// What the last traced run did, lane by lane, each in order.
    pub fn spans(&self) -> impl Iterator<Item = Span<'_>> {
        (0..).map_while(move |index| {
            let mut raw: sys::cairn_span_t = blank();
            check(|error| unsafe { sys::cairn_session_span(self.raw(), index, &mut raw, error) }).ok()?;
            Some(Span {
                // A text of the plan, which the session keeps alive.
                name: unsafe { lent(raw.name) },
                begin_seconds: raw.begin_seconds,
                end_seconds: raw.end_seconds,
                live_bytes: raw.live_bytes,
                lane: Lane::from(raw.lane),
                tier: Tier::from(raw.tier),
            })
        })
    }

    /// Measured bytes of a tier.
    pub fn usage(&self, tier: Tier) -> Result<TierUsage> {
        usage(&self.inner, tier)
    }

    /// XXH3-128 over all parameters in graph order, as 32 hex digits.
    pub fn digest(&mut self) -> Result<String> {
        let mut hex = [0; 33];
        check(|error| unsafe { sys::cairn_session_digest(self.raw(), hex.as_mut_ptr(), error) })?;
        Ok(from_chars(&hex))
    }

    /// The same over the frozen parameters alone, as they are stored. Training never changes it.
    pub fn base_digest(&mut self) -> Result<String> {
        let mut hex = [0; 33];
        check(|error| unsafe { sys::cairn_session_base_digest(self.raw(), hex.as_mut_ptr(), error) })?;
        Ok(from_chars(&hex))
    }

    /// Takes a checkpoint's parameters, by name. Errors: `NotFound` (names the first one that is not there),
    /// `CorruptFile`.
    pub fn load(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        check(|error| unsafe { sys::cairn_session_load(self.raw(), checkpoint.raw.get(), error) })
    }

    /// The same with the averages of the parameters that have one ([`PlanOptions::ema`](crate::PlanOptions::ema)) in their
    /// place. Errors: `NotFound` (the checkpoint has no averages, or not all parameters), `CorruptFile`.
    pub fn load_ema(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        check(|error| unsafe { sys::cairn_session_load_ema(self.raw(), checkpoint.raw.get(), error) })
    }
}

fn usage(inner: &Inner, tier: Tier) -> Result<TierUsage> {
    let mut raw: sys::cairn_tier_usage_t = blank();
    check(|error| unsafe { sys::cairn_session_usage(inner.raw.get(), tier.into(), &mut raw, error) })?;
    Ok(TierUsage {
        reserved_bytes: raw.reserved_bytes,
        peak_bytes: raw.peak_bytes,
        live_peak_bytes: raw.live_peak_bytes,
        pinned_bytes: raw.pinned_bytes,
        staging_bytes: raw.staging_bytes,
        driver_before_bytes: raw.driver_before_bytes,
        driver_bytes: raw.driver_bytes,
    })
}

/// The two calls that are allowed while a session runs, from any thread. It does not keep the session's memory.
///
/// `Send + Sync`: `cairn.h` allows both calls during any other.
///
/// ```
/// # fn f(mut session: cairn::Session) -> Result<(), cairn::Error> {
/// let monitor = session.monitor();
/// let watch = std::thread::spawn(move || {
///     std::thread::sleep(std::time::Duration::from_millis(1));
///     monitor.cancel();
/// });
/// match session.run() {
///     Err(error) if error.status() == cairn::Status::Cancelled => println!("stopped"),
///     result => result?,
/// }
/// # watch.join().unwrap();
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Monitor(Weak<Inner>);

impl Monitor {
    /// Makes the run under way, or else the next one, end with [`Status::Cancelled`](crate::Status::Cancelled) at the
    /// next op. Nothing where the session is gone.
    pub fn cancel(&self) {
        if let Some(inner) = self.0.upgrade() {
            // Allowed at any time from any thread.
            unsafe { sys::cairn_session_cancel(inner.raw.get()) }
        }
    }

    /// Measured bytes of a tier; `None` where the session is gone.
    pub fn usage(&self, tier: Tier) -> Option<Result<TierUsage>> {
        self.0.upgrade().map(|inner| usage(&inner, tier))
    }
}

/// When an op or a copy of a traced run was at work. Its name is borrowed from the session.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Span<'s> {
    /// Of the op, or of the value that was copied.
    pub name: &'s str,
    /// Since the run began.
    pub begin_seconds: f64,
    /// Since the run began.
    pub end_seconds: f64,
    /// Bytes of the device in use at that place of the program.
    pub live_bytes: u64,
    /// What worked.
    pub lane: Lane,
    /// Of a copy: the other end.
    pub tier: Tier,
}

/// What a value is that a session takes and gives.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionValue {
    /// Its dimensions, slowest first.
    pub dims: Vec<i64>,
    /// The type of its elements.
    pub dtype: DType,
    /// What it is; `Activation` also for gradients and optimizer state.
    pub kind: ValueKind,
    /// Its size.
    pub bytes: u64,
}

/// Measured bytes of a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TierUsage {
    /// Taken from the system for the session's device, now.
    pub reserved_bytes: u64,
    /// The highest end of any byte used since the session was made.
    pub peak_bytes: u64,
    /// Most bytes alive at once.
    pub live_peak_bytes: u64,
    /// Of those reserved: locked in memory.
    pub pinned_bytes: u64,
    /// More memory of the host, through which copies go.
    pub staging_bytes: u64,
    /// Of the device tier: bytes that its driver counted before the session; 0: it does not say.
    pub driver_before_bytes: u64,
    /// Of the device tier: bytes that its driver counts now; 0: it does not say.
    pub driver_bytes: u64,
}
