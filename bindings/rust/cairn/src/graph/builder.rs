//! A graph while it is built.
use super::adapter::Adapter;
use super::op::Op;
use super::value::{value_info, Brand, Value, ValueInfo};
use super::Graph;
use crate::custom_op::registered::Ops;
use crate::custom_op::CustomOp;
use crate::enums::{DType, Policy, Tier};
use crate::error::{Error, Result};
use crate::handle::{blank, check, fill, make, Handle};
use crate::host::Host;
use crate::text::c_text;
use crate::Instance;
use cairn_sys as sys;
use std::ffi::CString;
use std::sync::Arc;

/// How a parameter starts and is trained.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Parameter {
    init: u32,
    scale: f64,
    frozen: bool,
    no_decay: bool,
}

impl Parameter {
    /// All elements the same.
    pub fn constant(value: f64) -> Parameter {
        Parameter { init: sys::CAIRN_INIT_CONSTANT, scale: value, frozen: false, no_decay: false }
    }

    /// All elements 0.
    pub fn zeros() -> Parameter {
        Parameter::constant(0.0)
    }

    /// Drawn from a normal distribution around 0.
    pub fn normal(deviation: f64) -> Parameter {
        Parameter { init: sys::CAIRN_INIT_NORMAL, ..Parameter::constant(deviation) }
    }

    /// Drawn evenly from -bound to bound.
    pub fn uniform(bound: f64) -> Parameter {
        Parameter { init: sys::CAIRN_INIT_UNIFORM, ..Parameter::constant(bound) }
    }

    /// Drawn from a normal distribution around 0 that is cut off at two deviations.
    pub fn truncated_normal(deviation: f64) -> Parameter {
        Parameter { init: sys::CAIRN_INIT_TRUNCATED_NORMAL, ..Parameter::constant(deviation) }
    }

    /// Orthonormal rows (or columns, where these are fewer) times a factor.
    pub fn orthogonal(factor: f64) -> Parameter {
        Parameter { init: sys::CAIRN_INIT_ORTHOGONAL, ..Parameter::constant(factor) }
    }

    /// No gradient and no optimizer state.
    pub fn frozen(self) -> Parameter {
        Parameter { frozen: true, ..self }
    }

    /// Weight decay does not apply: biases, norms.
    pub fn no_decay(self) -> Parameter {
        Parameter { no_decay: true, ..self }
    }
}

/// What a graph ends in.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use]
pub struct Ends {
    loss: Option<Value>,
    weight: Option<Value>,
    outputs: Vec<Value>,
}

impl Ends {
    /// A graph that trains on the sum that a loss op makes, or on any scalar.
    pub fn loss(loss: Value) -> Ends {
        Ends { loss: Some(loss), ..Ends::default() }
    }

    /// A graph that only runs forward, and what the host reads after a run.
    pub fn outputs(outputs: &[Value]) -> Ends {
        Ends { outputs: outputs.to_vec(), ..Ends::default() }
    }

    /// The loss's denominator; without it the loss op's own weight, or 1 per micro-batch.
    pub fn weight(self, weight: Value) -> Ends {
        Ends { weight: Some(weight), ..self }
    }

    /// One more value that the host reads after a run.
    pub fn output(mut self, output: Value) -> Ends {
        self.outputs.push(output);
        self
    }
}

/// A graph while it is built, node by node; [`freeze`](GraphBuilder::freeze) makes it a [`Graph`].
///
/// `Send + Sync`: calls that are not `const` in `cairn.h` take it by `&mut`. Frozen, it is used up:
///
/// ```compile_fail,E0382
/// # fn f(mut graph: cairn::GraphBuilder, x: cairn::Value) -> cairn::Result<()> {
/// let frozen = graph.freeze(cairn::Ends::outputs(&[x]))?;
/// graph.gelu(x).build()?;
/// # Ok(())
/// # }
/// ```
///
/// ```
/// use cairn::{DType, Ends, Instance, Parameter};
/// let instance = Instance::new()?;
/// let mut graph = instance.graph()?;
/// let x = graph.input("x", &[16, 8], DType::F32)?;
/// let target = graph.input("target", &[16, 2], DType::F32)?;
/// let w = graph.parameter("w", &[2, 8], Parameter::normal(0.1))?;
/// let b = graph.parameter("b", &[2], Parameter::zeros().no_decay())?;
/// let y = graph.linear(x, w).b(b).activation("gelu_tanh").build()?;
/// let loss = graph.mse(y, target).build()?;
/// let graph = graph.freeze(Ends::loss(loss).output(y))?;
/// assert_eq!(graph.parameters().map(|p| p.name.to_string()).collect::<Vec<_>>(), ["w", "b"]);
/// # Ok::<(), cairn::Error>(())
/// ```
#[derive(Debug)]
pub struct GraphBuilder {
    raw: Handle<sys::cairn_graph_t>,
    brand: Brand,
    ops: Arc<Ops>,
    host: Host,
}

// Shared references make const calls only.
unsafe impl Sync for GraphBuilder {}

impl Instance {
    /// An empty graph.
    pub fn graph(&self) -> Result<GraphBuilder> {
        let raw = make(|out, error| unsafe { sys::cairn_graph_create(self.raw.get(), out, error) })?;
        let ops = Arc::new(Ops::default());
        Ok(GraphBuilder { raw, brand: Brand::new(), host: self.host.with(ops.clone()), ops })
    }
}

impl GraphBuilder {
    /// A value that the host writes before each run.
    pub fn input(&mut self, name: &str, dims: &[i64], dtype: DType) -> Result<Value> {
        let name = c_text("the name of an input", name)?;
        let desc = describe(&name, dims, dtype)?;
        let graph = self.raw.get();
        let number = fill(0, |out, error| unsafe { sys::cairn_graph_input(graph, &desc, out, error) })?;
        Ok(Value { number, brand: self.brand })
    }

    /// A trainable tensor of float32. Using it in several ops ties them.
    pub fn parameter(&mut self, name: &str, dims: &[i64], options: Parameter) -> Result<Value> {
        self.parameter_of(name, dims, DType::F32, options)
    }

    /// A trainable tensor of float32 or float64.
    pub fn parameter_of(&mut self, name: &str, dims: &[i64], dtype: DType, options: Parameter) -> Result<Value> {
        let name = c_text("the name of a parameter", name)?;
        let desc = describe(&name, dims, dtype)?;
        let mut raw: sys::cairn_parameter_options_t = blank();
        raw.init_scale = options.scale;
        raw.init = options.init;
        raw.frozen = options.frozen.into();
        raw.no_decay = options.no_decay.into();
        let graph = self.raw.get();
        let number = fill(0, |out, error| unsafe { sys::cairn_graph_parameter(graph, &desc, &raw, out, error) })?;
        Ok(Value { number, brand: self.brand })
    }

    /// A value that applied steps move (op `running_mean`) and checkpoints hold; it begins as `start`.
    pub fn statistic(&mut self, name: &str, dims: &[i64], dtype: DType, start: f64) -> Result<Value> {
        self.resident(name, dims, dtype, sys::CAIRN_RESIDENT_STATISTIC, start)
    }

    /// A value that runs change (op `append`) and no checkpoint holds; it begins as `start`.
    pub fn cache(&mut self, name: &str, dims: &[i64], dtype: DType, start: f64) -> Result<Value> {
        self.resident(name, dims, dtype, sys::CAIRN_RESIDENT_CACHE, start)
    }

    fn resident(&mut self, name: &str, dims: &[i64], dtype: DType, kind: u32, start: f64) -> Result<Value> {
        let name = c_text("the name of a value", name)?;
        let desc = describe(&name, dims, dtype)?;
        let graph = self.raw.get();
        let number = fill(0, |out, error| unsafe { sys::cairn_graph_resident(graph, &desc, kind, start, out, error) })?;
        Ok(Value { number, brand: self.brand })
    }

    /// From here on ops whose weights the rule names get an adapter; freezing freezes all other parameters.
    ///
    /// ```
    /// # use cairn::{Adapter, DType, Ends, Parameter};
    /// # let instance = cairn::Instance::new()?;
    /// # let mut graph = instance.graph()?;
    /// graph.adapt(&Adapter { rank: 4, targets: "*_proj".into(), ..Adapter::default() })?;
    /// # let x = graph.input("x", &[8, 16], DType::F32)?;
    /// let w = graph.parameter("q_proj.weight", &[16, 16], Parameter::normal(0.1))?;
    /// let y = graph.linear(x, w).build()?;
    /// # let loss = graph.mse(y, x).build()?;
    /// let graph = graph.freeze(Ends::loss(loss))?;
    /// assert_eq!(graph.parameters().count(), 3);
    /// # Ok::<(), cairn::Error>(())
    /// ```
    pub fn adapt(&mut self, rule: &Adapter) -> Result<()> {
        let texts = [&rule.targets, &rule.except, &rule.saved, &rule.ranks, &rule.alphas];
        let [targets, except, saved, ranks, alphas] = texts.map(|text| c_text("a pattern of modules", text));
        let (targets, except, saved, ranks, alphas) = (targets?, except?, saved?, ranks?, alphas?);
        let mut raw: sys::cairn_adapter_t = blank();
        raw.kind = rule.kind as u32;
        raw.rank = rule.rank;
        raw.alpha = rule.alpha;
        raw.dropout = rule.dropout;
        raw.targets = targets.as_ptr();
        raw.except = except.as_ptr();
        raw.saved = saved.as_ptr();
        raw.ranks = ranks.as_ptr();
        raw.alphas = alphas.as_ptr();
        let graph = self.raw.get();
        check(|error| unsafe { sys::cairn_graph_adapt(graph, &raw, error) })
    }

    /// Begins an op by its name, be it the library's ([`ops`](crate::ops) lists them) or a custom one.
    ///
    /// ```
    /// # let instance = cairn::Instance::new()?;
    /// # let mut graph = instance.graph()?;
    /// # let x = graph.input("x", &[8, 16], cairn::DType::F32)?;
    /// let y = graph.op("reshape", &[x]).attr("shape", &[4, 32]).build()?;
    /// let same = graph.reshape(x, &[4, 32]).build()?; // ops of the library have methods, too
    /// # let _ = (y, same);
    /// # Ok::<(), cairn::Error>(())
    /// ```
    pub fn op(&mut self, name: &str, inputs: &[Value]) -> Op<'_> {
        Op::new(self, name, inputs)
    }

    /// Gives a value a name of its own, unique in the graph.
    pub fn name(&mut self, value: Value, name: &str) -> Result<Value> {
        let name = c_text("the name of a value", name)?;
        let number = self.brand.number(value)?;
        check(|error| unsafe { sys::cairn_graph_name(self.raw.get(), number, name.as_ptr(), error) })?;
        Ok(value)
    }

    /// Makes an op of the host's known to this graph, by its name.
    pub fn custom_op(&mut self, op: CustomOp) -> Result<()> {
        self.ops.add(op, |raw| check(|error| unsafe { sys::cairn_graph_custom_op(self.raw.get(), raw, error) }))
    }

    /// Ops that `build` adds belong to a region: a span whose activations are kept, recomputed or offloaded together.
    /// Regions nest; names are unique among their siblings.
    ///
    /// ```
    /// # use cairn::{DType, Policy};
    /// # let instance = cairn::Instance::new()?;
    /// # let mut graph = instance.graph()?;
    /// # let x = graph.input("x", &[8, 16], DType::F32)?;
    /// let y = graph.region("block", Policy::Recompute, |graph| {
    ///     let h = graph.gelu(x).build()?;
    ///     graph.add(x, h).build()
    /// })?;
    /// # let _ = y;
    /// # Ok::<(), cairn::Error>(())
    /// ```
    pub fn region<T>(
        &mut self,
        name: &str,
        policy: Policy,
        build: impl FnOnce(&mut GraphBuilder) -> Result<T>,
    ) -> Result<T> {
        self.region_in(name, policy, Tier::Device, build)
    }

    /// A region that is offloaded to a tier of its own, [`Tier::Host`] or [`Tier::Disk`].
    pub fn offload_region<T>(
        &mut self,
        name: &str,
        tier: Tier,
        build: impl FnOnce(&mut GraphBuilder) -> Result<T>,
    ) -> Result<T> {
        self.region_in(name, Policy::Offload, tier, build)
    }

    fn region_in<T>(
        &mut self,
        name: &str,
        policy: Policy,
        tier: Tier,
        build: impl FnOnce(&mut GraphBuilder) -> Result<T>,
    ) -> Result<T> {
        let name = c_text("the name of a region", name)?;
        let mut raw: sys::cairn_region_options_t = blank();
        raw.name = name.as_ptr();
        raw.policy = policy.into();
        raw.tier = tier.into();
        let graph = self.raw.get();
        let region = fill(0, |out, error| unsafe { sys::cairn_graph_region_begin(graph, &raw, out, error) })?;
        let made = build(self);
        // Also after a failure, which leaves the graph without the op that failed.
        let ended = check(|error| unsafe { sys::cairn_graph_region_end(graph, region, error) });
        made.and_then(|made| ended.map(|()| made))
    }

    /// What is known of a value.
    pub fn info(&self, value: Value) -> Result<ValueInfo<'_>> {
        let number = self.brand.number(value)?;
        // The graph changes through `&mut` only, and lives as long as this reference.
        unsafe { value_info(self.raw.get(), Value { number, ..value }) }
    }

    /// Ends building. Regions without a gradient path and parameters without a gradient are told to the log.
    pub fn freeze(self, ends: Ends) -> Result<Graph> {
        let number = |value: Option<Value>| value.map_or(Ok(0), |value| self.brand.number(value));
        let outputs = ends.outputs.iter().map(|&value| self.brand.number(value)).collect::<Result<Vec<u32>>>()?;
        let mut raw: sys::cairn_freeze_options_t = blank();
        raw.loss = number(ends.loss)?;
        raw.weight = number(ends.weight)?;
        raw.outputs = outputs.as_ptr();
        raw.output_count = outputs.len();
        check(|error| unsafe { sys::cairn_graph_freeze(self.raw.get(), &raw, error) })?;
        Ok(Graph { raw: self.raw, brand: self.brand, host: self.host })
    }

    pub(crate) fn raw(&self) -> *mut sys::cairn_graph_t {
        self.raw.get()
    }

    pub(crate) fn brand(&self) -> Brand {
        self.brand
    }

    pub(crate) fn host(&self) -> &Host {
        &self.host
    }
}

/// Borrows name and dims.
fn describe(name: &CString, dims: &[i64], dtype: DType) -> Result<sys::cairn_tensor_desc_t> {
    let rank = u32::try_from(dims.len())
        .map_err(|_| Error::argument(format!("{name:?} has {} dimensions; at most 8 are possible", dims.len())))?;
    Ok(sys::cairn_tensor_desc_t { name: name.as_ptr(), dims: dims.as_ptr(), rank, dtype: dtype.into() })
}
