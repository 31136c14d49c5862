//! Text, tokens, batches.
use crate::error::{Error, Result};
use crate::handle::{blank, check, fill, make, Handle};
use crate::host::Host;
use crate::text::{c_path, c_text, Text};
use crate::Instance;
use cairn_sys as sys;
use std::path::Path;

/// Text to tokens, and back. Clones are the same one.
///
/// `Send + Sync`: all its calls are `const` in `cairn.h`.
///
/// ```
/// let instance = cairn::Instance::new()?;
/// let tokenizer = cairn::Tokenizer::bytes(&instance)?;
/// let tokens = tokenizer.encode("cairn")?;
/// assert_eq!(tokens[0], i32::from(b'c'));
/// assert_eq!(tokenizer.decode(&tokens)?.as_str()?, "cairn");
/// # Ok::<(), cairn::Error>(())
/// ```
#[derive(Debug)]
pub struct Tokenizer {
    raw: Handle<sys::cairn_tokenizer_t>,
    _host: Host,
}

// Only const calls are made with it.
unsafe impl Sync for Tokenizer {}

impl Tokenizer {
    /// Every byte is a token.
    pub fn bytes(instance: &Instance) -> Result<Tokenizer> {
        Tokenizer::open(instance, "bytes", None)
    }

    /// A sentencepiece model (bpe or unigram, with byte fallback). Errors: `NotFound`, `CorruptFile`, `Unsupported`.
    pub fn bpe(instance: &Instance, path: impl AsRef<Path>) -> Result<Tokenizer> {
        Tokenizer::open(instance, "bpe", Some(path.as_ref()))
    }

    fn open(instance: &Instance, kind: &str, path: Option<&Path>) -> Result<Tokenizer> {
        let kind = c_text("a kind of tokenizer", kind)?;
        let path = path.map(c_path).transpose()?;
        let path = path.as_ref().map_or(std::ptr::null(), |path| path.as_ptr());
        let from = instance.raw.get();
        let raw = make(|out, error| unsafe { sys::cairn_tokenizer_open(from, kind.as_ptr(), path, out, error) })?;
        Ok(Tokenizer { raw, _host: instance.host.clone() })
    }

    /// Trains a byte-pair vocabulary on a text file and writes the model.
    pub fn train(instance: &Instance, text: impl AsRef<Path>, vocabulary: u32, model: impl AsRef<Path>) -> Result<()> {
        let (text, model) = (c_path(text.as_ref())?, c_path(model.as_ref())?);
        let instance = instance.raw.get();
        check(|error| unsafe { sys::cairn_tokenizer_train(instance, text.as_ptr(), vocabulary, model.as_ptr(), error) })
    }

    /// How many different tokens there are: 0 to that, less one.
    pub fn vocabulary(&self) -> u32 {
        unsafe { sys::cairn_tokenizer_vocabulary(self.raw.get()) }
    }

    /// The tokens of a text.
    pub fn encode(&self, text: &str) -> Result<Vec<i32>> {
        let (data, size) = (text.as_ptr().cast(), text.len());
        let raw = self.raw.get();
        let tokens = Text::make(|out, error| unsafe { sys::cairn_tokenizer_encode(raw, data, size, out, error) })?;
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, i32::from_ne_bytes); // chunks are exact
        Ok(tokens.chunks_exact(std::mem::size_of::<i32>()).map(number).collect())
    }

    /// The text of tokens, which need not be complete characters.
    pub fn decode(&self, tokens: &[i32]) -> Result<Text> {
        let (data, count) = (tokens.as_ptr(), tokens.len());
        let raw = self.raw.get();
        Text::make(|out, error| unsafe { sys::cairn_tokenizer_decode(raw, data, count, out, error) })
    }

    /// Writes the token file of a text file, for [`Dataset::open`].
    pub fn write(&self, text: impl AsRef<Path>, tokens: impl AsRef<Path>) -> Result<()> {
        let (text, tokens) = (c_path(text.as_ref())?, c_path(tokens.as_ref())?);
        check(|error| unsafe { sys::cairn_tokenizer_write(self.raw.get(), text.as_ptr(), tokens.as_ptr(), error) })
    }
}

impl Clone for Tokenizer {
    fn clone(&self) -> Tokenizer {
        Tokenizer { raw: self.raw.again(), _host: self._host.clone() }
    }
}

/// What a dataset holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DatasetInfo {
    /// All tokens.
    pub tokens: u64,
    /// Windows of one epoch.
    pub windows: u64,
    /// How many different tokens there may be.
    pub vocabulary: u32,
    /// Tokens of a window's inputs, and of its targets.
    pub length: u32,
}

/// Windows of tokens, drawn as batches: a pure function of seed and number, so that resuming costs nothing. Clones are the
/// same one.
///
/// `Send + Sync`: all its calls are `const` in `cairn.h`.
///
/// ```
/// let instance = cairn::Instance::new()?;
/// let dataset = cairn::Dataset::random(&instance, 1, 256, 16)?;
/// let (mut inputs, mut targets) = (vec![0; 4 * 16], vec![0; 4 * 16]);
/// let rows = dataset.batch(42, 0, &mut inputs, &mut targets)?;
/// assert_eq!(rows, 4);
/// assert_eq!(inputs[1], targets[0], "targets are the next tokens");
/// # Ok::<(), cairn::Error>(())
/// ```
#[derive(Debug)]
pub struct Dataset {
    raw: Handle<sys::cairn_dataset_t>,
    _host: Host,
}

// Only const calls are made with it.
unsafe impl Sync for Dataset {}

impl Dataset {
    /// Windows of `length` tokens and their successors, from a token file.
    pub fn open(instance: &Instance, tokens: impl AsRef<Path>, length: u32) -> Result<Dataset> {
        let tokens = c_path(tokens.as_ref())?;
        let from = instance.raw.get();
        let raw = make(|out, error| unsafe { sys::cairn_dataset_open(from, tokens.as_ptr(), length, out, error) })?;
        Ok(Dataset { raw, _host: instance.host.clone() })
    }

    /// Tokens drawn from the seed, for benchmarks.
    pub fn random(instance: &Instance, seed: u64, vocabulary: u32, length: u32) -> Result<Dataset> {
        let from = instance.raw.get();
        let raw = make(|out, error| unsafe { sys::cairn_dataset_random(from, seed, vocabulary, length, out, error) })?;
        Ok(Dataset { raw, _host: instance.host.clone() })
    }

    /// What it holds.
    pub fn info(&self) -> Result<DatasetInfo> {
        let raw: sys::cairn_dataset_info_t = blank();
        let raw = fill(raw, |out, error| unsafe { sys::cairn_dataset_info(self.raw.get(), out, error) })?;
        Ok(DatasetInfo { tokens: raw.tokens, windows: raw.windows, vocabulary: raw.vocabulary, length: raw.length })
    }

    /// Fills the inputs and targets of micro-batch `index` since the start of training, row by row; as many rows as there
    /// is room for. Returns the rows that are of this epoch: the rest has target -100, which losses ignore.
    pub fn batch(&self, seed: u64, index: u64, inputs: &mut [i32], targets: &mut [i32]) -> Result<u32> {
        let length = self.info()?.length as usize;
        let rows = inputs.len() / length.max(1);
        if inputs.len() != targets.len() || rows * length != inputs.len() || u32::try_from(rows).is_err() {
            return Err(Error::argument(format!(
                "a batch has {} inputs and {} targets; wanted are equal numbers, rows of {length} each",
                inputs.len(),
                targets.len()
            )));
        }
        let (raw, inputs, targets) = (self.raw.get(), inputs.as_mut_ptr(), targets.as_mut_ptr());
        fill(0, |out, error| unsafe {
            sys::cairn_dataset_batch(raw, seed, index, rows as u32, inputs, targets, out, error)
        })
    }
}

impl Clone for Dataset {
    fn clone(&self) -> Dataset {
        Dataset { raw: self.raw.again(), _host: self._host.clone() }
    }
}
