//! Text from a model, token by token.
use crate::error::Result;
use crate::handle::{blank, check, fill, make, Handle};
use crate::plan::position;
use crate::session::{Inner, Store};
use cairn_sys as sys;
use std::marker::PhantomData;
use std::sync::Arc;

/// How the next token is drawn from logits; the steps in this order. The default changes nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Above 0: logits of tokens that were there are divided by it, or multiplied below 0.
    pub repetition_penalty: f64,
    /// Logits are divided by it; 0: the largest logit, always.
    pub temperature: f64,
    /// Among so many of the largest; 0: all.
    pub top_k: u32,
    /// Above 0, to 1: among the fewest of the likeliest that have this probability together.
    pub top_p: f64,
    /// 0 to 1: none that is less likely than this share of the likeliest.
    pub min_p: f64,
    /// Another seed, another text.
    pub seed: u64,
}

impl Default for Sampling {
    fn default() -> Sampling {
        Sampling { repetition_penalty: 1.0, temperature: 1.0, top_k: 0, top_p: 1.0, min_p: 0.0, seed: 0 }
    }
}

impl Sampling {
    /// The largest logit, always.
    pub fn greedy() -> Sampling {
        Sampling { temperature: 0.0, ..Sampling::default() }
    }

    /// A token from logits that the caller has, as a generator draws it. `seen`: the text so far. Errors: `NonFinite` (logits).
    pub fn draw(&self, logits: &[f32], seen: &[i32]) -> Result<i32> {
        let (given, mut token) = (self.raw(), 0);
        let (first, count, text, length) = (logits.as_ptr(), logits.len(), seen.as_ptr(), seen.len());
        check(|error| unsafe { sys::cairn_sampling_draw(&given, first, count, text, length, &mut token, error) })?;
        Ok(token)
    }

    pub(crate) fn raw(&self) -> sys::cairn_sampling_t {
        let mut given: sys::cairn_sampling_t = blank();
        given.repetition_penalty = self.repetition_penalty;
        given.temperature = self.temperature;
        given.top_k = self.top_k;
        given.top_p = self.top_p;
        given.min_p = self.min_p;
        given.seed = self.seed;
        given
    }
}

/// What a generator has, and has done.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct GeneratorInfo {
    /// Texts at once.
    pub samples: u64,
    /// Tokens that are drawn from.
    pub vocabulary: u64,
    /// Tokens of a sample's cache; none: it keeps the last ones, and has no end.
    pub capacity: Option<u64>,
    /// Of all samples.
    pub cache_bytes: u64,
    /// Tokens of prompts that were read.
    pub prefill_tokens: u64,
    /// Tokens that were read after that.
    pub decode_tokens: u64,
    /// Of reading prompts.
    pub prefill_seconds: f64,
    /// Of all after that.
    pub decode_seconds: f64,
}

/// Several texts at once, whose keys and values are kept in caches of a store. It lends the store's programs for as long as it
/// is there; the caches outlive it.
///
/// `Send + Sync`: calls that are not `const` in `cairn.h` take it by `&mut`.
#[derive(Debug)]
pub struct Generator<'a> {
    raw: Handle<sys::cairn_generator_t>,
    info: GeneratorInfo,
    _sessions: Vec<Arc<Inner>>,
    alone: PhantomData<&'a mut ()>,
}

// Only const calls are made with a shared one.
unsafe impl Sync for Generator<'_> {}

pub(crate) fn generator<'a>(
    names: &[String],
    sessions: &[Arc<Inner>],
    programs: &[&str],
    vocabulary: u32,
) -> Result<Generator<'a>> {
    let sessions =
        programs.iter().map(|name| position(names, name).map(|at| sessions[at].clone())).collect::<Result<Vec<_>>>()?;
    let raw: Vec<_> = sessions.iter().map(|session| session.raw.get()).collect();
    let (first, count) = (raw.as_ptr(), raw.len());
    let raw = make(|out, error| unsafe { sys::cairn_generator_create(first, count, vocabulary, out, error) })?;
    let info = info_of(&raw)?;
    Ok(Generator { raw, info, _sessions: sessions, alone: PhantomData })
}

fn info_of(raw: &Handle<sys::cairn_generator_t>) -> Result<GeneratorInfo> {
    let blank: sys::cairn_generator_info_t = blank();
    let info = fill(blank, |out, error| unsafe { sys::cairn_generator_info(raw.get(), out, error) })?;
    Ok(GeneratorInfo {
        samples: info.samples,
        vocabulary: info.vocabulary,
        capacity: (info.capacity > 0).then_some(info.capacity),
        cache_bytes: info.cache_bytes,
        prefill_tokens: info.prefill_tokens,
        decode_tokens: info.decode_tokens,
        prefill_seconds: info.prefill_seconds,
        decode_seconds: info.decode_seconds,
    })
}

impl Store {
    /// Of these programs: one for one token of each sample, others for prompts. `vocabulary`: tokens to draw from, where there
    /// are more logits; 0: all.
    pub fn generator(&mut self, programs: &[&str], vocabulary: u32) -> Result<Generator<'_>> {
        generator(&self.names, &self.sessions, programs, vocabulary)
    }
}

impl Generator<'_> {
    /// Sample number `sample` begins with this prompt, instead of what it had.
    pub fn begin(&mut self, sample: u32, prompt: &[i32], sampling: &Sampling) -> Result<()> {
        let given = sampling.raw();
        let (raw, first, count) = (self.raw.get(), prompt.as_ptr(), prompt.len());
        check(|error| unsafe { sys::cairn_generator_begin(raw, sample, first, count, &given, error) })
    }

    /// As [`Generator::begin`], for a text that begins as what the sample has: what both begin with is not read again.
    pub fn extend(&mut self, sample: u32, text: &[i32], sampling: &Sampling) -> Result<()> {
        let given = sampling.raw();
        let (raw, first, count) = (self.raw.get(), text.as_ptr(), text.len());
        check(|error| unsafe { sys::cairn_generator_extend(raw, sample, first, count, &given, error) })
    }

    /// The sample makes no more tokens.
    pub fn end(&mut self, sample: u32) -> Result<()> {
        check(|error| unsafe { sys::cairn_generator_end(self.raw.get(), sample, error) })
    }

    /// The next token of each sample that began; none of the others. Errors: `NonFinite` (logits), those of a run.
    pub fn next_tokens(&mut self) -> Result<Vec<Option<i32>>> {
        let mut tokens = vec![0; self.info.samples as usize];
        let (raw, first, count) = (self.raw.get(), tokens.as_mut_ptr(), tokens.len());
        check(|error| unsafe { sys::cairn_generator_next(raw, first, count, error) })?;
        Ok(tokens.into_iter().map(|token| (token >= 0).then_some(token)).collect())
    }

    /// The logits that a sample's last token was drawn from. Errors: `WrongState` (no token yet).
    pub fn logits(&self, sample: u32) -> Result<Vec<f32>> {
        let mut logits = vec![0.0; self.info.vocabulary as usize];
        let (raw, first, count) = (self.raw.get(), logits.as_mut_ptr(), logits.len());
        check(|error| unsafe { sys::cairn_generator_logits(raw, sample, first, count, error) })?;
        Ok(logits)
    }

    /// What it has, and has done.
    pub fn info(&self) -> Result<GeneratorInfo> {
        info_of(&self.raw)
    }
}
