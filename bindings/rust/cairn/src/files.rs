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
#[derive(Clone, Debug, Default, PartialEq)]
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
    /// Of a directory of one file: its name. None: `model.safetensors`.
    pub file_name: Option<String>,
    /// Of the files that are written, besides `format: pt`: keys and values.
    pub metadata: Vec<(String, String)>,
    /// One for each parameter that is written with an adapter, or that a format rounded.
    pub merges: Vec<Merge>,
    /// Of merges with a format, the weight is what the format makes of it.
    pub dequantise: bool,
    /// None or "safetensors"; "gguf": a GGUF file, whose `dtype` may be a block type, as "q8_0".
    pub container: Option<String>,
    /// Of a GGUF file: JSON, see `cairn_export_options_t`.
    pub gguf_metadata: Option<String>,
    /// Of a GGUF file.
    pub layouts: Vec<Layout>,
}

/// What is added to a parameter while it is written: the product of an adapter's matrices, times `scale`.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use]
pub struct Merge {
    /// The parameter W.
    pub weight: String,
    /// A and B: W + `scale` B A, of shapes \[..., r, in\] and \[..., out, r\]. None: nothing is added.
    pub matrices: Option<(String, String)>,
    /// Of what is added.
    pub scale: f64,
    /// W is a table, and W + `scale` A B transposed is written, of shapes \[rows, r\] and \[width, r\].
    pub table: bool,
    /// Each row of the sum gets this length (DoRA).
    pub magnitude: Option<String>,
    /// What the run stored W in, where the session has it in full.
    pub format: Option<String>,
}

/// How far what is written of merges with a format is from the other way to merge them: from the weight in full, or from what the
/// format makes of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MergeDifference {
    /// The largest difference of two numbers.
    pub largest: f64,
    /// The mean of all.
    pub mean: f64,
}

fn merges(texts: &mut Texts, rows: &[Merge]) -> Result<Vec<sys::cairn_merge_t>> {
    rows.iter()
        .map(|row| {
            let matrices = row.matrices.as_ref();
            Ok(sys::cairn_merge_t {
                weight: texts.add("weight", &row.weight)?,
                a: texts.add_some("a", matrices.map(|(a, _)| a.as_str()))?,
                b: texts.add_some("b", matrices.map(|(_, b)| b.as_str()))?,
                magnitude: texts.add_some("magnitude", row.magnitude.as_deref())?,
                format: texts.add_some("format", row.format.as_deref())?,
                scale: row.scale,
                kind: if row.table { sys::CAIRN_MERGE_TABLE } else { sys::CAIRN_MERGE_MATRIX },
                reserved: 0,
            })
        })
        .collect()
}

/// How a file has the values of a parameter, where it is not as they are: its rows are `groups` groups of units of `unit`
/// rows, in which `ways` runs of units take turns; `offset` is what the file's values are above the parameter's.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Layout {
    /// The parameter.
    pub ours: String,
    /// How many groups of rows there are.
    pub groups: u32,
    /// How many runs of units take turns in a group. 1: rows are in their order.
    pub ways: u32,
    /// Rows of a unit.
    pub unit: u32,
    /// What the file's values are above the parameter's.
    pub offset: f32,
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
        self.export_merged(path, renamed, options).map(|_| ())
    }

    /// The same, which says what the way of merging makes a difference of.
    pub fn export_merged(
        &mut self,
        path: impl AsRef<Path>,
        renamed: &[TensorName],
        options: &ExportOptions,
    ) -> Result<MergeDifference> {
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
        raw.file_name = texts.add_some("file_name", options.file_name.as_deref())?;
        let words = options.metadata.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect::<Vec<_>>();
        let words = metadata(&mut texts, &words)?;
        (raw.metadata, raw.metadata_count) = (words.as_ptr(), words.len());
        let added = merges(&mut texts, &options.merges)?;
        (raw.merges, raw.merge_count) = (added.as_ptr(), added.len());
        raw.dequantise = options.dequantise.into();
        let mut apart = [0.0; 2];
        raw.out_difference = apart.as_mut_ptr();
        raw.container = texts.add_some("container", options.container.as_deref())?;
        raw.gguf_metadata = texts.add_some("gguf_metadata", options.gguf_metadata.as_deref())?;
        let laid = layouts(&mut texts, &options.layouts)?;
        (raw.layouts, raw.layout_count) = (laid.as_ptr(), laid.len());
        check(|error| unsafe {
            sys::cairn_session_export_as(self.raw(), path.as_ptr(), rows.as_ptr(), rows.len(), &raw, error)
        })?;
        Ok(MergeDifference { largest: apart[0], mean: apart[1] })
    }

    /// The same of parameters that a file has in another order.
    pub fn import_as(&mut self, path: impl AsRef<Path>, renamed: &[TensorName], rows: &[Layout]) -> Result<()> {
        let path = c_path(path.as_ref())?;
        let mut texts = Texts::default();
        let named = names(&mut texts, renamed)?;
        let laid = layouts(&mut texts, rows)?;
        let mut raw: sys::cairn_import_options_t = blank();
        (raw.layouts, raw.layout_count) = (laid.as_ptr(), laid.len());
        check(|error| unsafe {
            sys::cairn_session_import_as(self.raw(), path.as_ptr(), named.as_ptr(), named.len(), &raw, error)
        })
    }

    /// Reads all parameters from a safetensors or GGUF file, or from the directory of a model, converting types.
    pub fn import(&mut self, path: impl AsRef<Path>, renamed: &[TensorName]) -> Result<()> {
        let path = c_path(path.as_ref())?;
        let mut texts = Texts::default();
        let rows = names(&mut texts, renamed)?;
        check(|error| unsafe { sys::cairn_session_import(self.raw(), path.as_ptr(), rows.as_ptr(), rows.len(), error) })
    }
}

/// Borrows from `texts`.
fn layouts(texts: &mut Texts, rows: &[Layout]) -> Result<Vec<sys::cairn_layout_t>> {
    let raw = |row: &Layout| {
        let ours = texts.add("the name of a parameter", &row.ours)?;
        Ok(sys::cairn_layout_t { ours, groups: row.groups, ways: row.ways, unit: row.unit, offset: row.offset })
    };
    rows.iter().map(raw).collect()
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
