//! Values of a graph, and what is known of them.
use crate::enums::DType;
use crate::error::{Error, Result};
use crate::handle::{blank, check};
use crate::text::lent;
use cairn_sys as sys;
use std::sync::atomic::{AtomicU32, Ordering};

/// A value of one graph: an input, a parameter, or what an op makes. It is a number; copies are the same value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Value {
    pub(crate) number: u32,
    pub(crate) brand: Brand,
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Value({})", self.number)
    }
}

/// Which graph a value is of: numbers of another graph would name other values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Brand(u32);

impl Brand {
    pub(crate) fn new() -> Brand {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Brand(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// A value's number, if it is of this graph.
    pub(crate) fn number(self, value: Value) -> Result<u32> {
        if value.brand == self {
            return Ok(value.number);
        }
        Err(Error::argument(format!(
            "value {} is of another graph; take this graph's own, from its inputs, parameters and ops",
            value.number
        )))
    }
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ValueKind {
    /// Written by the host before each run.
    Input,
    /// A trainable tensor.
    Parameter,
    /// Made by an op.
    Activation,
    /// Moved by applied steps, and saved.
    Statistic,
    /// Changed by runs, and not saved.
    Cache,
    /// A number of a newer library than this crate.
    Unknown(u32),
}

impl From<u32> for ValueKind {
    fn from(number: u32) -> ValueKind {
        match number {
            0 => ValueKind::Input,
            1 => ValueKind::Parameter,
            2 => ValueKind::Activation,
            3 => ValueKind::Statistic,
            4 => ValueKind::Cache,
            other => ValueKind::Unknown(other),
        }
    }
}

/// What is known of a value. Its name is borrowed from the graph.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ValueInfo<'g> {
    /// The value itself.
    pub value: Value,
    /// Its name, unique in the graph.
    pub name: &'g str,
    /// Its dimensions, slowest first.
    pub dims: Vec<i64>,
    /// The type of its elements.
    pub dtype: DType,
    /// What it is.
    pub kind: ValueKind,
    /// The number of the region that it was made in; 0: of none.
    pub region: u32,
    /// Its size.
    pub bytes: u64,
    /// Whether it is a parameter that is not trained.
    pub frozen: bool,
}

/// # Safety
/// `graph` lives for `'g`, and no call changes it meanwhile.
pub(crate) unsafe fn value_info<'g>(graph: *const sys::cairn_graph_t, value: Value) -> Result<ValueInfo<'g>> {
    let mut raw: sys::cairn_value_info_t = blank();
    check(|error| sys::cairn_graph_value_info(graph, value.number, &mut raw, error))?;
    Ok(ValueInfo {
        value,
        name: lent(raw.name),
        dims: raw.dims[..raw.rank as usize].to_vec(),
        dtype: DType::from(raw.dtype),
        kind: ValueKind::from(raw.kind),
        region: raw.region,
        bytes: raw.bytes,
        frozen: raw.frozen != 0,
    })
}
