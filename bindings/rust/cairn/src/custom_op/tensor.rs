//! Tensors as a custom op's closures see them.
use crate::enums::{DType, Element};
use crate::error::{Error, Result};
use cairn_sys as sys;

/// The type of a tensor: its dimensions, slowest first, and its elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorType {
    /// At most eight dimensions.
    pub dims: Vec<i64>,
    /// The type of the elements.
    pub dtype: DType,
}

impl TensorType {
    /// A type of these dimensions and elements.
    pub fn new(dims: &[i64], dtype: DType) -> TensorType {
        TensorType { dims: dims.to_vec(), dtype }
    }
}

/// A tensor that a closure reads, where it lies.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'a>(pub(super) &'a sys::cairn_tensor_t);

impl<'a> Tensor<'a> {
    /// Its dimensions, slowest first.
    pub fn dims(&self) -> &'a [i64] {
        dims(self.0)
    }

    /// The type of its elements.
    pub fn dtype(&self) -> DType {
        DType::from(self.0.dtype)
    }

    /// Whether it is there: an operand may be left out, and an output's gradient may be zero.
    pub fn is_there(&self) -> bool {
        !self.0.data.is_null()
    }

    /// Its elements, row by row. An error where it is not there, or has elements of another type.
    pub fn slice<T: Element>(&self) -> Result<&'a [T]> {
        let (data, count) = elements::<T>(self.0)?;
        // The library lends the tensor for the call, and nothing writes it meanwhile.
        Ok(unsafe { std::slice::from_raw_parts(data, count) })
    }
}

/// A tensor that a closure fills, where it lies.
#[derive(Debug)]
pub struct TensorMut<'a>(pub(super) &'a sys::cairn_tensor_t);

impl<'a> TensorMut<'a> {
    /// Its dimensions, slowest first.
    pub fn dims(&self) -> &'a [i64] {
        dims(self.0)
    }

    /// The type of its elements.
    pub fn dtype(&self) -> DType {
        DType::from(self.0.dtype)
    }

    /// Whether it is wanted: the gradient of an operand may not be.
    pub fn is_wanted(&self) -> bool {
        !self.0.data.is_null()
    }

    /// Its elements, row by row; what they are before is anything. An error where it is not wanted, or has elements of
    /// another type.
    pub fn slice_mut<T: Element>(&mut self) -> Result<&mut [T]> {
        let (data, count) = elements::<T>(self.0)?;
        // The library lends the tensor for the call, to this closure alone; all bits are values of T.
        Ok(unsafe { std::slice::from_raw_parts_mut(data, count) })
    }
}

pub(super) fn dims(tensor: &sys::cairn_tensor_t) -> &[i64] {
    &tensor.dims[..(tensor.rank as usize).min(tensor.dims.len())]
}

/// Where the elements lie, and how many there are.
fn elements<T: Element>(tensor: &sys::cairn_tensor_t) -> Result<(*mut T, usize)> {
    let dtype = DType::from(tensor.dtype);
    if !T::DTYPES.contains(&dtype) {
        let wanted = std::any::type_name::<T>();
        return Err(Error::argument(format!(
            "a tensor of {dtype:?} is read as {wanted}; take the type of its dtype()"
        )));
    }
    if tensor.data.is_null() || tensor.data as usize % std::mem::align_of::<T>() != 0 {
        return Err(Error::argument("a tensor that is not there is read; ask is_there() or is_wanted() first".into()));
    }
    Ok((tensor.data.cast(), dims(tensor).iter().product::<i64>() as usize))
}
