//! References to the library's objects, and the one way in which calls become results.
use crate::error::{Error, Result, Status};
use cairn_sys as sys;
use std::cell::Cell;
use std::ptr::NonNull;

/// A type of the library's whose references are counted.
pub(crate) trait Counted {
    /// # Safety
    /// `object` is a reference that nothing uses any more.
    unsafe fn release(object: *mut Self);
    /// # Safety
    /// `object` lives.
    unsafe fn retain(object: *mut Self);
}

macro_rules! counted {
    ($($object:ident $retain:ident $release:ident),* $(,)?) => {$(
        impl Counted for sys::$object {
            unsafe fn release(object: *mut Self) {
                sys::$release(object)
            }
            unsafe fn retain(object: *mut Self) {
                sys::$retain(object)
            }
        }
    )*};
}

counted! {
    cairn_error_t cairn_error_retain cairn_error_release,
    cairn_text_t cairn_text_retain cairn_text_release,
    cairn_instance_t cairn_instance_retain cairn_instance_release,
    cairn_device_t cairn_device_retain cairn_device_release,
    cairn_graph_t cairn_graph_retain cairn_graph_release,
    cairn_costs_t cairn_costs_retain cairn_costs_release,
    cairn_plan_t cairn_plan_retain cairn_plan_release,
    cairn_session_t cairn_session_retain cairn_session_release,
    cairn_stepper_t cairn_stepper_retain cairn_stepper_release,
    cairn_checkpoint_t cairn_checkpoint_retain cairn_checkpoint_release,
    cairn_template_t cairn_template_retain cairn_template_release,
    cairn_tokenizer_t cairn_tokenizer_retain cairn_tokenizer_release,
    cairn_dataset_t cairn_dataset_retain cairn_dataset_release,
    cairn_pictures_t cairn_pictures_retain cairn_pictures_release,
    cairn_generator_t cairn_generator_retain cairn_generator_release,
    cairn_model_t cairn_model_retain cairn_model_release,
}

/// One reference, given back when it is dropped.
pub(crate) struct Handle<T: Counted>(NonNull<T>);

// Retain and release may be called from any thread, and which thread calls with a handle does not matter. What may be
// shared says so itself (`Sync`): a handle cannot know with which calls it is used.
unsafe impl<T: Counted> Send for Handle<T> {}

impl<T: Counted> Handle<T> {
    pub(crate) fn get(&self) -> *mut T {
        self.0.as_ptr()
    }

    /// The reference that a call gave; null where it gave none, which only a library of another promise would do.
    pub(crate) fn owned(object: *mut T) -> Result<Handle<T>> {
        NonNull::new(object)
            .map(Handle)
            .ok_or_else(|| Error::new(Status::Internal, "the library gave no object; please report this"))
    }

    /// Another reference to the same object.
    pub(crate) fn again(&self) -> Handle<T> {
        // The object lives as long as this reference does.
        unsafe { T::retain(self.get()) };
        Handle(self.0)
    }
}

impl<T: Counted> Drop for Handle<T> {
    fn drop(&mut self) {
        // The reference is this object's own.
        unsafe { T::release(self.get()) }
    }
}

impl<T: Counted> std::fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:p}", self.0)
    }
}

thread_local! {
    /// An error object belongs to one call at a time, so each thread has its own.
    static ERROR: Option<Handle<sys::cairn_error_t>> = {
        // Gives null without memory, and nothing else can go wrong.
        Handle::owned(unsafe { sys::cairn_error_create() }).ok()
    };
    /// Whether this thread runs a closure that the library called.
    static CALLED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `call(error)` and returns what it reports. Closures that the library called may not call it themselves.
pub(crate) fn check(call: impl FnOnce(*mut sys::cairn_error_t) -> sys::cairn_status_t) -> Result<()> {
    if CALLED.try_with(Cell::get).unwrap_or(false) {
        return Err(Error::new(
            Status::WrongState,
            "a closure that cairn called (of a custom op, a log or an allocator) calls cairn; keep what it needs in \
             the closure, and do the rest after the call that it was called by",
        ));
    }
    ERROR.try_with(|object| finish(call, object.as_ref().map_or(std::ptr::null_mut(), Handle::get))).unwrap_or_else(
        // The thread ends, and its object is gone: without one there is a status and no message.
        |_| Err(Error::new(Status::WrongState, "this thread ends: call cairn before its thread-locals are dropped")),
    )
}

fn finish(
    call: impl FnOnce(*mut sys::cairn_error_t) -> sys::cairn_status_t,
    object: *mut sys::cairn_error_t,
) -> Result<()> {
    match call(object) {
        0 => Ok(()),
        status => Err(Error::read(status, object)),
    }
}

/// The object that `call(&mut out, error)` gives.
pub(crate) fn make<T: Counted>(
    call: impl FnOnce(*mut *mut T, *mut sys::cairn_error_t) -> sys::cairn_status_t,
) -> Result<Handle<T>> {
    let mut out = std::ptr::null_mut();
    check(|error| call(&mut out, error))?;
    Handle::owned(out)
}

/// The `count` objects that `call(first, error)` gives.
pub(crate) fn make_all<T: Counted>(
    count: usize,
    call: impl FnOnce(*mut *mut T, *mut sys::cairn_error_t) -> sys::cairn_status_t,
) -> Result<Vec<Handle<T>>> {
    let mut out = vec![std::ptr::null_mut(); count];
    check(|error| call(out.as_mut_ptr(), error))?;
    out.into_iter().map(Handle::owned).collect()
}

/// `value` as `call(&mut value, error)` fills it.
pub(crate) fn fill<S>(
    mut value: S,
    call: impl FnOnce(*mut S, *mut sys::cairn_error_t) -> sys::cairn_status_t,
) -> Result<S> {
    check(|error| call(&mut value, error))?;
    Ok(value)
}

/// A struct of the header: numbers, pointers that may be null, and arrays of these, of which all bits may be zero.
pub(crate) trait Struct: Sized {
    /// All zero, which means the default, also of fields that later headers add; its size is set where it has one.
    fn new() -> Self;
}

/// A struct in the form that the library reads or fills.
pub(crate) fn blank<S: Struct>() -> S {
    S::new()
}

macro_rules! structs {
    ($($name:ident $($size:ident)?,)*) => {$(
        impl Struct for sys::$name {
            fn new() -> Self {
                // Numbers, raw pointers, optional functions and arrays of numbers: zero is a value of each.
                #[allow(unused_mut)]
                let mut value: Self = unsafe { std::mem::zeroed() };
                $(value.$size = std::mem::size_of::<Self>();)?
                value
            }
        }
    )*};
}

structs! {
    cairn_adapter_t struct_size,
    cairn_allocator_t struct_size,
    cairn_amp_class_info_t struct_size,
    cairn_attr_t,
    cairn_custom_op_t struct_size,
    cairn_dataset_info_t struct_size,
    cairn_pictures_options_t struct_size,
    cairn_pictures_info_t struct_size,
    cairn_pictures_batch_t struct_size,
    cairn_device_info_t struct_size,
    cairn_device_options_t struct_size,
    cairn_export_options_t struct_size,
    cairn_format_info_t struct_size,
    cairn_freeze_options_t struct_size,
    cairn_generator_info_t struct_size,
    cairn_import_options_t struct_size,
    cairn_instance_options_t struct_size,
    cairn_memory_fault_t struct_size,
    cairn_model_info_t struct_size,
    cairn_model_options_t struct_size,
    cairn_model_report_t struct_size,
    cairn_op_info_t struct_size,
    cairn_optimizer_info_t struct_size,
    cairn_parameter_options_t struct_size,
    cairn_plan_counter_info_t struct_size,
    cairn_plan_memory_t struct_size,
    cairn_plan_op_t struct_size,
    cairn_plan_options_t struct_size,
    cairn_plan_rates_t struct_size,
    cairn_plan_summary_t struct_size,
    cairn_plan_value_t struct_size,
    cairn_region_options_t struct_size,
    cairn_sampling_t struct_size,
    cairn_save_options_t struct_size,
    cairn_schedule_info_t struct_size,
    cairn_setting_info_t struct_size,
    cairn_span_t struct_size,
    cairn_step_report_t struct_size,
    cairn_stepper_options_t struct_size,
    cairn_tensor_t,
    cairn_tier_usage_t struct_size,
    cairn_value_info_t struct_size,
}

/// Runs a closure of the host's that the library called: what it panics with is its error, and never crosses the ABI.
pub(crate) fn called<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    let outer = CALLED.try_with(|called| called.replace(true)).unwrap_or(false);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    let _ = CALLED.try_with(|called| called.set(outer));
    result.unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<&str>().map(|words| words.to_string());
        let words = words.or_else(|| panic.downcast_ref::<String>().cloned());
        // What was panicked with may panic when it is dropped.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(panic)));
        Err(Error::argument(format!("it panicked: {}", words.as_deref().unwrap_or("not with words"))))
    })
}
