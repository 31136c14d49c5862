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

    /// That of a published model: its directory or one of its files. Errors: `NotFound`, `CorruptFile`, `Unsupported`.
    pub fn pretrained(instance: &Instance, path: impl AsRef<Path>) -> Result<Tokenizer> {
        Tokenizer::open(instance, "pretrained", Some(path.as_ref()))
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
        Ok(numbers(&tokens, i32::from_ne_bytes))
    }

    /// The tokens of a text, with those that the tokenizer puts around one where `special`, and the bytes of the text that each
    /// stands for.
    pub fn encode_with_offsets(&self, text: &str, special: bool) -> Result<Vec<(i32, std::ops::Range<usize>)>> {
        let (data, size) = (text.as_ptr().cast(), text.len());
        let (raw, flags) = (self.raw.get(), if special { sys::CAIRN_ENCODE_SPECIAL } else { 0 });
        let mut tokens = None;
        let offsets = Text::make(|offsets, error| unsafe {
            let mut status = 0;
            let made = Text::make(|out, _| {
                status = sys::cairn_tokenizer_encode_with(raw, data, size, flags, out, offsets, error);
                status
            });
            tokens = made.ok();
            status
        })?;
        let tokens = tokens.map_or_else(Vec::new, |tokens| numbers(&tokens, i32::from_ne_bytes));
        let ends = numbers(&offsets, u32::from_ne_bytes);
        Ok(tokens
            .into_iter()
            .zip(ends.chunks_exact(2))
            .map(|(token, at)| (token, at[0] as usize..at[1] as usize))
            .collect())
    }

    /// The text of tokens, which need not be complete characters.
    pub fn decode(&self, tokens: &[i32]) -> Result<Text> {
        let (data, count) = (tokens.as_ptr(), tokens.len());
        let raw = self.raw.get();
        Text::make(|out, error| unsafe { sys::cairn_tokenizer_decode(raw, data, count, out, error) })
    }

    /// The text of tokens, in UTF-8; without special tokens where `skip_special`.
    pub fn decode_text(&self, tokens: &[i32], skip_special: bool) -> Result<Text> {
        let (data, count) = (tokens.as_ptr(), tokens.len());
        let (raw, flags) = (self.raw.get(), if skip_special { sys::CAIRN_DECODE_SKIP_SPECIAL } else { 0 });
        Text::make(|out, error| unsafe { sys::cairn_tokenizer_decode_with(raw, data, count, flags, out, error) })
    }

    /// A token as the vocabulary spells it.
    pub fn token(&self, id: i32) -> Result<Text> {
        let raw = self.raw.get();
        Text::make(|out, error| unsafe { sys::cairn_tokenizer_token(raw, id, out, error) })
    }

    /// The number of a token that the vocabulary spells so. Errors: `NotFound`.
    pub fn find(&self, token: &str) -> Result<i32> {
        let mut id = 0;
        let raw = self.raw.get();
        check(|error| unsafe { sys::cairn_tokenizer_find(raw, token.as_ptr().cast(), token.len(), &mut id, error) })?;
        Ok(id)
    }

    /// Writes the file that opens the tokenizer again; of a GGUF file the tokenizer.json that says the same.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let (raw, path) = (self.raw.get(), c_path(path.as_ref())?);
        check(|error| unsafe { sys::cairn_tokenizer_save(raw, path.as_ptr(), error) })
    }

    /// Writes the token file of a text file, for [`Dataset::open`].
    pub fn write(&self, text: impl AsRef<Path>, tokens: impl AsRef<Path>) -> Result<()> {
        let (text, tokens) = (c_path(text.as_ref())?, c_path(tokens.as_ref())?);
        check(|error| unsafe { sys::cairn_tokenizer_write(self.raw.get(), text.as_ptr(), tokens.as_ptr(), error) })
    }
}

/// What the bytes of a text are.
fn numbers<T, const SIZE: usize>(text: &[u8], number: impl Fn([u8; SIZE]) -> T) -> Vec<T> {
    text.chunks_exact(SIZE).filter_map(|bytes| bytes.try_into().ok()).map(number).collect()
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
