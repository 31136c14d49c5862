package cairn_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"cairn"
)

// everything is one object of each type.
func everything(t *testing.T) []closer {
	r := newRig(t, cairn.PlanOptions{})
	stepper := r.stepper(t, cairn.StepperOptions{})
	folder := t.TempDir()
	ok(t, stepper.Save(folder+"/step-1", cairn.SaveOptions{}))
	checkpoint := must(cairn.OpenCheckpoint(r.instance, folder))
	tokenizer := must(cairn.OpenTokenizer(r.instance, "bytes", ""))
	dataset := must(cairn.RandomDataset(r.instance, 1, 10, 4))
	costs := must(cairn.NewCosts(r.device))
	return []closer{r.instance, r.device, r.graph, r.plan, r.session, stepper, checkpoint, tokenizer, dataset, costs}
}

var (
	contextType = reflect.TypeOf((*context.Context)(nil)).Elem()
	errorType   = reflect.TypeOf((*error)(nil)).Elem()
)

// argument is something of a type to call a method with.
func argument(kind reflect.Type) reflect.Value {
	switch {
	case kind == contextType:
		return reflect.ValueOf(context.Background())
	case kind.Kind() == reflect.Interface:
		return reflect.ValueOf([]float32{1})
	case kind.Kind() == reflect.Func:
		return reflect.MakeFunc(kind, func([]reflect.Value) []reflect.Value { return nil })
	}
	return reflect.Zero(kind)
}

// callAll calls every method but Close, with arguments that mean nothing, and gives each error to check.
func callAll(t *testing.T, object any, check func(method string, err error)) {
	value := reflect.ValueOf(object)
	for i := 0; i < value.NumMethod(); i++ {
		name, kind := value.Type().Method(i).Name, value.Method(i).Type()
		if name == "Close" {
			continue
		}
		count := kind.NumIn()
		if kind.IsVariadic() {
			count--
		}
		var in []reflect.Value
		for j := 0; j < count; j++ {
			in = append(in, argument(kind.In(j)))
		}
		out := value.Method(i).Call(in)
		if last := len(out) - 1; last >= 0 && kind.Out(last) == errorType {
			err, _ := out[last].Interface().(error)
			check(value.Type().String()+"."+name, err)
		}
	}
}

func TestUseAfterCloseIsAnError(t *testing.T) {
	for _, object := range everything(t) {
		for again := 0; again < 3; again++ {
			ok(t, object.Close())
		}
		callAll(t, object, func(method string, err error) {
			if errors.Is(err, cairn.ErrClosed) && errors.Is(err, cairn.WrongState) {
				return
			}
			// Arguments that mean nothing may be refused before the object is looked at.
			if method != "*cairn.Dataset.Batch" || !errors.Is(err, cairn.InvalidArgument) {
				t.Errorf("%s after Close: %v", method, err)
			}
		})
	}
}

func TestNilAndZeroObjectsAreErrors(t *testing.T) {
	for _, object := range everything(t) {
		kind := reflect.TypeOf(object)
		for what, value := range map[string]reflect.Value{"nil": reflect.Zero(kind), "zero": reflect.New(kind.Elem())} {
			ok(t, value.Interface().(closer).Close())
			callAll(t, value.Interface(), func(method string, err error) {
				if !errors.Is(err, cairn.InvalidArgument) && !errors.Is(err, cairn.WrongState) {
					t.Errorf("%s %s: %v", what, method, err)
				}
				if what == "nil" {
					contains(t, err, "is nil; ", "makes one")
				}
			})
		}
	}
}

// Constructors are given nothing.
func TestNilArgumentsAreErrors(t *testing.T) {
	r := newRig(t, cairn.PlanOptions{})
	var err error
	for name, call := range map[string]func(){
		"OpenDevice":       func() { _, err = cairn.OpenDevice(nil, "cpu", cairn.DeviceOptions{}) },
		"NewGraph":         func() { _, err = cairn.NewGraph(nil) },
		"LoadGraph":        func() { _, err = cairn.LoadGraph(nil, "x") },
		"NewCosts":         func() { _, err = cairn.NewCosts(nil) },
		"ReadCosts":        func() { _, err = cairn.ReadCosts(nil, nil) },
		"NewPlan graph":    func() { _, err = cairn.NewPlan(nil, r.device, cairn.PlanOptions{}) },
		"NewPlan device":   func() { _, err = cairn.NewPlan(r.graph, nil, cairn.PlanOptions{}) },
		"NewPlanSet":       func() { _, err = cairn.NewPlanSet([]cairn.Program{{Name: "a"}}, r.device, cairn.PlanOptions{}) },
		"NewPlanSet none":  func() { _, err = cairn.NewPlanSet(nil, r.device, cairn.PlanOptions{}) },
		"NewSession":       func() { _, err = cairn.NewSession(nil, r.device) },
		"NewSession dev":   func() { _, err = cairn.NewSession(r.plan, nil) },
		"NewSessionSet":    func() { _, err = cairn.NewSessionSet([]*cairn.Plan{nil}, r.device) },
		"NewSessionSet 0":  func() { _, err = cairn.NewSessionSet(nil, r.device) },
		"NewStepper":       func() { _, err = cairn.NewStepper(nil, cairn.StepperOptions{}) },
		"OpenCheckpoint":   func() { _, err = cairn.OpenCheckpoint(nil, "x") },
		"RemoveCheckpoint": func() { err = cairn.RemoveCheckpoint(nil, "x") },
		"OpenTokenizer":    func() { _, err = cairn.OpenTokenizer(nil, "bytes", "") },
		"TrainTokenizer":   func() { err = cairn.TrainTokenizer(nil, "x", 300, "y") },
		"OpenDataset":      func() { _, err = cairn.OpenDataset(nil, "x", 8) },
		"RandomDataset":    func() { _, err = cairn.RandomDataset(nil, 1, 8, 8) },
		"SolveProblem":     func() { _, err = cairn.SolveProblem(nil, nil, 0, cairn.RenderPlanJSON) },
		"ReadAll":          func() { _, err = cairn.ReadAll[float32](nil, "x") },
		"Region": func() {
			g, made := cairn.NewGraph(r.instance)
			ok(t, made)
			defer g.Close()
			g.Region("r", cairn.RegionOptions{}, nil)
			err = g.Err()
		},
		"negative":        func() { _, err = cairn.OpenDevice(r.instance, "cpu", cairn.DeviceOptions{Threads: -1}) },
		"negative length": func() { _, err = cairn.RandomDataset(r.instance, 1, 8, -8) },
		"many tiers":      func() { _, err = cairn.NewPlan(r.graph, r.device, cairn.PlanOptions{Tiers: make([]cairn.Tier, 5)}) },
	} {
		err = nil
		call()
		if !errors.Is(err, cairn.InvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What was made from an object goes on without it.
func TestChildrenKeepTheirParents(t *testing.T) {
	instance := must(cairn.NewInstance(cairn.InstanceOptions{}))
	device := must(cairn.OpenDevice(instance, "cpu", cairn.DeviceOptions{Threads: 1}))
	graph := network(t, instance, rows, true)
	ok(t, instance.Close())
	plan := must(cairn.NewPlan(graph, device, cairn.PlanOptions{}))
	ok(t, graph.Close())
	session := must(cairn.NewSession(plan, device))
	ok(t, plan.Close())
	ok(t, device.Close())
	ok(t, session.Initialise(1))
	feed(t, session, 0, rows)
	stepper := must(cairn.NewStepper(session, cairn.StepperOptions{}))
	ok(t, session.Close())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for step := 1; step <= 3; step++ {
		report := must(stepper.Micro(ctx))
		if report.Outcome != cairn.Applied || report.Step != uint64(step) {
			t.Error(report)
		}
	}
	ok(t, stepper.Close())
}
