//! Graphs: values, ops, parameters, regions.
pub(crate) mod adapter;
pub(crate) mod builder;
pub(crate) mod op;
pub mod ops;
pub(crate) mod value;

use crate::error::Result;
use crate::handle::{check, make, Handle};
use crate::host::Host;
use crate::text::{c_path, c_text};
use crate::Instance;
use cairn_sys as sys;
use std::path::Path;
use value::{value_info, Brand, Value, ValueInfo, ValueKind};

/// A frozen graph: immutable, to be planned.
///
/// `Send` and not `Sync`: `cairn.h` wants the calls that plan a graph to come one after the other.
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// shared::<cairn::Graph>();
/// ```
#[derive(Debug)]
pub struct Graph {
    pub(crate) raw: Handle<sys::cairn_graph_t>,
    pub(crate) brand: Brand,
    pub(crate) host: Host,
}

impl Graph {
    pub(crate) fn owned(raw: Handle<sys::cairn_graph_t>, host: Host) -> Graph {
        Graph { raw, brand: Brand::new(), host }
    }

    /// Reads a graph that [`save`](Graph::save) wrote.
    pub fn load(instance: &Instance, path: impl AsRef<Path>) -> Result<Graph> {
        let path = c_path(path.as_ref())?;
        let raw = make(|out, error| unsafe { sys::cairn_graph_load(instance.raw.get(), path.as_ptr(), out, error) })?;
        Ok(Graph::owned(raw, instance.host.clone()))
    }

    /// Writes the graph into a file of its own. Of custom ops it holds the names. Errors: `Io`.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path.as_ref())?;
        check(|error| unsafe { sys::cairn_graph_save(self.raw.get(), path.as_ptr(), error) })
    }

    /// What is known of a value.
    pub fn info(&self, value: Value) -> Result<ValueInfo<'_>> {
        let number = self.brand.number(value)?;
        // The graph is frozen, and lives as long as this reference.
        unsafe { value_info(self.raw.get(), Value { number, ..value }) }
    }

    /// The value of that name.
    pub fn find(&self, name: &str) -> Option<Value> {
        let name = c_text("a name", name).ok()?;
        let number = unsafe { sys::cairn_graph_find(self.raw.get(), name.as_ptr()) };
        (number != 0).then_some(Value { number, brand: self.brand })
    }

    /// All values, in the order in which they were made.
    pub fn values(&self) -> impl Iterator<Item = ValueInfo<'_>> {
        let count = unsafe { sys::cairn_graph_value_count(self.raw.get()) };
        let brand = self.brand;
        // The graph is frozen, and lives as long as this reference.
        (1..=count as u32).filter_map(move |number| unsafe { value_info(self.raw.get(), Value { number, brand }).ok() })
    }

    /// The values that the host writes before each run.
    pub fn inputs(&self) -> impl Iterator<Item = ValueInfo<'_>> {
        self.values().filter(|value| value.kind == ValueKind::Input)
    }

    /// The trainable tensors.
    pub fn parameters(&self) -> impl Iterator<Item = ValueInfo<'_>> {
        self.values().filter(|value| value.kind == ValueKind::Parameter)
    }
}
