//! Checkpoints, and names in safetensors files.
use crate::error::Result;
use crate::graph::Graph;
use crate::handle::{blank, check, make, Handle};
use crate::host::Host;
use crate::text::{c_path, c_text, lent, Texts};
use crate::{Instance, Session};
use cairn_sys as sys;
use std::path::{Path, PathBuf};

/// A checkpoint, opened. Clones are the same one.
///
/// `Send + Sync`: all its calls are `const` in `cairn.h`.
///
/// ```no_run
/// # let instance = cairn::Instance::new()?;
/// let checkpoint = cairn::Checkpoint::open(&instance, "runs/today")?;
/// println!("{}: task {:?}", checkpoint.directory(), checkpoint.metadata("task"));
/// println!("{}", instance.inspect("runs/today")?);
/// # Ok::<(), cairn::Error>(())
/// ```
#[derive(Debug)]
pub struct Checkpoint {
    pub(crate) raw: Handle<sys::cairn_checkpoint_t>,
    host: Host,
}

// Only const calls are made with it.
unsafe impl Sync for Checkpoint {}

impl Checkpoint {
    /// Opens a checkpoint, or the newest complete one below a directory. Errors: `NotFound`, `CorruptFile`, `Io`.
    pub fn open(instance: &Instance, directory: impl AsRef<Path>) -> Result<Checkpoint> {
        let directory = c_path(directory.as_ref())?;
        let from = instance.raw.get();
        let raw = make(|out, error| unsafe { sys::cairn_checkpoint_open(from, directory.as_ptr(), out, error) })?;
        Ok(Checkpoint { raw, host: instance.host.clone() })
    }

    /// Deletes the checkpoint in a directory: its own files, and the directory if nothing else is in it.
    pub fn remove(instance: &Instance, directory: impl AsRef<Path>) -> Result<()> {
        let directory = c_path(directory.as_ref())?;
        check(|error| unsafe { sys::cairn_checkpoint_remove(instance.raw.get(), directory.as_ptr(), error) })
    }

    /// The directory that it was opened from.
    pub fn directory(&self) -> &str {
        // Lent by the checkpoint.
        unsafe { lent(sys::cairn_checkpoint_directory(self.raw.get())) }
    }

    /// A word of the host's own that was saved with it.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        let key = c_text("a key", key).ok()?;
        let value = unsafe { sys::cairn_checkpoint_metadata(self.raw.get(), key.as_ptr()) };
        // Lent by the checkpoint.
        (!value.is_null()).then(|| unsafe { lent(value) })
    }

    /// Compares all tensors with their digests. Errors: `CorruptFile`, `Io`.
    pub fn verify(&self) -> Result<()> {
        check(|error| unsafe { sys::cairn_checkpoint_verify(self.raw.get(), error) })
    }

    /// The graph that it was trained with.
    pub fn graph(&self) -> Result<Graph> {
        let raw = make(|out, error| unsafe { sys::cairn_checkpoint_graph(self.raw.get(), out, error) })?;
        Ok(Graph::owned(raw, self.host.clone()))
    }
}

impl Clone for Checkpoint {
    fn clone(&self) -> Checkpoint {
        Checkpoint { raw: self.raw.again(), host: self.host.clone() }
    }
}

/// Another name for a parameter in a safetensors file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct TensorName {
    ours: String,
    theirs: String,
    transposed: bool,
    stacked: bool,
}

impl TensorName {
    /// The parameter's name, and the tensor's.
    pub fn new(ours: &str, theirs: &str) -> TensorName {
        TensorName { ours: ours.to_string(), theirs: theirs.to_string(), transposed: false, stacked: false }
    }

    /// The tensor is stored as \[in, out\].
    pub fn transposed(mut self) -> TensorName {
        self.transposed = true;
        self
    }

    /// The tensor is one element of the parameter's first dimension, as one expert's matrix: there is a name for each of
    /// them, in their order.
    pub fn stacked(mut self) -> TensorName {
        self.stacked = true;
        self
    }
}

/// How weights are written: see [`Session::export_as`](crate::Session::export_as).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct ExportOptions {
    /// The type that is written: "f32", "bf16", "f16". None: as each parameter is stored.
    pub dtype: Option<String>,
    /// The same of parameters that are not trained. None: as `dtype` says.
    pub frozen_dtype: Option<String>,
    /// The path is a directory, new or empty: of `model.safetensors`, or of several files and their index.
    pub directory: bool,
    /// Of a directory: the most bytes of tensors in one file, but for a larger tensor. 0: no limit.
    pub shard_bytes: u64,
    /// Of a directory: files that are copied into it.
    pub files: Vec<PathBuf>,
}

impl Session {
    /// Writes all parameters into a safetensors file; those without a row keep their names.
    pub fn export(&mut self, path: impl AsRef<Path>, renamed: &[TensorName]) -> Result<()> {
        let path = c_path(path.as_ref())?;
        let mut texts = Texts::default();
        let rows = names(&mut texts, renamed)?;
        check(|error| unsafe { sys::cairn_session_export(self.raw(), path.as_ptr(), rows.as_ptr(), rows.len(), error) })
    }

    /// The same in another type, or as the directory of a model. All or nothing, durable when it returns. Errors:
    /// also `InvalidArgument` (the directory holds something; no such type).
    pub fn export_as(&mut self, path: impl AsRef<Path>, renamed: &[TensorName], options: &ExportOptions) -> Result<()> {
        let path = c_path(path.as_ref())?;
        let mut texts = Texts::default();
        let rows = names(&mut texts, renamed)?;
        let copied = options.files.iter().map(|file| c_path(file)).collect::<Result<Vec<_>>>()?;
        let files = copied.iter().map(|file| file.as_ptr()).collect::<Vec<_>>();
        let mut raw: sys::cairn_export_options_t = blank();
        raw.dtype = texts.add_some("dtype", options.dtype.as_deref())?;
        raw.frozen_dtype = texts.add_some("frozen_dtype", options.frozen_dtype.as_deref())?;
        raw.directory = options.directory.into();
        raw.shard_bytes = options.shard_bytes;
        (raw.files, raw.file_count) = (files.as_ptr(), files.len());
        check(|error| unsafe {
            sys::cairn_session_export_as(self.raw(), path.as_ptr(), rows.as_ptr(), rows.len(), &raw, error)
        })
    }

    /// Reads all parameters from a safetensors file, or from the directory of a model, converting from 16 and 64 bits.
    pub fn import(&mut self, path: impl AsRef<Path>, renamed: &[TensorName]) -> Result<()> {
        let path = c_path(path.as_ref())?;
        let mut texts = Texts::default();
        let rows = names(&mut texts, renamed)?;
        check(|error| unsafe { sys::cairn_session_import(self.raw(), path.as_ptr(), rows.as_ptr(), rows.len(), error) })
    }
}

/// Borrows from `texts`.
fn names(texts: &mut Texts, rows: &[TensorName]) -> Result<Vec<sys::cairn_name_t>> {
    let raw = |row: &TensorName| {
        let ours = texts.add("the name of a parameter", &row.ours)?;
        let theirs = texts.add("the name of a tensor", &row.theirs)?;
        Ok(sys::cairn_name_t { ours, theirs, transposed: row.transposed.into(), stacked: row.stacked.into() })
    };
    rows.iter().map(raw).collect()
}

/// Borrows from `texts`.
pub(crate) fn metadata(texts: &mut Texts, words: &[(&str, &str)]) -> Result<Vec<sys::cairn_metadata_t>> {
    let raw = |&(key, value): &(&str, &str)| {
        let key = texts.add("a key of metadata", key)?;
        Ok(sys::cairn_metadata_t { key, value: texts.add("a word of metadata", value)? })
    };
    words.iter().map(raw).collect()
}
