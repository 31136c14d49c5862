package cairn_test

import (
	"context"
	"errors"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"cairn"
)

func sine() cairn.CustomOp {
	return cairn.CustomOp{
		Name: "sine", Inputs: 1, Outputs: 1, Recomputable: true,
		Shape: func(in []cairn.TensorType) ([]cairn.TensorType, error) { return in, nil },
		Forward: func(in, out []cairn.Tensor, _ []byte) error {
			to := out[0].Float32s()
			for i, x := range in[0].Float32s() {
				to[i] = float32(math.Sin(float64(x)))
			}
			return nil
		},
		Backward: func(in, _, outGradients, inGradients []cairn.Tensor, _ []byte) error {
			if !inGradients[0].Present() {
				return nil
			}
			to, from := inGradients[0].Float32s(), outGradients[0].Float32s()
			for i, x := range in[0].Float32s() {
				to[i] = 0
				if from != nil {
					to[i] = from[i] * float32(math.Cos(float64(x)))
				}
			}
			return nil
		},
	}
}

// sineGraph is y = op(w * x), and trains on its squares.
func sineGraph(t testing.TB, instance *cairn.Instance, op cairn.CustomOp) *cairn.Graph {
	t.Helper()
	made, err := cairn.NewGraph(instance)
	g := closing(t, made, err)
	g.AddOp(op)
	x := g.Input("x", cairn.F32, rows)
	w := g.Parameter("w", cairn.ParameterOptions{Init: cairn.Constant(0.5)}, rows)
	y := g.Name(g.Op(op.Name, []cairn.Value{g.Mul(x, w)}), "y")
	ok(t, g.Freeze(cairn.FreezeOptions{Loss: g.ReduceSum(y), Outputs: []cairn.Value{y}}))
	return g
}

// sineSession runs gradients of it.
func sineSession(t testing.TB, op cairn.CustomOp) *cairn.Session {
	t.Helper()
	instance := newInstance(t)
	device := openCPU(t, instance)
	plan, err := cairn.NewPlan(sineGraph(t, instance, op), device, cairn.PlanOptions{NoOptimizer: true})
	closing(t, plan, err)
	session, err := cairn.NewSession(plan, device)
	closing(t, session, err)
	ok(t, session.Initialise(1))
	ok(t, session.Write("x", []float32{0, 1, 2, 3, 4, 5, 6, 7}))
	return session
}

func TestCustomOpComputesForwardAndBackward(t *testing.T) {
	session := sineSession(t, sine())
	ok(t, session.Run(context.Background()))
	y, err := cairn.ReadAll[float32](session, "y")
	ok(t, err)
	gradient, err := cairn.ReadAll[float32](session, "w/gradient")
	ok(t, err)
	for i := range y {
		x := float64(i)
		if y[i] != float32(math.Sin(x/2)) {
			t.Errorf("sin(%g) = %g", x/2, y[i])
		}
		if want := float32(x) * float32(math.Cos(x/2)); math.Abs(float64(gradient[i]-want)) > 1e-6 {
			t.Errorf("gradient %d: %g, not %g", i, gradient[i], want)
		}
	}
}

func TestCustomOpGetsTheWorkspaceItAskedFor(t *testing.T) {
	op := sine()
	forward, asked := op.Forward, 0
	op.Workspace = func(in []cairn.TensorType) (int, error) {
		asked++
		return 100 * in[0].Elements() * asked, nil // another answer each time: the first one counts
	}
	op.Forward = func(in, out []cairn.Tensor, workspace []byte) error {
		if len(workspace) != 100*rows {
			return errors.New("workspace")
		}
		for i := range workspace {
			workspace[i] = 7
		}
		return forward(in, out, nil)
	}
	ok(t, sineSession(t, op).Run(context.Background()))
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

type told struct{ io.Reader }

func (told) Error() string { return "the op's own error" }

type ownerless struct{ words string }

func (o *ownerless) Error() string { return o.words } // panics without an owner

type odd struct{ runs func() }

func (odd) Error() string { return "odd" }
func (o odd) As(any) bool { o.runs(); return false }

// What a function of an op may come to, and what the run then returns.
func TestFailuresOfCustomOps(t *testing.T) {
	var index []int
	is := func(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }
	says := func(text string) func(error) bool {
		return func(err error) bool { return strings.Contains(err.Error(), text) }
	}
	cases := map[string]struct {
		fail   func() error
		status cairn.Status
		check  func(error) bool
	}{
		"error":   {func() error { return told{} }, cairn.InvalidArgument, func(err error) bool { return errors.As(err, &told{}) }},
		"wrapped": {func() error { return io.ErrUnexpectedEOF }, cairn.InvalidArgument, is(io.ErrUnexpectedEOF)},
		"panic": {func() error { panic("no way") }, cairn.InvalidArgument, func(err error) bool {
			var own *cairn.PanicError
			return errors.As(err, &own) && own.Value == "no way" && strings.Contains(string(own.Stack), "customop_test.go")
		}},
		"panic with an error": {func() error { panic(io.EOF) }, cairn.InvalidArgument, is(io.EOF)},
		"index": {func() error { index[3] = 1; return nil }, cairn.InvalidArgument, func(err error) bool {
			var fault runtime.Error
			return errors.As(err, &fault)
		}},
		"goexit":    {func() error { runtime.Goexit(); return nil }, cairn.InvalidArgument, says("Goexit")},
		"panic nil": {func() error { panic(nil) }, cairn.InvalidArgument, says("panic(nil)")},
		"error of a nil pointer": {func() error { var none *ownerless; return none }, cairn.InvalidArgument,
			says("an error of type *cairn_test.ownerless, whose own methods fail: runtime error: invalid memory address")},
		"error that panics": {func() error { return odd{func() { panic("As") }} }, cairn.InvalidArgument,
			says("an error of type cairn_test.odd, whose own methods fail")},
		"error that leaves": {func() error { return odd{runtime.Goexit} }, cairn.InvalidArgument,
			says("an error of type cairn_test.odd, whose own methods fail")},
		"panic with an error of a nil pointer": {func() error { var none *ownerless; panic(none) }, cairn.InvalidArgument,
			says("panic: ")},
		"status in an Error": {func() error {
			return &cairn.Error{Status: cairn.IO, Message: "the disk of the op"}
		}, cairn.IO, says("the disk of the op")},
	}
	for _, row := range statuses[1:] {
		status := row.status
		cases["status "+row.name] = struct {
			fail   func() error
			status cairn.Status
			check  func(error) bool
		}{func() error { return status }, status, is(status)}
	}
	for name, row := range cases {
		for _, where := range []string{"forward", "backward"} {
			op := sine()
			if where == "forward" {
				op.Forward = func(in, out []cairn.Tensor, _ []byte) error { return row.fail() }
			} else {
				op.Backward = func(_, _, _, _ []cairn.Tensor, _ []byte) error { return row.fail() }
			}
			session := sineSession(t, op)
			err := session.Run(context.Background())
			if !errors.Is(err, row.status) || !row.check(err) {
				t.Errorf("%s in %s: %v", name, where, err)
			}
			contains(t, err, "custom op 'sine'", where)
			if strings.Contains(err.Error(), "no status") {
				t.Errorf("%s in %s: %v", name, where, err)
			}
			if name == "panic" {
				contains(t, err, "custom op 'sine': its "+where+" callback failed: panic: no way")
			}
			again := session.Run(context.Background())
			if !errors.Is(again, row.status) { // poisoned, or failing again
				t.Errorf("%s in %s, once more: %v", name, where, again)
			}
		}
	}
}

func TestFailuresOfShapeAndWorkspace(t *testing.T) {
	instance := newInstance(t)
	build := func(change func(*cairn.CustomOp)) error {
		op := sine()
		change(&op)
		made, err := cairn.NewGraph(instance)
		g := closing(t, made, err)
		g.AddOp(op)
		g.Op("sine", []cairn.Value{g.Input("x", cairn.F32, rows)})
		return g.Err()
	}
	long := make([]int, 9)
	for name, row := range map[string]struct {
		change func(*cairn.CustomOp)
		words  []string
	}{
		"shape fails": {func(op *cairn.CustomOp) {
			op.Shape = func([]cairn.TensorType) ([]cairn.TensorType, error) { return nil, told{} }
		}, []string{"sine"}},
		"shape panics": {func(op *cairn.CustomOp) {
			op.Shape = func([]cairn.TensorType) ([]cairn.TensorType, error) { panic("shape") }
		}, []string{"sine"}},
		"too few outputs": {func(op *cairn.CustomOp) {
			op.Shape = func([]cairn.TensorType) ([]cairn.TensorType, error) { return nil, nil }
		}, []string{"sine"}},
		"too high a rank": {func(op *cairn.CustomOp) {
			op.Shape = func([]cairn.TensorType) ([]cairn.TensorType, error) {
				return []cairn.TensorType{{Dims: long}}, nil
			}
		}, []string{"sine"}},
		"no shape":   {func(op *cairn.CustomOp) { op.Shape = nil }, []string{"sine", "Shape"}},
		"no forward": {func(op *cairn.CustomOp) { op.Forward = nil }, []string{"sine", "Forward"}},
		"no inputs":  {func(op *cairn.CustomOp) { op.Inputs = 0 }, []string{"0 inputs", "1 to 4"}},
		"outputs":    {func(op *cairn.CustomOp) { op.Outputs = 5 }, []string{"5 outputs", "1 to 4"}},
		"no name":    {func(op *cairn.CustomOp) { op.Name = "" }, nil},
	} {
		err := build(row.change)
		if !errors.Is(err, cairn.InvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
		contains(t, err, row.words...)
	}
	device := openCPU(t, instance)
	op := sine()
	op.Workspace = func([]cairn.TensorType) (int, error) { return 0, told{} }
	if _, err := cairn.NewPlan(sineGraph(t, instance, op), device, cairn.PlanOptions{}); !errors.Is(err, cairn.InvalidArgument) {
		t.Error(err)
	}
}

// The functions of an op live as long as an object that may call them, and no longer: closed by hand, or by the collector.
func TestCustomOpsAreLetGo(t *testing.T) {
	for _, byHand := range []bool{true, false} {
		freed := make(chan bool, 1)
		runOnce(t, byHand, freed)
		gone := false
		for try := 0; try < 500 && !gone; try++ {
			runtime.GC()
			select {
			case <-freed:
				gone = true
			case <-time.After(10 * time.Millisecond):
			}
		}
		if !gone {
			t.Errorf("closed by hand: %t: the op's functions are still there", byHand)
		}
	}
}

// runOnce runs an op whose function holds something that tells when it is freed.
func runOnce(t *testing.T, byHand bool, freed chan<- bool) {
	instance := newInstance(t)
	device := openCPU(t, instance)
	held := &struct{ count int }{}
	runtime.SetFinalizer(held, func(any) { freed <- true })
	op := sine()
	forward := op.Forward
	op.Forward = func(in, out []cairn.Tensor, workspace []byte) error {
		held.count++
		return forward(in, out, workspace)
	}
	close := func(object closer) {
		if byHand {
			ok(t, object.Close())
		}
	}
	g := must(cairn.NewGraph(instance))
	g.AddOp(op)
	y := g.Name(g.Op("sine", []cairn.Value{g.Input("x", cairn.F32, rows)}), "y")
	ok(t, g.Freeze(cairn.FreezeOptions{Outputs: []cairn.Value{y}}))
	plan := must(cairn.NewPlan(g, device, cairn.PlanOptions{}))
	close(g)
	session := must(cairn.NewSession(plan, device))
	close(plan)
	runtime.GC()
	ok(t, session.Write("x", make([]float32, rows)))
	ok(t, session.Run(context.Background()))
	if held.count != 1 {
		t.Errorf("ran %d times", held.count)
	}
	close(session)
}
