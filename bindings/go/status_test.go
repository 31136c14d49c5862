package cairn_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"cairn"
)

var statuses = []struct {
	status cairn.Status
	name   string
}{
	{cairn.OK, "OK"}, {cairn.InvalidArgument, "INVALID_ARGUMENT"}, {cairn.WrongState, "WRONG_STATE"},
	{cairn.OutOfMemory, "OUT_OF_MEMORY"}, {cairn.OverBudget, "OVER_BUDGET"}, {cairn.Unsupported, "UNSUPPORTED"},
	{cairn.NotFound, "NOT_FOUND"}, {cairn.CorruptFile, "CORRUPT_FILE"}, {cairn.IO, "IO"}, {cairn.DeviceLost, "DEVICE_LOST"},
	{cairn.Cancelled, "CANCELLED"}, {cairn.NonFinite, "NON_FINITE"}, {cairn.Internal, "INTERNAL"},
}

func TestStatusesHaveTheirNames(t *testing.T) {
	for number, row := range statuses {
		if int(row.status) != number || row.status.String() != row.name || row.status.Error() != "cairn: "+row.name {
			t.Errorf("status %d is %d, %q", number, row.status, row.status.Error())
		}
	}
	if name := cairn.Status(99).String(); name != "UNKNOWN" {
		t.Error(name)
	}
}

func TestVersion(t *testing.T) {
	if !strings.HasPrefix(cairn.Version(), "1.") || cairn.VersionNumber()/10000 != 1 {
		t.Error(cairn.Version(), cairn.VersionNumber())
	}
}

// refusing is an allocator without memory.
type refusing struct{}

func (r *refusing) Allocate(bytes, alignment uintptr) unsafe.Pointer { return nil }
func (r *refusing) Release(unsafe.Pointer, uintptr, uintptr)         {}

// Each status as a program meets it, without an op that makes it up (those are in customop_test.go).
func TestErrorOfEveryStatus(t *testing.T) {
	r := newRig(t, cairn.PlanOptions{})
	folder := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		ok(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	calls := map[cairn.Status]struct {
		call  func() error
		words []string // what the message must name
	}{
		cairn.InvalidArgument: {func() error { return r.session.Write("x", []float32{1, 2}) },
			[]string{"'x'", "128 bytes", "8 were given"}},
		cairn.WrongState: {func() error { return r.session.Run(context.Background()) }, []string{"stepper"}},
		cairn.OutOfMemory: {func() error {
			instance := must(cairn.NewInstance(cairn.InstanceOptions{Allocator: &refusing{}}))
			defer instance.Close()
			device := openCPU(t, instance)
			plan := must(cairn.NewPlan(r.graph, device, cairn.PlanOptions{}))
			_, err := cairn.NewSession(plan, device)
			return err
		}, nil},
		cairn.OverBudget: {func() error {
			_, err := cairn.NewPlan(r.graph, r.device, cairn.PlanOptions{BudgetBytes: 1})
			return err
		}, nil},
		cairn.Unsupported: {func() error {
			op := sine()
			op.Backward = nil
			_, err := cairn.NewPlan(sineGraph(t, r.instance, op), r.device, cairn.PlanOptions{})
			return err
		}, []string{"sine"}},
		cairn.NotFound: {func() error {
			_, err := cairn.OpenDevice(r.instance, "abacus", cairn.DeviceOptions{})
			return err
		}, []string{"abacus", "cpu"}},
		cairn.CorruptFile: {func() error {
			_, err := cairn.LoadGraph(r.instance, file("damaged", "this is no graph at all, but a text"))
			return err
		}, nil},
		cairn.IO: {func() error { return r.graph.Save(filepath.Join(folder, "none", "graph")) }, []string{"none"}},
		cairn.Cancelled: {func() error {
			r.session.Cancel()
			_, err := r.stepper(t, cairn.StepperOptions{}).Micro(context.Background())
			return err
		}, nil},
		cairn.NonFinite: {func() error { return fusedOverflow(t) }, []string{"restore a checkpoint"}},
	}
	for status, row := range calls {
		err := row.call()
		var own *cairn.Error
		if !errors.As(err, &own) || own.Status != status || !errors.Is(err, status) || errors.Is(err, cairn.Internal) {
			t.Errorf("%v: %v", status, err)
			continue
		}
		contains(t, err, append(row.words, status.String())...)
		memory := status == cairn.OutOfMemory || status == cairn.OverBudget
		if (own.Fault != nil) != memory {
			t.Errorf("%v: fault %+v", status, own.Fault)
		}
	}
}

// fusedOverflow makes a gradient overflow whose loss does not, where the update is part of backward.
func fusedOverflow(t *testing.T) error {
	instance := newInstance(t)
	device := openCPU(t, instance)
	made, err := cairn.NewGraph(instance)
	g := closing(t, made, err)
	x := g.Input("x", cairn.F32, 4, 2)
	h := g.Linear(x, g.Parameter("a", cairn.ParameterOptions{Init: cairn.Constant(1e-30)}, 2, 2), cairn.None)
	y := g.Linear(h, g.Parameter("b", cairn.ParameterOptions{Init: cairn.Constant(1e10)}, 1, 2), cairn.None)
	ok(t, g.Freeze(cairn.FreezeOptions{Loss: g.Mse(y, g.Input("target", cairn.F32, 4, 1), cairn.None)}))
	plan, err := cairn.NewPlan(g, device, cairn.PlanOptions{FuseUpdate: true})
	closing(t, plan, err)
	session, err := cairn.NewSession(plan, device)
	closing(t, session, err)
	ok(t, session.Initialise(1))
	ok(t, session.Write("x", []float32{1e30, 1e30, 1e30, 1e30, 1e30, 1e30, 1e30, 1e30}))
	ok(t, session.Write("target", make([]float32, 4)))
	stepper, err := cairn.NewStepper(session, cairn.StepperOptions{ClipNorm: cairn.NoClip})
	closing(t, stepper, err)
	_, err = stepper.Micro(context.Background())
	return err
}

func TestFaultNamesTheSmallestBudget(t *testing.T) {
	r := newRig(t, cairn.PlanOptions{})
	_, err := cairn.NewPlan(r.graph, r.device, cairn.PlanOptions{BudgetBytes: 100})
	var own *cairn.Error
	if !errors.As(err, &own) || own.Fault == nil || own.Fault.BudgetBytes != 100 || own.Fault.Tier != cairn.TierDevice {
		t.Fatalf("%v, %+v", err, own)
	}
	smallest := own.Fault.SmallestBudgetBytes
	if _, err = cairn.NewPlan(r.graph, r.device, cairn.PlanOptions{BudgetBytes: smallest}); err != nil {
		t.Errorf("the smallest budget, %d, does not do: %v", smallest, err)
	}
	if _, err = cairn.NewPlan(r.graph, r.device, cairn.PlanOptions{BudgetBytes: smallest - 64}); !errors.Is(err, cairn.OverBudget) {
		t.Errorf("less than the smallest budget, %d, does: %v", smallest, err)
	}
}

func TestTextsWithNULAreRefused(t *testing.T) {
	r := newRig(t, cairn.PlanOptions{})
	bad := "a\x00b"
	made, err := cairn.NewGraph(r.instance)
	g := closing(t, made, err)
	for what, call := range map[string]func() error{
		"input":     func() error { g.Input(bad, cairn.F32, 1); return g.ClearErr() },
		"parameter": func() error { g.Parameter(bad, cairn.ParameterOptions{}, 1); return g.ClearErr() },
		"region":    func() error { g.Region(bad, cairn.RegionOptions{}, func() {}); return g.ClearErr() },
		"op":        func() error { g.Op(bad, nil); return g.ClearErr() },
		"attribute": func() error { g.Op("gelu", nil, cairn.Attr{Name: bad, Value: 1}); return g.ClearErr() },
		"write":     func() error { return r.session.Write(bad, []float32{1}) },
		"hyper":     func() error { return r.stepper(t, cairn.StepperOptions{}).Set(cairn.Hyper{Name: bad}) },
		"save": func() error {
			return r.stepper(t, cairn.StepperOptions{}).Save(t.TempDir(), cairn.SaveOptions{Files: []string{bad}})
		},
		"plan": func() error {
			_, err := cairn.NewPlan(r.graph, r.device, cairn.PlanOptions{Optimizer: bad})
			return err
		},
	} {
		if err := call(); !errors.Is(err, cairn.InvalidArgument) || !strings.Contains(err.Error(), `a\x00b`) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestErrorObjectsAreUsedAgain(t *testing.T) {
	instance := newInstance(t)
	for i := 0; i < 200; i++ {
		if _, err := instance.Inspect("/nowhere/at/all"); !errors.Is(err, cairn.NotFound) {
			t.Fatal(err)
		}
	}
}
