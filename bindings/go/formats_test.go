package cairn_test

import (
	"testing"

	"cairn"
)

// TestFormats: a session reads the numbers that are stored, and what a plan refuses is named.
func TestFormats(t *testing.T) {
	instance := newInstance(t)
	device := openCPU(t, instance)
	made, err := cairn.NewGraph(instance)
	g := closing(t, made, err)
	x := g.Input("x", cairn.F32, 2, 64)
	h := g.Linear(x, g.Parameter("h.0.weight", cairn.ParameterOptions{Init: cairn.Normal(1), Frozen: true}, 64, 64), cairn.None)
	y := g.Linear(h, g.Parameter("head", cairn.ParameterOptions{Init: cairn.Normal(1)}, 1, 64), cairn.None)
	loss := g.Mse(y, g.Input("t", cairn.F32, 2, 1), cairn.None)
	ok(t, g.Freeze(cairn.FreezeOptions{Loss: loss}))
	rule := func(pattern, format string) cairn.PlanOptions {
		return cairn.PlanOptions{Formats: []cairn.ParameterFormat{{Pattern: pattern, Format: format}}}
	}
	stored, err := cairn.NewPlan(g, device, rule("h.*", "int8"))
	plan := closing(t, stored, err)
	opened, err := cairn.NewSession(plan, device)
	session := closing(t, opened, err)
	ok(t, session.Initialise(3))
	numbers := make([]float32, 64*64)
	for i := range numbers {
		if numbers[i] = float32(i%64) - 31; i%64 == 0 {
			numbers[i] = 127
		}
		if i%64 > 0 {
			numbers[i] += 0.25
		}
	}
	ok(t, session.Write("h.0.weight", numbers))
	for i, number := range must(cairn.ReadAll[float32](session, "h.0.weight")) {
		if want := float32(i%64) - 31; i%64 > 0 && number != want { // the scale is 1
			t.Fatalf("%d: %v, not %v", i, number, want)
		}
	}
	_, err = cairn.NewPlan(g, device, rule("head", "int8"))
	contains(t, err, "INVALID_ARGUMENT", "head", "int8", "f32, bf16 or split")
	_, err = cairn.NewPlan(g, device, rule("k.*", "int8"))
	contains(t, err, "INVALID_ARGUMENT", "no parameter")
	for _, format := range must(cairn.Formats()) {
		if format.Name == "int8" && (format.Bits != 8 || format.Block != 64 || format.ScaleBytes != 4 || format.Trains ||
			format.Read != "dequantised" || format.ComputedAs != "f32") {
			t.Errorf("%+v", format)
		}
	}
}
