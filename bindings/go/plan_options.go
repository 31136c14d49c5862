package cairn

// #include "shim.h"
import "C"

// AMP is mixed precision.
type AMP uint32

// Kinds of mixed precision.
const (
	AMPOff  AMP = C.CAIRN_AMP_OFF
	AMPBF16 AMP = C.CAIRN_AMP_BF16
	AMPFP16 AMP = C.CAIRN_AMP_FP16
)

// String is the word for it: off, bf16 or fp16.
func (a AMP) String() string { return word(uint32(a), "off", "bf16", "fp16") }

// AMPRule gives ops another class than their own: all whose name and region match, where * stands for any text and ? for one
// character. One of Op and Region must be given. Of the rules that match an op, the last one counts.
type AMPRule struct {
	Op     string // "softmax"; "": any
	Region string // full path, "h3/attn", and regions inside; "": anywhere
	Class  string // "half", "full", "follow"; "default": the op's own again
}

// ParameterFormat is what parameters of two or more dimensions are stored as: those whose full names match, where * stands for
// any text and ? for one character.
type ParameterFormat struct {
	Pattern string // "h.*.weight"
	Format  string // a name of Formats: one that trains, or, of frozen parameters, one that is dequantised
}

// Hyper is one hyper-parameter by name. With neither Group nor Rest it is of all groups whose optimizer has one of that name.
type Hyper struct {
	Group string // pattern of a parameter group, or "PATTERN/OTHERWISE" for what its optimizer leaves to another
	Rest  bool   // of the parameters that no group names
	Name  string // "momentum", "weight_decay", ...; "rate_scale" multiplies the schedule's rate
	Value float64
}

// ParameterGroup is parameters with an optimizer or hyper-parameters of their own: those whose full names match, where * stands
// for any text and ? for one character. A parameter may match one group only.
type ParameterGroup struct {
	Pattern   string
	Optimizer string // "": as all others
}

// RegionPolicy gives regions another policy than their own: all whose full paths match Pattern. In each of its names, between
// the '/', * stands for any text, ? for one character, [0-3] for one of some; a name of two * alone stands for any number of
// names, none included.
type RegionPolicy struct {
	Pattern string // "h*/attn"
	Policy  Policy // Keep, Recompute or Offload
	Tier    Tier   // with Offload: TierHost or TierDisk; 0: the plan's first tier
}

// PlanOptions are what a plan is for. The zero PlanOptions keep everything and train by adamw.
type PlanOptions struct {
	BudgetBytes        uint64  // device tier: parameters, gradients, moments, activations, workspace; 0: no limit
	BudgetShare        float64 // above 0: instead, this share of what keeping everything takes
	SmallestBudget     bool    // instead, the smallest budget that a plan fits, which the summary names
	LinkBytesPerSecond float64 // cost model of the host link; 0: the device's own
	AMP                AMP
	AMPRules           []AMPRule         // in their order
	Parameters         DType             // what parameters of two or more dimensions are stored as: F32, or BF16 with AMPBF16
	Formats            []ParameterFormat // instead of Parameters; of those that match a parameter, the last counts
	NoOptimizer        bool              // gradients only, no optimizer state
	Policy             Policy            // for all regions that leave it to the planner and lie in none that has a policy
	Regions            []RegionPolicy    // instead of regions' own policies; of those that match a region, the last counts
	Tiers              []Tier            // where offloading may go, first choice first; at most 4
	Costs              *Costs            // nil: the device's rough rates
	ForceCosts         bool              // take a profile that was measured on another machine
	MicroSteps         int               // micro-batches per update that the plan is for; 0: 1
	FuseUpdate         bool              // update parameters inside backward; for steppers with one micro-batch and NoClip
	Optimizer          string            // of Optimizers: "adamw", "sgd", ...; "": adamw
	Groups             []ParameterGroup
	Hypers             []Hyper // instead of the optimizers' defaults
	EMA                float64 // above 0: the decay of an average of every trained parameter, "PARAMETER/ema"
}

// raw is the struct of C, in memory of C as far as it points.
func (o *PlanOptions) raw(a *arena) (C.cairn_plan_options_t, error) {
	raw := C.cairn_go_plan_options()
	if len(o.Tiers) > len(raw.tiers) {
		return raw, invalid("PlanOptions.Tiers has %d tiers; at most %d are possible", len(o.Tiers), len(raw.tiers))
	}
	if err := checkCount("PlanOptions.MicroSteps", o.MicroSteps); err != nil {
		return raw, err
	}
	raw.budget_bytes = C.uint64_t(o.BudgetBytes)
	raw.budget_share = C.double(o.BudgetShare)
	raw.smallest_budget = flag(o.SmallestBudget)
	raw.link_bytes_per_second = C.double(o.LinkBytesPerSecond)
	raw.amp = C.uint32_t(o.AMP)
	raw.parameters = C.uint32_t(o.Parameters)
	raw.no_optimizer = flag(o.NoOptimizer)
	raw.policy = C.uint32_t(o.Policy)
	regions := list[C.cairn_region_policy_t](a, len(o.Regions))
	for i, region := range o.Regions {
		regions[i].pattern = a.text(region.Pattern)
		regions[i].policy, regions[i].tier = C.uint32_t(region.Policy), C.uint32_t(region.Tier)
	}
	raw.region_policies, raw.region_policy_count = first(regions), C.uint32_t(len(regions))
	raw.tier_count = C.uint32_t(len(o.Tiers))
	for i, tier := range o.Tiers {
		raw.tiers[i] = C.uint32_t(tier)
	}
	if o.Costs != nil {
		raw.costs = o.Costs.c()
	}
	raw.force_costs = flag(o.ForceCosts)
	raw.micro_steps = C.uint32_t(o.MicroSteps)
	raw.fuse_update = flag(o.FuseUpdate)
	raw.ema = C.double(o.EMA)
	raw.optimizer = a.word(o.Optimizer)
	groups := list[C.cairn_parameter_group_t](a, len(o.Groups))
	for i, group := range o.Groups {
		groups[i].pattern, groups[i].optimizer = a.text(group.Pattern), a.word(group.Optimizer)
	}
	raw.groups, raw.group_count = first(groups), C.uint32_t(len(groups))
	hypers := a.hypers(o.Hypers)
	raw.hypers, raw.hyper_count = first(hypers), C.uint32_t(len(hypers))
	formats := list[C.cairn_parameter_format_t](a, len(o.Formats))
	for i, format := range o.Formats {
		formats[i].pattern, formats[i].format = a.text(format.Pattern), a.text(format.Format)
	}
	raw.formats, raw.format_count = first(formats), C.uint32_t(len(formats))
	rules := list[C.cairn_amp_rule_t](a, len(o.AMPRules))
	for i, rule := range o.AMPRules {
		rules[i].op, rules[i].region, rules[i].amp_class = a.word(rule.Op), a.word(rule.Region), a.text(rule.Class)
	}
	raw.amp_rules, raw.amp_rule_count = first(rules), C.uint32_t(len(rules))
	return raw, a.err
}

func (a *arena) hypers(hypers []Hyper) []C.cairn_hyper_t {
	raw := list[C.cairn_hyper_t](a, len(hypers))
	for i, hyper := range hypers {
		raw[i].group, raw[i].name, raw[i].value = hyper.group(a), a.text(hyper.Name), C.double(hyper.Value)
	}
	return raw
}

func (h Hyper) group(a *arena) *C.char {
	if h.Rest {
		return a.text("")
	}
	return a.word(h.Group)
}

// checkCount refuses what is no number of 32 bits.
func checkCount(what string, count int) error {
	if count < 0 || int64(count) > 1<<32-1 {
		return invalid("%s is %d; it must be from 0 to %d", what, count, int64(1<<32-1))
	}
	return nil
}
