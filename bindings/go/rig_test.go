package cairn_test

import (
	"math"
	"os"
	"strings"
	"testing"

	"cairn"
)

// long is whether to take all of the long campaigns.
var long = os.Getenv("CAIRN_TEST") == "long"

// must is for calls that only fail where the test is wrong.
func must[T any](made T, err error) T {
	if err != nil {
		panic(err)
	}
	return made
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// contains tells whether a message names what it must.
func contains(t testing.TB, err error, words ...string) {
	t.Helper()
	for _, word := range words {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%q is not in: %v", word, err)
		}
	}
}

type closer interface{ Close() error }

// closing closes an object when the test ends.
func closing[T closer](t testing.TB, made T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = made.Close() })
	return made
}

func newInstance(t testing.TB) *cairn.Instance {
	made, err := cairn.NewInstance(cairn.InstanceOptions{})
	return closing(t, made, err)
}

func openCPU(t testing.TB, instance *cairn.Instance) *cairn.Device {
	made, err := cairn.OpenDevice(instance, "cpu", cairn.DeviceOptions{Threads: 2})
	return closing(t, made, err)
}

// The model of most tests: x[rows, 4] -> y[rows, 1], squared error against target.
const (
	rows  = 8
	width = 4
)

// network builds it for `count` rows. One that does not train predicts, with the squared error as the output "error".
func network(t testing.TB, instance *cairn.Instance, count int, trains bool) *cairn.Graph {
	t.Helper()
	made, err := cairn.NewGraph(instance)
	g := closing(t, made, err)
	h := g.Input("x", cairn.F32, count, width)
	layer := func(name string, in, out int, attrs ...cairn.Attr) {
		g.Region(name, cairn.RegionOptions{}, func() {
			w := g.Parameter(name+".weight", cairn.ParameterOptions{Init: cairn.Normal(0.4)}, out, in)
			b := g.Parameter(name+".bias", cairn.ParameterOptions{NoDecay: true}, out)
			h = g.Linear(h, w, b, attrs...)
		})
	}
	layer("first", width, 16, cairn.WithActivation("gelu_tanh"))
	layer("second", 16, 1)
	g.Name(h, "y")
	loss := g.Mse(h, g.Input("target", cairn.F32, count, 1), cairn.None)
	if trains {
		err = g.Freeze(cairn.FreezeOptions{Loss: g.Name(loss, "loss"), Outputs: []cairn.Value{h}})
	} else {
		err = g.Freeze(cairn.FreezeOptions{Outputs: []cairn.Value{h, g.Name(loss, "error")}})
	}
	ok(t, err)
	return g
}

// rig is a session of the model and what it was made from.
type rig struct {
	instance *cairn.Instance
	device   *cairn.Device
	graph    *cairn.Graph
	plan     *cairn.Plan
	session  *cairn.Session
}

func newRig(t testing.TB, options cairn.PlanOptions) *rig {
	t.Helper()
	r := &rig{instance: newInstance(t)}
	r.device = openCPU(t, r.instance)
	r.graph = network(t, r.instance, rows, true)
	plan, err := cairn.NewPlan(r.graph, r.device, options)
	r.plan = closing(t, plan, err)
	session, err := cairn.NewSession(r.plan, r.device)
	r.session = closing(t, session, err)
	ok(t, r.session.Initialise(1))
	feed(t, r.session, 0, rows)
	return r
}

func (r *rig) stepper(t testing.TB, options cairn.StepperOptions) *cairn.Stepper {
	t.Helper()
	made, err := cairn.NewStepper(r.session, options)
	return closing(t, made, err)
}

// feed writes micro-batch number index: the target is the product of the first two inputs.
func feed(t testing.TB, session *cairn.Session, index, count int) {
	t.Helper()
	x, target := make([]float32, count*width), make([]float32, count)
	for i := range x {
		x[i] = float32(math.Sin(float64(1 + i + 1000*index)))
	}
	for i := range target {
		target[i] = x[i*width] * x[i*width+1]
	}
	ok(t, session.Write("x", x))
	ok(t, session.Write("target", target))
}
