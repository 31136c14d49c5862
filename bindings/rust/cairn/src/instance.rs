//! The library's version, instances with the host's hooks, and devices.
use crate::allocator::{self, Allocator};
use crate::enums::Level;
use crate::error::{Error, Result, Status};
use crate::handle::{blank, called, check, make, Handle};
use crate::host::{Hooks, Host};
use crate::text::{c_path, c_text, from_chars, lent, Text};
use cairn_sys as sys;
use std::os::raw::{c_char, c_void};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The version of the library in use, `"1.0.0"`.
///
/// ```
/// assert!(cairn::version().starts_with("1."));
/// ```
pub fn version() -> &'static str {
    // Static text.
    unsafe { lent(sys::cairn_version()) }
}

/// The library's version as a number: major * 10000 + minor * 100 + patch.
pub fn version_number() -> u32 {
    // Takes nothing.
    unsafe { sys::cairn_version_number() }
}

/// A library of this crate's major version, and no older than the crate.
fn check_version(found: u32, text: &str) -> Result<()> {
    let wanted = sys::VERSION_NUMBER;
    if found / 10000 == wanted / 10000 && found >= wanted {
        return Ok(());
    }
    let (major, minor) = (wanted / 10000, wanted / 100 % 100);
    Err(Error::new(
        Status::Unsupported,
        format!(
            "libcairn has version {text}, and this program was built for {major}.{minor} or a later {major}.x: install \
             one, or let LD_LIBRARY_PATH name its folder"
        ),
    ))
}

/// What an [`Instance`] takes from the host program.
#[derive(Default)]
#[must_use]
pub struct InstanceOptions {
    hooks: Hooks,
}

impl InstanceOptions {
    /// No log, and the system's memory.
    pub fn new() -> InstanceOptions {
        InstanceOptions::default()
    }

    /// Called with what a call has to tell, on that call's thread. It must not call cairn; a panic in it is dropped.
    pub fn log(mut self, log: impl Fn(Level, &str) + Send + Sync + 'static) -> InstanceOptions {
        self.hooks.log = Some(Box::new(log));
        self
    }

    /// Where the memory for tensors comes from.
    pub fn allocator(mut self, allocator: impl Allocator) -> InstanceOptions {
        self.hooks.allocator = Some(Box::new(allocator));
        self
    }
}

impl std::fmt::Debug for InstanceOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (log, allocator) = (self.hooks.log.is_some(), self.hooks.allocator.is_some());
        f.debug_struct("InstanceOptions").field("log", &log).field("allocator", &allocator).finish()
    }
}

/// Where everything begins: the host's hooks, and what is made with them. Two instances do not see each other.
///
/// `Send` and not `Sync`: `cairn.h` wants calls that make something from an instance to come one after the other. Put it
/// into a `Mutex` to share it, or make one for each thread. Objects made from it live on without it.
///
/// ```compile_fail,E0277
/// let instance = cairn::Instance::new().unwrap();
/// std::thread::scope(|scope| {
///     scope.spawn(|| instance.device("cpu")); // two threads would make devices at once
///     scope.spawn(|| instance.device("cpu"));
/// });
/// ```
#[derive(Debug)]
pub struct Instance {
    pub(crate) raw: Handle<sys::cairn_instance_t>,
    pub(crate) host: Host,
}

impl Instance {
    /// An instance that tells nothing and takes the system's memory.
    pub fn new() -> Result<Instance> {
        Instance::with(InstanceOptions::new())
    }

    /// An instance with hooks of the host's.
    ///
    /// ```
    /// use cairn::{Instance, InstanceOptions};
    /// let instance = Instance::with(InstanceOptions::new().log(|level, line| eprintln!("{level:?}: {line}")))?;
    /// # drop(instance);
    /// # Ok::<(), cairn::Error>(())
    /// ```
    pub fn with(options: InstanceOptions) -> Result<Instance> {
        check_version(version_number(), version())?;
        let hooks = Arc::new(options.hooks);
        let allocator = allocator::raw(&hooks);
        let mut raw: sys::cairn_instance_options_t = blank();
        if hooks.allocator.is_some() {
            raw.allocator = &allocator;
        }
        if hooks.log.is_some() {
            raw.log = Some(log);
            raw.log_user = Arc::as_ptr(&hooks) as *mut c_void;
        }
        // The hooks are held by everything that is made from the instance, after its handle.
        let raw = make(|out, error| unsafe { sys::cairn_instance_create(&raw, out, error) })?;
        Ok(Instance { raw, host: Host::of(hooks) })
    }

    /// The devices of this machine. A step fails where the environment's `CAIRN_ISA` names no instruction set of the
    /// processor.
    ///
    /// ```
    /// let instance = cairn::Instance::new()?;
    /// for device in instance.devices() {
    ///     let device = device?;
    ///     println!("{}: {}, {} bytes, {}", device.name, device.description, device.memory_bytes, device.isa);
    /// }
    /// # Ok::<(), cairn::Error>(())
    /// ```
    pub fn devices(&self) -> impl Iterator<Item = Result<DeviceInfo>> + '_ {
        let mut ended = false;
        (0..).map_while(move |index| {
            if ended {
                return None;
            }
            let mut raw: sys::cairn_device_info_t = blank();
            let result = check(|error| unsafe { sys::cairn_instance_device(self.raw.get(), index, &mut raw, error) });
            ended = result.is_err();
            match result {
                Err(error) if error.status() == Status::NotFound => None,
                result => Some(result.map(|()| DeviceInfo::read(&raw))),
            }
        })
    }

    /// Opens a device with all its processors; see [`device_with`](Instance::device_with).
    pub fn device(&self, name: &str) -> Result<Device> {
        self.device_with(name, &DeviceOptions::new())
    }

    /// Opens `"cpu"`, `"reference"` (slow, obvious kernels) or `"cuda:N"`.
    ///
    /// Errors: `NotFound` (no such device), `Unsupported` (there is none here, and why), `OutOfMemory` (the system does
    /// not give that many threads).
    pub fn device_with(&self, name: &str, options: &DeviceOptions) -> Result<Device> {
        let name = c_text("the name of a device", name)?;
        let directory = options.disk_directory.as_deref().map(c_path).transpose()?;
        let rates = options.rates.as_deref().map(|text| c_text("rates", text)).transpose()?;
        let mut raw: sys::cairn_device_options_t = blank();
        raw.threads = options.threads;
        raw.verify = options.verify.into();
        raw.link_bytes_per_second = options.link_bytes_per_second;
        raw.disk_directory = directory.as_ref().map_or(std::ptr::null(), |text| text.as_ptr());
        raw.rates = rates.as_ref().map_or(std::ptr::null(), |text| text.as_ptr());
        let instance = self.raw.get();
        let raw = make(|out, error| unsafe { sys::cairn_device_open(instance, name.as_ptr(), &raw, out, error) })?;
        Ok(Device { raw, host: self.host.clone() })
    }

    /// What a file or checkpoint directory is, as a JSON object.
    pub fn inspect(&self, path: impl AsRef<Path>) -> Result<Text> {
        let path = c_path(path.as_ref())?;
        Text::make(|out, error| unsafe { sys::cairn_inspect(self.raw.get(), path.as_ptr(), out, error) })
    }

    /// Solves a planner's problem given as JSON (`cairn.problem/1`) and renders the plan; `budget_bytes` 0: the
    /// problem's own budget.
    pub fn solve_problem(&self, json: &str, budget_bytes: u64, render: crate::Render) -> Result<Text> {
        let (data, size) = (json.as_ptr().cast(), json.len());
        Text::make(|out, error| unsafe {
            sys::cairn_problem_solve(self.raw.get(), data, size, budget_bytes, render.into(), out, error)
        })
    }
}

/// # Safety
/// `user` is the hooks of an instance that lives; `message` is a C string.
unsafe extern "C" fn log(user: *mut c_void, level: i32, message: *const c_char) {
    let hooks = &*(user as *const Hooks);
    let message = lent(message);
    let _ = called(|| {
        if let Some(log) = &hooks.log {
            log(Level::from(level as u32), message);
        }
        Ok(())
    });
}

/// A device of this machine.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// As [`Instance::device`] takes it.
    pub name: String,
    /// Processor and instruction sets.
    pub description: String,
    /// The memory that this process may use of it.
    pub memory_bytes: u64,
    /// How many threads it has.
    pub threads: u32,
    /// Whether products in bfloat16 are faster than in float32.
    pub fast_bf16: bool,
    /// The instruction set in use: `"avx512"`; of a GPU its architecture, `"sm_90"`.
    pub isa: String,
    /// How the disk tier reaches its directory: `direct`, `buffered`, `memory` (tmpfs) or `none`.
    pub disk_access: String,
}

impl DeviceInfo {
    fn read(raw: &sys::cairn_device_info_t) -> DeviceInfo {
        DeviceInfo {
            name: from_chars(&raw.name),
            description: from_chars(&raw.description),
            memory_bytes: raw.memory_bytes,
            threads: raw.threads,
            fast_bf16: raw.fast_bf16 != 0,
            isa: from_chars(&raw.isa),
            disk_access: from_chars(&raw.disk_access),
        }
    }
}

/// How a device is opened.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct DeviceOptions {
    threads: u32,
    verify: bool,
    link_bytes_per_second: f64,
    disk_directory: Option<PathBuf>,
    rates: Option<String>,
}

impl DeviceOptions {
    /// All processors, nothing verified, links as fast as they are.
    pub fn new() -> DeviceOptions {
        DeviceOptions::default()
    }

    /// How many threads compute; 0: all processors. The bits of a run depend on it.
    pub fn threads(mut self, threads: u32) -> DeviceOptions {
        self.threads = threads;
        self
    }

    /// Checks ordering, lifetimes and races of all work: slow, for debugging.
    pub fn verify(mut self, verify: bool) -> DeviceOptions {
        self.verify = verify;
        self
    }

    /// Throttles the CPU's copies to the host tier, to stand in for a link; 0: not at all.
    pub fn link_bytes_per_second(mut self, rate: f64) -> DeviceOptions {
        self.link_bytes_per_second = rate;
        self
    }

    /// Where files of the disk tier lie; without it `$TMPDIR` or `/tmp`.
    pub fn disk_directory(mut self, directory: impl Into<PathBuf>) -> DeviceOptions {
        self.disk_directory = Some(directory.into());
        self
    }

    /// What plans without costs take the device's rates from: `"cache"` (measured once, in less than a second, and kept),
    /// `"measure"` (again), `"model"` (nothing is measured), or a file that was kept; without it as `CAIRN_RATES` says, or
    /// `"cache"`.
    pub fn rates(mut self, rates: impl Into<String>) -> DeviceOptions {
        self.rates = Some(rates.into());
        self
    }
}

/// An open device, from which plans and sessions are made.
///
/// `Send` and not `Sync`: calls with one device come one after the other. Sessions made from it run independently of
/// each other and of it, on any threads.
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// shared::<cairn::Device>();
/// ```
#[derive(Debug)]
pub struct Device {
    pub(crate) raw: Handle<sys::cairn_device_t>,
    pub(crate) host: Host,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_major_versions_are_told() {
        assert!(check_version(sys::VERSION_NUMBER, "1.0.0").is_ok());
        assert!(check_version(sys::VERSION_NUMBER + 100, "1.1.0").is_ok());
        for (number, text) in [(20000, "2.0.0"), (900, "0.9.0")] {
            let error = check_version(number, text).unwrap_err();
            assert_eq!(error.status(), Status::Unsupported);
            assert!(error.message().contains(text) && error.message().contains("1.0 or a later 1.x"), "{error}");
        }
    }
}
