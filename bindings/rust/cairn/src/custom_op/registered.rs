//! Custom ops as the library calls them.
use super::tensor::{dims, Tensor, TensorMut, TensorType};
use super::{Backward, CustomOp, Forward};
use crate::enums::DType;
use crate::error::{Error, Result, Status};
use crate::handle::{blank, called};
use crate::text::c_text;
use cairn_sys as sys;
use std::os::raw::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The custom ops of one graph. The library has pointers to them.
#[derive(Debug, Default)]
pub(crate) struct Ops(Mutex<Vec<Arc<Registered>>>);

#[derive(Debug)]
struct Registered {
    op: CustomOp,
    /// What a closure failed with last.
    failure: Mutex<Option<Error>>,
    /// The bytes of workspace that were asked for, by the types of the operands: the library reserved as many, whatever
    /// the closure would say to another question.
    workspaces: Mutex<Vec<(Vec<TensorType>, usize)>>,
}

impl Ops {
    /// Keeps an op that `register` makes known to the library.
    pub(crate) fn add(&self, op: CustomOp, register: impl FnOnce(&sys::cairn_custom_op_t) -> Result<()>) -> Result<()> {
        let registered = Arc::new(Registered { op, failure: Mutex::default(), workspaces: Mutex::default() });
        let op = &registered.op;
        let name = c_text("the name of a custom op", &op.name)?;
        let mut raw: sys::cairn_custom_op_t = blank();
        raw.name = name.as_ptr();
        raw.inputs = op.inputs;
        raw.outputs = op.outputs;
        raw.recomputable = op.recomputable.into();
        raw.user = Arc::as_ptr(&registered) as *mut c_void;
        raw.shape = Some(shape);
        raw.workspace_bytes = op.workspace.is_some().then_some(workspace as _);
        raw.forward = Some(forward);
        raw.backward = op.backward.is_some().then_some(backward as _);
        register(&raw)?;
        locked(&self.0).push(registered);
        Ok(())
    }

    /// The error of a call that failed because a closure did: the library's message names the op, and which of its
    /// callbacks; the closure's status and words follow.
    pub(crate) fn explain(&self, error: Error) -> Error {
        for registered in locked(&self.0).iter() {
            let name = &registered.op.name;
            let message = error.message();
            if message.contains(&format!("custom op '{name}'")) || message.starts_with(&format!("{name}: its ")) {
                if let Some(failure) = locked(&registered.failure).as_ref() {
                    return error.because(failure);
                }
            }
        }
        error
    }
}

/// Closures panic outside of the locks, so no lock is ever poisoned.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of a status that a closure fails with: one that the library does not take for success.
fn failed(error: &Error) -> i32 {
    match error.status().code() {
        0 => Status::InvalidArgument.code(),
        code => code,
    }
}

impl Registered {
    /// Runs one of the closures; a failure is kept, for the call that it fails to tell of.
    fn call<T>(&self, work: impl FnOnce(&CustomOp) -> Result<T>) -> std::result::Result<T, i32> {
        called(|| work(&self.op)).map_err(|error| {
            let code = failed(&error);
            *locked(&self.failure) = Some(error);
            code
        })
    }

    fn known_workspace(&self, operands: &[TensorType]) -> Option<usize> {
        locked(&self.workspaces).iter().find(|(types, _)| types == operands).map(|(_, bytes)| *bytes)
    }

    /// The bytes that the library is to reserve for operands of these types.
    fn ask_workspace(&self, operands: Vec<TensorType>) -> Result<usize> {
        let ask = match &self.op.workspace {
            Some(ask) => ask,
            None => return Ok(0),
        };
        if let Some(bytes) = self.known_workspace(&operands) {
            return Ok(bytes);
        }
        let bytes = ask(&operands)?;
        locked(&self.workspaces).push((operands, bytes));
        Ok(bytes)
    }

    /// # Safety
    /// `data` is null, or points to what the library reserved for these operands, of which nothing else knows.
    unsafe fn workspace<'a>(&self, operands: &[sys::cairn_tensor_t], data: *mut c_void) -> &'a mut [u8] {
        match self.known_workspace(&types(operands)) {
            Some(bytes) if !data.is_null() => std::slice::from_raw_parts_mut(data.cast(), bytes),
            _ => &mut [],
        }
    }
}

/// # Safety
/// `first` points to `count` tensors that live for `'a`.
unsafe fn tensors<'a>(first: *const sys::cairn_tensor_t, count: usize) -> &'a [sys::cairn_tensor_t] {
    std::slice::from_raw_parts(first, count)
}

fn types(list: &[sys::cairn_tensor_t]) -> Vec<TensorType> {
    list.iter().map(|tensor| TensorType::new(dims(tensor), DType::from(tensor.dtype))).collect()
}

fn read(list: &[sys::cairn_tensor_t]) -> Vec<Tensor<'_>> {
    list.iter().map(Tensor).collect()
}

fn written(list: &[sys::cairn_tensor_t]) -> Vec<TensorMut<'_>> {
    list.iter().map(TensorMut).collect()
}

// What the library calls. `user` is a `Registered` that lives: every object that may call it holds the graph's `Ops`.

unsafe extern "C" fn shape(
    user: *mut c_void,
    inputs: *const sys::cairn_tensor_t,
    out: *mut sys::cairn_tensor_t,
) -> i32 {
    let registered = &*(user as *const Registered);
    let result = registered.call(|op| {
        let made = (op.shape)(&types(tensors(inputs, op.inputs as usize)))?;
        if made.len() != op.outputs as usize || made.iter().any(|kind| kind.dims.len() > 8) {
            return Err(Error::argument(format!(
                "its shape closure gave {made:?}; wanted are {} types of at most 8 dimensions",
                op.outputs
            )));
        }
        for (at, kind) in made.iter().enumerate() {
            let mut raw = blank::<sys::cairn_tensor_t>();
            raw.dims[..kind.dims.len()].copy_from_slice(&kind.dims);
            raw.rank = kind.dims.len() as u32;
            raw.dtype = kind.dtype.into();
            *out.add(at) = raw;
        }
        Ok(())
    });
    result.err().unwrap_or(0)
}

unsafe extern "C" fn workspace(user: *mut c_void, inputs: *const sys::cairn_tensor_t) -> i64 {
    let registered = &*(user as *const Registered);
    let operands = types(tensors(inputs, registered.op.inputs as usize));
    registered
        .call(|_| registered.ask_workspace(operands))
        .ok()
        .and_then(|bytes| i64::try_from(bytes).ok())
        .unwrap_or(-1)
}

unsafe extern "C" fn forward(
    user: *mut c_void,
    inputs: *const sys::cairn_tensor_t,
    out: *const sys::cairn_tensor_t,
    workspace: *mut c_void,
) -> i32 {
    let registered = &*(user as *const Registered);
    let result = registered.call(|op| {
        let inputs = tensors(inputs, op.inputs as usize);
        let outputs = written(tensors(out, op.outputs as usize));
        let workspace = registered.workspace(inputs, workspace);
        (op.forward)(&mut Forward { inputs: read(inputs), outputs, workspace })
    });
    result.err().unwrap_or(0)
}

unsafe extern "C" fn backward(
    user: *mut c_void,
    inputs: *const sys::cairn_tensor_t,
    out: *const sys::cairn_tensor_t,
    workspace: *mut c_void,
) -> i32 {
    let registered = &*(user as *const Registered);
    let result = registered.call(|op| {
        let (operands, outputs) = (op.inputs as usize, op.outputs as usize);
        let all = tensors(inputs, operands + 2 * outputs);
        let (inputs, made) = all.split_at(operands);
        let run = op.backward.as_ref().ok_or("it has no backward closure")?;
        run(&mut Backward {
            inputs: read(inputs),
            outputs: read(&made[..outputs]),
            output_gradients: read(&made[outputs..]),
            input_gradients: written(tensors(out, operands)),
            workspace: registered.workspace(inputs, workspace),
        })
    });
    result.err().unwrap_or(0)
}
