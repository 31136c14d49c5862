//! A model from its files, trained on texts of the program.
use crate::error::Result;
use crate::generator::Sampling;
use crate::handle::{blank, check, fill, make, Handle};
use crate::host::Host;
use crate::text::{c_path, c_text, Text, Texts};
use crate::Instance;
use cairn_sys as sys;
use std::path::Path;

/// What a model is opened with. The default: on the CPU, as its files have it, without a budget.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelOptions {
    settings: Vec<String>,
    device: Option<String>,
    amp: Option<String>,
    format: Option<String>,
    budget_bytes: u64,
    seed: u64,
    steps: u64,
    threads: u32,
    accumulate: u32,
    context: u32,
}

impl ModelOptions {
    /// Nothing but defaults.
    pub fn new() -> ModelOptions {
        ModelOptions::default()
    }
    /// What `cairn train` takes as `key=value`: `setting("lora", 8)`.
    pub fn setting(mut self, key: &str, value: impl std::fmt::Display) -> Self {
        self.settings.push(format!("{key}={value}"));
        self
    }
    /// Where it runs.
    pub fn device(mut self, name: &str) -> Self {
        self.device = Some(name.to_owned());
        self
    }
    /// Mixed precision: "off", "bf16", "fp16".
    pub fn amp(mut self, mode: &str) -> Self {
        self.amp = Some(mode.to_owned());
        self
    }
    /// What frozen weights are stored as.
    pub fn format(mut self, of_frozen: &str) -> Self {
        self.format = Some(of_frozen.to_owned());
        self
    }
    /// Of the device, for training and texts together.
    pub fn budget_bytes(mut self, bytes: u64) -> Self {
        self.budget_bytes = bytes;
        self
    }
    /// Another seed, another order of rows and other first numbers.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }
    /// Steps in all, where a schedule asks for that.
    pub fn steps(mut self, steps: u64) -> Self {
        self.steps = steps;
        self
    }
    /// Threads of the CPU.
    pub fn threads(mut self, threads: u32) -> Self {
        self.threads = threads;
        self
    }
    /// Micro-batches of a step.
    pub fn accumulate(mut self, micro_batches: u32) -> Self {
        self.accumulate = micro_batches;
        self
    }
    /// Most tokens of a prompt and its answer.
    pub fn context(mut self, tokens: u32) -> Self {
        self.context = tokens;
        self
    }
}

/// What a model has.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ModelInfo {
    /// Numbers in all parameters.
    pub parameters: u64,
    /// In those that learn.
    pub trainable_parameters: u64,
    /// The planned peak of device, host and disk, to the byte.
    pub planned_bytes: [u64; 3],
    /// Tokens of a window.
    pub seq: u64,
    /// Windows of a micro-batch.
    pub batch: u64,
    /// Tokens that there are.
    pub vocabulary: u64,
}

/// What steps did.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ModelReport {
    /// Of the last step.
    pub loss: f64,
    /// That these steps took.
    pub seconds: f64,
    /// Steps so far.
    pub step: u64,
    /// Tokens of these steps.
    pub tokens: u64,
}

/// A model that is trained and asked for texts; what `cairn train` does with a directory, by the same code.
#[derive(Debug)]
pub struct Model {
    raw: Handle<sys::cairn_model_t>,
    _host: Host,
}

impl Model {
    /// Of a directory as Transformers writes it. Errors: `OverBudget`, `NotFound`, `CorruptFile`, `Io`, `Unsupported` (the
    /// library of the command is not installed).
    pub fn open(instance: &Instance, path: impl AsRef<Path>, options: &ModelOptions) -> Result<Model> {
        let (mut texts, path) = (Texts::default(), c_path(path.as_ref())?);
        let settings = options.settings.iter().map(|one| texts.add("a setting", one)).collect::<Result<Vec<_>>>()?;
        let mut given: sys::cairn_model_options_t = blank();
        given.settings = settings.as_ptr();
        given.setting_count = settings.len();
        given.device = texts.add_some("the device", options.device.as_deref())?;
        given.amp = texts.add_some("amp", options.amp.as_deref())?;
        given.format = texts.add_some("the format", options.format.as_deref())?;
        given.budget_bytes = options.budget_bytes;
        given.seed = options.seed;
        given.steps = options.steps;
        given.threads = options.threads;
        given.accumulate = options.accumulate;
        given.context = options.context;
        let from = instance.raw.get();
        let raw = make(|out, error| unsafe { sys::cairn_model_open(from, path.as_ptr(), &given, out, error) })?;
        Ok(Model { raw, _host: instance.host.clone() })
    }

    /// What it has.
    pub fn info(&mut self) -> Result<ModelInfo> {
        let blank: sys::cairn_model_info_t = blank();
        let info = fill(blank, |out, error| unsafe { sys::cairn_model_describe(self.raw.get(), out, error) })?;
        Ok(ModelInfo {
            parameters: info.parameters,
            trainable_parameters: info.trainable_parameters,
            planned_bytes: info.planned_bytes,
            seq: info.seq,
            batch: info.batch,
            vocabulary: info.vocabulary,
        })
    }

    /// A row to train with: the answer is what is learned.
    pub fn add(&mut self, prompt: &str, answer: &str) -> Result<()> {
        let (prompt, answer) = (c_text("the prompt", prompt)?, c_text("the answer", answer)?);
        let raw = self.raw.get();
        check(|error| unsafe { sys::cairn_model_add(raw, prompt.as_ptr(), answer.as_ptr(), error) })
    }

    /// The same of any row of instruction data, a JSON object.
    pub fn add_row(&mut self, json: &str) -> Result<()> {
        let json = c_text("the row", json)?;
        check(|error| unsafe { sys::cairn_model_add_row(self.raw.get(), json.as_ptr(), error) })
    }

    /// Trains so many steps. Errors: `NonFinite`, those of a run.
    pub fn train(&mut self, steps: u64) -> Result<ModelReport> {
        let blank: sys::cairn_model_report_t = blank();
        let raw = self.raw.get();
        let report = fill(blank, |out, error| unsafe { sys::cairn_model_train(raw, steps, out, error) })?;
        Ok(ModelReport { loss: report.loss, seconds: report.seconds, step: report.step, tokens: report.tokens })
    }

    /// The answer to a prompt, of at most so many tokens; 0: 512. Errors: `NonFinite`.
    pub fn generate(&mut self, prompt: &str, tokens: u32, sampling: &Sampling) -> Result<Text> {
        let (prompt, given, raw) = (c_text("the prompt", prompt)?, sampling.raw(), self.raw.get());
        Text::make(|out, error| unsafe { sys::cairn_model_generate(raw, prompt.as_ptr(), tokens, &given, out, error) })
    }

    /// A checkpoint below the directory. Errors: `Io`.
    pub fn save(&mut self, directory: impl AsRef<Path>) -> Result<()> {
        let directory = c_path(directory.as_ref())?;
        check(|error| unsafe { sys::cairn_model_save(self.raw.get(), directory.as_ptr(), error) })
    }

    /// What `cairn export --to` writes: "hf", "adapter", ... Errors: `Io`.
    pub fn export(&mut self, path: impl AsRef<Path>, form: &str) -> Result<()> {
        let (path, form) = (c_path(path.as_ref())?, c_text("the form", form)?);
        check(|error| unsafe { sys::cairn_model_export(self.raw.get(), path.as_ptr(), form.as_ptr(), error) })
    }
}
