package cairn_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"cairn"
)

// Numbers that no constant has, and values that make no sense: an error each, and the objects work as before.
func TestBadInputIsAnError(t *testing.T) {
	r := newRig(t, cairn.PlanOptions{})
	made, err := cairn.NewGraph(r.instance)
	g := closing(t, made, err)
	build := func(call func()) func() error {
		return func() error {
			call()
			return g.ClearErr()
		}
	}
	plan := func(options cairn.PlanOptions) func() error {
		return func() error {
			_, err := cairn.NewPlan(r.graph, r.device, options)
			return err
		}
	}
	stepper := func(options cairn.StepperOptions) func() error {
		return func() error {
			_, err := cairn.NewStepper(r.session, options)
			return err
		}
	}
	for name, call := range map[string]func() error{
		"dtype":            build(func() { g.Input("x", cairn.DType(42), 4) }),
		"rank":             build(func() { g.Input("x", cairn.F32, 1, 1, 1, 1, 1, 1, 1, 1, 1) }),
		"dimension":        build(func() { g.Input("x", cairn.F32, 4, -1) }),
		"too large":        build(func() { g.Input("x", cairn.F32, math.MaxInt, math.MaxInt) }),
		"empty name":       build(func() { g.Input("", cairn.F32, 4) }),
		"no utf-8":         build(func() { g.Input("\xff", cairn.F32, 4) }),
		"region policy":    build(func() { g.Region("r", cairn.RegionOptions{Policy: 9}, func() {}) }),
		"value":            build(func() { g.Gelu(12345) }),
		"name":             build(func() { g.Name(12345, "y") }),
		"amp":              plan(cairn.PlanOptions{AMP: 7}),
		"policy":           plan(cairn.PlanOptions{Policy: 7}),
		"region's policy":  plan(cairn.PlanOptions{Regions: []cairn.RegionPolicy{{Pattern: "*"}}}),
		"region's tier":    plan(cairn.PlanOptions{Regions: []cairn.RegionPolicy{{Pattern: "*", Policy: cairn.Keep, Tier: cairn.TierDisk}}}),
		"tier":             plan(cairn.PlanOptions{Tiers: []cairn.Tier{9}}),
		"share":            plan(cairn.PlanOptions{BudgetShare: math.NaN()}),
		"micro-batches":    plan(cairn.PlanOptions{MicroSteps: -1}),
		"group":            plan(cairn.PlanOptions{Groups: []cairn.ParameterGroup{{Pattern: "nothing*"}}}),
		"rate":             stepper(cairn.StepperOptions{Rate: math.Inf(1)}),
		"negative rate":    stepper(cairn.StepperOptions{Rate: -1}),
		"clip":             stepper(cairn.StepperOptions{ClipNorm: -2}),
		"steps":            stepper(cairn.StepperOptions{TotalSteps: -1}),
		"stepper's micro":  stepper(cairn.StepperOptions{MicroSteps: -5}),
		"schedule's steps": stepper(cairn.StepperOptions{Schedules: []cairn.Schedule{{Name: "constant", Steps: -1}}}),
		"no end":           stepper(cairn.StepperOptions{Schedules: []cairn.Schedule{{Name: "cosine"}}}),
		"nil context": func() error {
			_, err := r.stepper(t, cairn.StepperOptions{}).Micro(nil) //nolint:staticcheck // what is tested
			return err
		},
		"usage": func() error {
			_, err := r.session.Usage(cairn.Tier(9))
			return err
		},
		"problem": func() error {
			_, err := cairn.SolveProblem(r.instance, []byte("{}"), 0, cairn.RenderPlanJSON)
			return err
		},
	} {
		if err := call(); !errors.Is(err, cairn.InvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if report := must(r.stepper(t, cairn.StepperOptions{}).Micro(context.Background())); report.Outcome != cairn.Applied {
		t.Errorf("%+v", report)
	}
}
