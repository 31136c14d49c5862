//! Types of a graph's values by name: what is written and read must be numbers of the value's type, as 0, 1 and 2 are not
//! where f32 is wanted.
use crate::enums::{DType, Element};
use crate::error::{Error, Result};
use crate::graph::Graph;
use std::any::{type_name, TypeId};
use std::collections::HashMap;

#[derive(Debug)]
pub(crate) struct DTypes(HashMap<String, DType>);

impl DTypes {
    pub(crate) fn of(graph: &Graph) -> DTypes {
        DTypes(graph.values().map(|value| (value.name.to_owned(), value.dtype)).collect())
    }

    /// Values of the graph and their gradients, which are as wide as sums are.
    fn find(&self, name: &str) -> Option<DType> {
        let known = self.0.get(name).copied();
        known.or_else(|| match *self.0.get(name.strip_suffix("/gradient")?)? {
            DType::F64 => Some(DType::F64),
            _ => Some(DType::F32),
        })
    }

    /// Refuses numbers of another type than the value's. Bytes may stand for any; names that are not known are left to the
    /// library.
    pub(crate) fn check<T: Element>(&self, name: &str) -> Result<()> {
        match self.find(name) {
            Some(dtype) if !T::DTYPES.contains(&dtype) && TypeId::of::<T>() != TypeId::of::<u8>() => {
                Err(Error::argument(format!(
                    "'{name}' is {dtype:?}: numbers of {} were given; take the type that stands for it",
                    type_name::<T>()
                )))
            }
            _ => Ok(()),
        }
    }
}
