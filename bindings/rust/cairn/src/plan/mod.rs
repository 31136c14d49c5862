//! Plans: every byte decided before anything runs.
pub(crate) mod costs;
pub(crate) mod options;
pub(crate) mod table;

use crate::enums::{Render, Tier};
use crate::error::{Error, Result, Status};
use crate::graph::Graph;
use crate::handle::{blank, check, make, make_all, Handle};
use crate::host::Host;
use crate::text::{c_text, Text, Texts};
use crate::Device;
use cairn_sys as sys;
use options::PlanOptions;
use table::{PlanMemory, PlanOp, PlanRates, PlanSummary, PlanValue};

/// What lives where and when, decided for a graph on a device. Immutable.
///
/// `Send` and not `Sync`: `cairn.h` wants the calls that make sessions from a plan to come one after the other.
///
/// ```
/// # use cairn::{DType, Ends, Instance, Parameter, PlanOptions, Status};
/// # let instance = Instance::new()?;
/// # let device = instance.device("cpu")?;
/// # let mut graph = instance.graph()?;
/// # let x = graph.input("x", &[64, 32], DType::F32)?;
/// # let w = graph.parameter("w", &[32, 32], Parameter::normal(0.1))?;
/// # let y = graph.linear(x, w).build()?;
/// # let loss = graph.mse(y, x).build()?;
/// # let graph = graph.freeze(Ends::loss(loss))?;
/// let error = graph.plan_with(&device, &PlanOptions::new().budget_bytes(1)).unwrap_err();
/// assert_eq!(error.status(), Status::OverBudget);
/// let smallest = error.fault().unwrap().smallest_budget_bytes;
/// let plan = graph.plan_with(&device, &PlanOptions::new().budget_bytes(smallest))?;
/// assert!(plan.summary()?.peak_bytes[0] <= smallest);
/// for state in plan.states() {
///     println!("{}: {} bytes on {:?}", state.name, state.bytes, state.tier);
/// }
/// # Ok::<(), cairn::Error>(())
/// ```
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// shared::<cairn::Plan>();
/// ```
///
/// What is borrowed from a plan does not outlive it:
///
/// ```compile_fail,E0505
/// # fn f(plan: cairn::Plan) {
/// let first = plan.values().next();
/// drop(plan);
/// println!("{first:?}");
/// # }
/// ```
#[derive(Debug)]
pub struct Plan {
    pub(crate) raw: Handle<sys::cairn_plan_t>,
    pub(crate) host: Host,
}

impl Graph {
    /// Plans the graph on a device, without a budget.
    pub fn plan(&self, device: &Device) -> Result<Plan> {
        self.plan_with(device, &PlanOptions::new())
    }

    /// Plans the graph on a device. Nothing runs, and nothing is allocated there.
    ///
    /// Errors: `OverBudget` (the fault names the smallest budget that does), `Unsupported` (an op without a gradient, or
    /// one that the device cannot run so), `InvalidArgument` (a budget above the device's memory, a group that matches
    /// nothing, ...).
    pub fn plan_with(&self, device: &Device, options: &PlanOptions<'_>) -> Result<Plan> {
        let host = self.host.and(&device.host);
        let (graph, device) = (self.raw.get(), device.raw.get());
        let result = options
            .with_raw(|raw| make(|out, error| unsafe { sys::cairn_plan_create(graph, device, raw, out, error) }));
        host.explain(result).map(|raw| Plan { raw, host })
    }
}

impl Plan {
    /// The plan in numbers.
    pub fn summary(&self) -> Result<PlanSummary> {
        let mut raw: sys::cairn_plan_summary_t = blank();
        check(|error| unsafe { sys::cairn_plan_summary(self.raw.get(), &mut raw, error) })?;
        Ok(PlanSummary::read(&raw))
    }

    /// What the plan counts by one of the names of [`plan_counters`](crate::plan_counters). Errors: `NotFound`.
    ///
    /// ```
    /// # fn show(plan: &cairn::Plan) -> cairn::Result<()> {
    /// for counter in cairn::plan_counters() {
    ///     println!("{}: {}", counter.name, plan.counter(counter.name)?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn counter(&self, name: &str) -> Result<f64> {
        let name = c_text("the name of a counter", name)?;
        let mut value = 0.0;
        check(|error| unsafe { sys::cairn_plan_counter(self.raw.get(), name.as_ptr(), &mut value, error) })?;
        Ok(value)
    }

    /// What the bytes of a tier are for, at the tier's peak.
    pub fn memory(&self, tier: Tier) -> Result<PlanMemory<'_>> {
        let mut raw: sys::cairn_plan_memory_t = blank();
        check(|error| unsafe { sys::cairn_plan_memory(self.raw.get(), tier.into(), &mut raw, error) })?;
        // Texts of the plan, which lives as long as this reference.
        Ok(unsafe { PlanMemory::read(&raw) })
    }

    /// What the plan's predicted seconds rest on.
    pub fn rates(&self) -> Result<PlanRates<'_>> {
        let mut raw: sys::cairn_plan_rates_t = blank();
        check(|error| unsafe { sys::cairn_plan_rates(self.raw.get(), &mut raw, error) })?;
        // Texts of the plan, which lives as long as this reference.
        Ok(unsafe { PlanRates::read(&raw) })
    }

    /// All values of forward, backward and update.
    pub fn values(&self) -> impl Iterator<Item = PlanValue<'_>> {
        (0..).map_while(move |index| {
            let mut raw: sys::cairn_plan_value_t = blank();
            check(|error| unsafe { sys::cairn_plan_value(self.raw.get(), index, &mut raw, error) }).ok()?;
            // Texts of the plan, which lives as long as this reference.
            Some(unsafe { PlanValue::read(&raw) })
        })
    }

    /// The rows of optimizer state.
    pub fn states(&self) -> impl Iterator<Item = PlanValue<'_>> {
        self.values().filter(|value| value.category == "optimizer")
    }

    /// The ops of the graph, in the order in which they were added.
    pub fn ops(&self) -> impl Iterator<Item = PlanOp<'_>> {
        (0..).map_while(move |index| {
            let mut raw: sys::cairn_plan_op_t = blank();
            check(|error| unsafe { sys::cairn_plan_op(self.raw.get(), index, &mut raw, error) }).ok()?;
            // Texts of the plan, which lives as long as this reference.
            Some(unsafe { PlanOp::read(&raw) })
        })
    }

    /// The plan as JSON, a page, a picture or a file. `title` is its first line; further lines, `word: text`, stand below
    /// it on the page.
    pub fn render(&self, render: Render, title: &str) -> Result<Text> {
        let title = c_text("the title", title)?;
        let plan = self.raw.get();
        Text::make(|out, error| unsafe { sys::cairn_plan_render(plan, render.into(), title.as_ptr(), out, error) })
    }
}

/// Plans of several graphs on the same parameters, for one [`Store`](crate::Store): training at other lengths or batch
/// sizes, evaluation, generation. Slices like a list of [`Plan`]s, in the order of the programs.
#[derive(Debug)]
pub struct PlanSet {
    pub(crate) names: Vec<String>,
    plans: Vec<Plan>,
}

impl PlanSet {
    /// Plans named graphs. The first has all parameters; the others have some of them, and those that train have the
    /// same gradients. The budget holds for each; together they take what the largest takes.
    pub fn new(programs: &[(&str, &Graph)], device: &Device, options: &PlanOptions<'_>) -> Result<PlanSet> {
        let mut texts = Texts::default();
        let mut raw = Vec::new();
        let mut host = device.host.clone();
        for (name, graph) in programs {
            let name = texts.add("the name of a program", name)?;
            raw.push(sys::cairn_program_t { name, graph: graph.raw.get() });
            host = host.and(&graph.host);
        }
        let (programs_at, count, device) = (raw.as_ptr(), raw.len(), device.raw.get());
        let result = options.with_raw(|options| {
            make_all(count, |out, error| unsafe {
                sys::cairn_plan_create_set(programs_at, count, device, options, out, error)
            })
        });
        let plans = host.explain(result)?.into_iter().map(|raw| Plan { raw, host: host.clone() }).collect();
        Ok(PlanSet { names: programs.iter().map(|(name, _)| name.to_string()).collect(), plans })
    }

    /// The plan of the program of that name.
    pub fn get(&self, name: &str) -> Result<&Plan> {
        position(&self.names, name).map(|at| &self.plans[at])
    }
}

impl std::ops::Deref for PlanSet {
    type Target = [Plan];
    fn deref(&self) -> &[Plan] {
        &self.plans
    }
}

/// Where a program's name stands.
pub(crate) fn position(names: &[String], name: &str) -> Result<usize> {
    names.iter().position(|known| known == name).ok_or_else(|| {
        Error::new(Status::NotFound, format!("there is no program '{name}'; there are: {}", names.join(", ")))
    })
}
