//! What of the host program the library calls back: a log, an allocator, custom ops. Every object holds those that it,
//! or what it was made from, may call, so that they outlive it.
use crate::allocator::Allocator;
use crate::custom_op::registered::Ops;
use crate::enums::Level;
use crate::error::{Error, Result};
use std::sync::Arc;

pub(crate) type Log = dyn Fn(Level, &str) + Send + Sync;

/// The hooks of an instance.
#[derive(Default)]
pub(crate) struct Hooks {
    pub(crate) log: Option<Box<Log>>,
    pub(crate) allocator: Option<Box<dyn Allocator>>,
}

/// The hooks and custom ops that an object may call. It follows the object's handle in the struct, so that the handle is
/// released first.
#[derive(Clone, Default)]
pub(crate) struct Host {
    hooks: Vec<Arc<Hooks>>,
    ops: Vec<Arc<Ops>>,
}

impl Host {
    pub(crate) fn of(hooks: Arc<Hooks>) -> Host {
        Host { hooks: vec![hooks], ops: Vec::new() }
    }

    /// The same with custom ops.
    pub(crate) fn with(&self, ops: Arc<Ops>) -> Host {
        self.and(&Host { hooks: Vec::new(), ops: vec![ops] })
    }

    /// What both may call.
    pub(crate) fn and(&self, other: &Host) -> Host {
        let mut both = self.clone();
        add_new(&mut both.hooks, &other.hooks);
        add_new(&mut both.ops, &other.ops);
        both
    }

    /// A failed call's error, with the words of the custom op's closure that made it fail.
    pub(crate) fn explain<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| self.ops.iter().fold(error, |error: Error, ops| ops.explain(error)))
    }
}

fn add_new<T>(to: &mut Vec<Arc<T>>, from: &[Arc<T>]) {
    for each in from {
        if !to.iter().any(|known| Arc::ptr_eq(known, each)) {
            to.push(each.clone());
        }
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Host({} instances, {} graphs with ops)", self.hooks.len(), self.ops.len())
    }
}
