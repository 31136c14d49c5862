//! What a call that failed says: a status, a message, and for memory the numbers.
use crate::enums::Tier;
use crate::text::from_chars;
use cairn_sys as sys;
use std::ffi::CStr;
use std::fmt;

/// What every fallible call returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call failed, and so what its caller can do about it.
///
/// ```
/// use cairn::Status;
/// assert_eq!(Status::OverBudget.name(), "OVER_BUDGET");
/// assert_eq!(Status::from(4), Status::OverBudget);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// The arguments must change; the message names the one, and both values where two disagree.
    InvalidArgument,
    /// Not now; the message names the state, and the one that is needed.
    WrongState,
    /// The system gave no memory: free something and call again. [`Error::fault`] says how much was asked for.
    OutOfMemory,
    /// No plan fits the budget; [`MemoryFault::smallest_budget_bytes`] is the smallest that does.
    OverBudget,
    /// Valid, but not with this build, device or version.
    Unsupported,
    /// There is no such file, name, row or device.
    NotFound,
    /// Truncated, changed or foreign bytes: use another file.
    CorruptFile,
    /// The system refused to read or write; the message names path and cause.
    Io,
    /// The device is gone until the process ends.
    DeviceLost,
    /// [`Monitor::cancel`](crate::Monitor::cancel) was called; parameters are as before.
    Cancelled,
    /// A number that must be finite is not.
    NonFinite,
    /// A bug of cairn's: please report it.
    Internal,
    /// A status of a newer library than this crate.
    Unknown(i32),
}

const STATUSES: [Status; 12] = [
    Status::InvalidArgument,
    Status::WrongState,
    Status::OutOfMemory,
    Status::OverBudget,
    Status::Unsupported,
    Status::NotFound,
    Status::CorruptFile,
    Status::Io,
    Status::DeviceLost,
    Status::Cancelled,
    Status::NonFinite,
    Status::Internal,
];

impl Status {
    /// The name in `cairn.h`, `"OVER_BUDGET"`; `"UNKNOWN"` where the library has none.
    pub fn name(self) -> &'static str {
        // The text is static and ASCII.
        unsafe { CStr::from_ptr(sys::cairn_status_name(self.code())) }.to_str().unwrap_or("UNKNOWN")
    }

    /// The number in `cairn.h`.
    pub fn code(self) -> i32 {
        match self {
            Status::Unknown(code) => code,
            known => STATUSES.iter().position(|&status| status == known).map_or(0, |at| at as i32 + 1),
        }
    }
}

impl From<i32> for Status {
    fn from(code: i32) -> Status {
        let known = usize::try_from(code).ok().and_then(|code| code.checked_sub(1)).and_then(|at| STATUSES.get(at));
        known.copied().unwrap_or(Status::Unknown(code))
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What was asked of memory, with [`Status::OutOfMemory`] and [`Status::OverBudget`]. All in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryFault {
    /// What was asked for.
    pub requested_bytes: u64,
    /// What was taken already.
    pub in_use_bytes: u64,
    /// The budget that held.
    pub budget_bytes: u64,
    /// With [`Status::OverBudget`]: the smallest budget that succeeds; 0: not known.
    pub smallest_budget_bytes: u64,
    /// Where the bytes were to live.
    pub tier: Tier,
    /// The region or op that forms the peak; may be empty.
    pub region: String,
}

/// A call that failed. Everything is as it was before the call, or says in each later call that it is lost.
///
/// ```
/// let instance = cairn::Instance::new()?;
/// let error = instance.device("abacus").unwrap_err();
/// assert_eq!(error.status(), cairn::Status::NotFound);
/// assert!(error.message().contains("cpu"), "it lists the devices that there are");
/// assert!(error.fault().is_none(), "only failures about memory come with numbers");
/// # Ok::<(), cairn::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    status: Status,
    message: String,
    fault: Option<Box<MemoryFault>>,
}

impl Error {
    /// An error of the host's own, for the closures of a [`CustomOp`](crate::CustomOp).
    pub fn new(status: Status, message: impl Into<String>) -> Error {
        Error { status, message: message.into(), fault: None }
    }

    /// Why the call failed.
    pub fn status(&self) -> Status {
        self.status
    }

    /// What was given, what is wanted, and the remedy, as one or a few sentences.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The numbers of a failure about memory.
    pub fn fault(&self) -> Option<&MemoryFault> {
        self.fault.as_deref()
    }

    pub(crate) fn argument(message: String) -> Error {
        Error::new(Status::InvalidArgument, message)
    }

    /// The same with what caused it: its words, and its status where that is one of the library's.
    pub(crate) fn because(mut self, cause: &Error) -> Error {
        if STATUSES.contains(&cause.status) {
            self.status = cause.status;
        }
        self.message = format!("{}: {}", self.message, cause.message);
        self
    }

    /// What the library wrote into its error object; null: there was no memory for one.
    pub(crate) fn read(status: i32, object: *const sys::cairn_error_t) -> Error {
        if object.is_null() {
            return Error::new(status.into(), "there is no memory for an error object");
        }
        let mut fault: sys::cairn_memory_fault_t = crate::handle::blank();
        // The object is this thread's own; its text is borrowed until it is used again, and copied here.
        let (message, found) = unsafe {
            let message = CStr::from_ptr(sys::cairn_error_message(object)).to_string_lossy().into_owned();
            (message, sys::cairn_error_memory_fault(object, &mut fault) == sys::CAIRN_STATUS_OK as i32)
        };
        let fault = found.then(|| {
            Box::new(MemoryFault {
                requested_bytes: fault.requested_bytes,
                in_use_bytes: fault.in_use_bytes,
                budget_bytes: fault.budget_bytes,
                smallest_budget_bytes: fault.smallest_budget_bytes,
                tier: Tier::from(fault.tier),
                region: from_chars(&fault.region),
            })
        });
        Error { status: status.into(), message, fault }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status, self.message)
    }
}

impl std::error::Error for Error {}

/// Words alone are the failure of an argument: `Err("the matrix is singular")?` in a closure of a custom op.
impl From<&str> for Error {
    fn from(message: &str) -> Error {
        Error::argument(message.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_its_code_and_name() {
        for (at, status) in STATUSES.iter().enumerate() {
            assert_eq!(status.code(), at as i32 + 1);
            assert_eq!(Status::from(status.code()), *status);
            assert_ne!(status.name(), "UNKNOWN");
        }
        for code in [-1, 0, 13, i32::MAX] {
            assert_eq!(Status::from(code), Status::Unknown(code));
            assert_eq!(Status::Unknown(code).code(), code);
        }
        assert_eq!(Status::Unknown(13).name(), "UNKNOWN");
    }
}
