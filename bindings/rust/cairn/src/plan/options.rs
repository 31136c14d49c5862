//! What a plan is asked for.
use super::costs::Costs;
use crate::enums::{Amp, DType, Policy, Tier};
use crate::error::{Error, Result};
use crate::handle::blank;
use crate::text::Texts;
use cairn_sys as sys;

/// Parameters with an optimizer or hyper-parameters of their own: those whose full names match a pattern, where `*`
/// stands for any text and `?` for one character. A parameter may match one group only.
///
/// ```
/// use cairn::{ParameterGroup, PlanOptions};
/// let norms = ParameterGroup::new("*.norm?").hyper("weight_decay", 0.0);
/// let table = ParameterGroup::new("embedding").optimizer("sgd").hyper("momentum", 0.9);
/// let options = PlanOptions::new().optimizer("lion").group(norms).group(table);
/// # let _ = options;
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct ParameterGroup {
    pattern: String,
    optimizer: Option<String>,
    hypers: Vec<(String, f64)>,
}

impl ParameterGroup {
    /// The parameters that match, updated as all others.
    pub fn new(pattern: &str) -> ParameterGroup {
        ParameterGroup { pattern: pattern.to_string(), optimizer: None, hypers: Vec::new() }
    }

    /// Updated by an optimizer of their own; [`optimizers`](crate::optimizers) lists them.
    pub fn optimizer(mut self, name: &str) -> ParameterGroup {
        self.optimizer = Some(name.to_string());
        self
    }

    /// A hyper-parameter of theirs; `"rate_scale"` multiplies the schedule's rate.
    pub fn hyper(mut self, name: &str, value: f64) -> ParameterGroup {
        self.hypers.push((name.to_string(), value));
        self
    }
}

/// A hyper-parameter by group and name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hyper {
    pub(crate) group: Option<String>,
    pub(crate) name: String,
    pub(crate) value: f64,
}

impl Hyper {
    pub(crate) fn new(group: Option<&str>, name: &str, value: f64) -> Hyper {
        Hyper { group: group.map(str::to_string), name: name.to_string(), value }
    }

    /// Borrows from `texts`.
    pub(crate) fn raw(&self, texts: &mut Texts) -> Result<sys::cairn_hyper_t> {
        let group = texts.add_some("a group", self.group.as_deref())?;
        Ok(sys::cairn_hyper_t { group, name: texts.add("a hyper-parameter", &self.name)?, value: self.value })
    }
}

/// Ops with another class of mixed precision than their own, by name, by region, or both; `*` and `?` as in patterns.
///
/// ```
/// use cairn::{Amp, AmpRule, PlanOptions};
/// let rule = AmpRule::op("softmax", "half").in_region("h0/*");
/// let options = PlanOptions::new().amp(Amp::Bf16).amp_rule(rule).amp_rule(AmpRule::region("head", "full"));
/// # let _ = options;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct AmpRule {
    op: Option<String>,
    region: Option<String>,
    class: String,
}

impl AmpRule {
    /// All ops of that name; [`amp_classes`](crate::amp_classes) lists the classes that a rule may give.
    pub fn op(op: &str, class: &str) -> AmpRule {
        AmpRule { op: Some(op.to_string()), region: None, class: class.to_string() }
    }

    /// All ops of a region (its full path) and of those inside it.
    pub fn region(region: &str, class: &str) -> AmpRule {
        AmpRule { op: None, region: Some(region.to_string()), class: class.to_string() }
    }

    /// Only those in a region.
    pub fn in_region(mut self, region: &str) -> AmpRule {
        self.region = Some(region.to_string());
        self
    }
}

/// Regions with another policy than their own, by a pattern of their full paths. In each name of a pattern, between its
/// `/`, `*` stands for any text, `?` for one character, `[0-3]` for one of some; a name of two `*` alone stands for any
/// number of names, none included.
///
/// ```
/// use cairn::{PlanOptions, Policy, RegionPolicy, Tier};
/// let options = PlanOptions::new()
///     .region(RegionPolicy::new("h*", Policy::Recompute))
///     .region(RegionPolicy::new("h*/attn", Policy::Offload).tier(Tier::Disk));
/// # let _ = options;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct RegionPolicy {
    pattern: String,
    policy: Policy,
    tier: Tier,
}

impl RegionPolicy {
    /// The regions that match.
    pub fn new(pattern: &str, policy: Policy) -> RegionPolicy {
        RegionPolicy { pattern: pattern.to_string(), policy, tier: Tier::Device }
    }

    /// Where [`Policy::Offload`] goes: [`Tier::Host`] or [`Tier::Disk`]. Without a word: the plan's first tier.
    pub fn tier(mut self, tier: Tier) -> RegionPolicy {
        self.tier = tier;
        self
    }
}

/// What a plan is asked for. Without anything said: all that the model wants, updated by AdamW.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct PlanOptions<'a> {
    budget_bytes: u64,
    budget_share: f64,
    smallest_budget: bool,
    link_bytes_per_second: f64,
    amp: Option<Amp>,
    amp_rules: Vec<AmpRule>,
    no_optimizer: bool,
    policy: Option<Policy>,
    regions: Vec<RegionPolicy>,
    tiers: Vec<Tier>,
    costs: Option<&'a Costs>,
    force_costs: bool,
    micro_steps: u32,
    fuse_update: bool,
    ema: f64,
    parameters: Option<DType>,
    formats: Vec<(String, String)>,
    optimizer: Option<String>,
    groups: Vec<ParameterGroup>,
    hypers: Vec<Hyper>,
}

impl<'a> PlanOptions<'a> {
    /// No budget and no wishes.
    pub fn new() -> PlanOptions<'a> {
        PlanOptions::default()
    }

    /// What the device tier may hold: parameters, gradients, moments, activations, workspace; 0: no limit.
    pub fn budget_bytes(mut self, bytes: u64) -> Self {
        self.budget_bytes = bytes;
        self
    }

    /// The same as a share of what keeping everything takes; 0: no limit.
    pub fn budget_share(mut self, share: f64) -> Self {
        self.budget_share = share;
        self
    }

    /// The plan for the smallest budget that a plan fits, which its summary names, instead of the two above.
    pub fn smallest_budget(mut self) -> Self {
        self.smallest_budget = true;
        self
    }

    /// The rate of the host link to plan with; 0: the device's own.
    pub fn link_bytes_per_second(mut self, rate: f64) -> Self {
        self.link_bytes_per_second = rate;
        self
    }

    /// Mixed precision.
    pub fn amp(mut self, amp: Amp) -> Self {
        self.amp = Some(amp);
        self
    }

    /// One more rule of mixed precision. Of the rules that match an op, the last one counts.
    pub fn amp_rule(mut self, rule: AmpRule) -> Self {
        self.amp_rules.push(rule);
        self
    }

    /// Gradients only, without an optimizer: [`SessionMut::run`](crate::SessionMut::run) makes them.
    pub fn no_optimizer(mut self) -> Self {
        self.no_optimizer = true;
        self
    }

    /// For all regions that leave it to the planner and lie in none that has a policy.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// One more policy for regions, instead of their own. Of those that match a region, the last one counts.
    pub fn region(mut self, region: RegionPolicy) -> Self {
        self.regions.push(region);
        self
    }

    /// One more tier where offloading may go, after those named before; four at most.
    pub fn tier(mut self, tier: Tier) -> Self {
        self.tiers.push(tier);
        self
    }

    /// Seconds of ops and links to plan with.
    pub fn costs(mut self, costs: &'a Costs) -> Self {
        self.costs = Some(costs);
        self
    }

    /// Takes a profile that was measured on another machine.
    pub fn force_costs(mut self) -> Self {
        self.force_costs = true;
        self
    }

    /// Micro-batches per update that the plan is for; they share what an update costs.
    pub fn micro_steps(mut self, micro_steps: u32) -> Self {
        self.micro_steps = micro_steps;
        self
    }

    /// What float32 parameters of two or more dimensions are stored as: [`DType::F32`], or with [`Amp::Bf16`]
    /// [`DType::Bf16`], which updates round stochastically, or [`DType::Split`]: float32 as its bfloat16 and the 16 bits below.
    pub fn parameters(mut self, format: DType) -> Self {
        self.parameters = Some(format);
        self
    }

    /// Stores the parameters of two or more dimensions whose names match (`*` any text, `?` one character) in another
    /// format, by its name in [`formats`](crate::formats). Of several that match, the last counts.
    ///
    /// ```
    /// let options = cairn::PlanOptions::new().format("h.*.weight", "int8");
    /// # let _ = options;
    /// ```
    pub fn format(mut self, pattern: &str, format: &str) -> Self {
        self.formats.push((pattern.to_string(), format.to_string()));
        self
    }

    /// Updates parameters inside backward: for steppers with one micro-batch a step and without clipping.
    pub fn fuse_update(mut self) -> Self {
        self.fuse_update = true;
        self
    }

    /// Keeps an average of every trained parameter, "PARAMETER/ema", which moves by 1 - `decay` towards it after each applied
    /// update; checkpoints hold it, and [`Session::load_ema`](crate::SessionMut::load_ema) takes it.
    pub fn ema(mut self, decay: f64) -> Self {
        self.ema = decay;
        self
    }

    /// The optimizer, `"adamw"` without a word; [`optimizers`](crate::optimizers) lists them.
    pub fn optimizer(mut self, name: &str) -> Self {
        self.optimizer = Some(name.to_string());
        self
    }

    /// A hyper-parameter of all groups whose optimizer has one of that name.
    pub fn hyper(mut self, name: &str, value: f64) -> Self {
        self.hypers.push(Hyper::new(None, name, value));
        self
    }

    /// A hyper-parameter of one group: its pattern; `""`: of the parameters that no group names; `"PATTERN/OTHERWISE"`:
    /// of those that the group's optimizer leaves to another.
    pub fn hyper_of(mut self, group: &str, name: &str, value: f64) -> Self {
        self.hypers.push(Hyper::new(Some(group), name, value));
        self
    }

    /// A group of parameters of its own.
    pub fn group(mut self, group: ParameterGroup) -> Self {
        for (name, value) in &group.hypers {
            self.hypers.push(Hyper::new(Some(&group.pattern), name, *value));
        }
        self.groups.push(group);
        self
    }

    /// Runs `call` with the header's struct, which borrows all it points to.
    pub(crate) fn with_raw<T>(&self, call: impl FnOnce(&sys::cairn_plan_options_t) -> Result<T>) -> Result<T> {
        let mut texts = Texts::default();
        let mut groups = Vec::new();
        for group in &self.groups {
            let pattern = texts.add("the pattern of a group", &group.pattern)?;
            let optimizer = texts.add_some("the name of an optimizer", group.optimizer.as_deref())?;
            groups.push(sys::cairn_parameter_group_t { pattern, optimizer });
        }
        let hypers = self.hypers.iter().map(|hyper| hyper.raw(&mut texts)).collect::<Result<Vec<_>>>()?;
        let mut rules = Vec::new();
        for rule in &self.amp_rules {
            let op = texts.add_some("the op of a rule", rule.op.as_deref())?;
            let region = texts.add_some("the region of a rule", rule.region.as_deref())?;
            rules.push(sys::cairn_amp_rule_t { op, region, amp_class: texts.add("a class", &rule.class)? });
        }
        let mut regions = Vec::new();
        for region in &self.regions {
            let pattern = texts.add("the pattern of regions", &region.pattern)?;
            let (policy, tier) = (region.policy.into(), region.tier.into());
            regions.push(sys::cairn_region_policy_t { pattern, policy, tier });
        }
        let mut formats = Vec::new();
        for (pattern, format) in &self.formats {
            let (pattern, format) = (texts.add("the pattern of a format", pattern)?, texts.add("a format", format)?);
            formats.push(sys::cairn_parameter_format_t { pattern, format });
        }
        let mut raw: sys::cairn_plan_options_t = blank();
        raw.budget_bytes = self.budget_bytes;
        raw.budget_share = self.budget_share;
        raw.smallest_budget = self.smallest_budget.into();
        raw.link_bytes_per_second = self.link_bytes_per_second;
        raw.amp = self.amp.unwrap_or(Amp::Off).into();
        raw.no_optimizer = self.no_optimizer.into();
        raw.policy = self.policy.unwrap_or(Policy::PlannerDecides).into();
        if self.tiers.len() > raw.tiers.len() {
            let count = self.tiers.len();
            return Err(Error::argument(format!("{count} tiers are named; a plan takes {} at most", raw.tiers.len())));
        }
        raw.tier_count = self.tiers.len() as u32;
        for (to, &tier) in raw.tiers.iter_mut().zip(&self.tiers) {
            *to = tier.into();
        }
        raw.costs = self.costs.map_or(std::ptr::null(), |costs| costs.raw.get());
        raw.force_costs = self.force_costs.into();
        raw.micro_steps = self.micro_steps;
        raw.fuse_update = self.fuse_update.into();
        raw.ema = self.ema;
        raw.parameters = self.parameters.unwrap_or(DType::F32).into();
        raw.optimizer = texts.add_some("the name of an optimizer", self.optimizer.as_deref())?;
        (raw.groups, raw.group_count) = (groups.as_ptr(), groups.len() as u32);
        (raw.hypers, raw.hyper_count) = (hypers.as_ptr(), hypers.len() as u32);
        (raw.amp_rules, raw.amp_rule_count) = (rules.as_ptr(), rules.len() as u32);
        (raw.formats, raw.format_count) = (formats.as_ptr(), formats.len() as u32);
        (raw.region_policies, raw.region_policy_count) = (regions.as_ptr(), regions.len() as u32);
        call(&raw)
    }
}
