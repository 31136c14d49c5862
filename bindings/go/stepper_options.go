package cairn

// #include "shim.h"
import "C"

// NoClip is the StepperOptions.ClipNorm of a stepper that does not clip gradients.
const NoClip = -1

// StepperOptions are how a stepper updates. The zero StepperOptions are the library's defaults. beta1, weight_decay and the like
// are hyper-parameters: Hypers.
type StepperOptions struct {
	Seed        uint64     // of dropout
	Rate        float64    // the highest; 0: 3e-4
	MinimumRate float64    // where the schedule ends
	Schedules   []Schedule // one after the other; none: constant
	TotalSteps  int        // where the schedule ends, the warm-up included; needed by those that have an end
	WarmupSteps int        // linear, from Rate / WarmupSteps, before the schedule
	WarmupUnits uint64     // the warm-up as a count of samples, tokens, ..., instead of WarmupSteps:
	StepUnits   uint64     // how many of them a step takes
	ClipNorm    float64    // global norm; 0: 1; NoClip: none
	MicroSteps  int        // micro-batches of an effective batch; 0: 1
	Hypers      []Hyper    // of any optimizer, instead of the plan's
	// Of plans with AMPFP16.
	LossScale         float64 // the initial one; 0: 2^16 over the rows of an effective batch
	LossScaleGrowth   float64 // 0: 2
	LossScaleBackoff  float64 // 0: 0.5
	LossScaleInterval int     // steps in a row that grow it; 0: 2000
}

func (o *StepperOptions) raw(a *arena) (C.cairn_stepper_options_t, error) {
	raw := C.cairn_go_stepper_options()
	for what, count := range map[string]int{
		"StepperOptions.TotalSteps": o.TotalSteps, "StepperOptions.WarmupSteps": o.WarmupSteps,
		"StepperOptions.MicroSteps": o.MicroSteps, "StepperOptions.LossScaleInterval": o.LossScaleInterval,
	} {
		if err := checkCount(what, count); err != nil {
			return raw, err
		}
	}
	schedules, err := a.schedules(o.Schedules)
	if err != nil {
		return raw, err
	}
	raw.seed = C.uint64_t(o.Seed)
	if o.Rate != 0 {
		raw.rate = C.double(o.Rate)
	}
	raw.minimum_rate = C.double(o.MinimumRate)
	raw.schedules, raw.schedule_count = first(schedules), C.uint64_t(len(schedules))
	raw.total_steps, raw.warmup_steps = C.uint64_t(o.TotalSteps), C.uint64_t(o.WarmupSteps)
	raw.warmup_units, raw.step_units = C.uint64_t(o.WarmupUnits), C.uint64_t(o.StepUnits)
	switch o.ClipNorm {
	case 0: // the default
	case NoClip:
		raw.clip_norm = 0
	default:
		raw.clip_norm = C.double(o.ClipNorm)
	}
	raw.micro_steps = C.uint32_t(o.MicroSteps)
	hypers := a.hypers(o.Hypers)
	raw.hypers, raw.hyper_count = first(hypers), C.uint64_t(len(hypers))
	raw.loss_scale, raw.loss_scale_growth = C.double(o.LossScale), C.double(o.LossScaleGrowth)
	raw.loss_scale_backoff, raw.loss_scale_interval = C.double(o.LossScaleBackoff), C.uint32_t(o.LossScaleInterval)
	return raw, a.err
}
