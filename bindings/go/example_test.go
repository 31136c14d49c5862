package cairn_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"

	"cairn"
)

// check ends a program whose call failed. Servers return the error instead.
func check[T any](made T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return made
}

// line is a graph that learns y = w x + b from four pairs.
func line(instance *cairn.Instance) *cairn.Graph {
	g := check(cairn.NewGraph(instance))
	x, y := g.Input("x", cairn.F32, 4, 1), g.Input("y", cairn.F32, 4, 1)
	w := g.Parameter("w", cairn.ParameterOptions{}, 1, 1)
	b := g.Parameter("b", cairn.ParameterOptions{NoDecay: true}, 1)
	loss := g.Mse(g.Linear(x, w, b), y, cairn.None)
	if err := g.Freeze(cairn.FreezeOptions{Loss: loss}); err != nil {
		log.Fatal(err)
	}
	return g
}

// points writes four pairs of 2 x + 1.
func points(session *cairn.Session) error {
	if err := session.Write("x", []float32{-1, 0, 1, 2}); err != nil {
		return err
	}
	return session.Write("y", []float32{-1, 1, 3, 5})
}

// A line through four points.
func Example() {
	instance := check(cairn.NewInstance(cairn.InstanceOptions{}))
	defer instance.Close()
	device := check(cairn.OpenDevice(instance, "cpu", cairn.DeviceOptions{Threads: 1}))
	defer device.Close()
	graph := line(instance)
	defer graph.Close()
	plan := check(cairn.NewPlan(graph, device, cairn.PlanOptions{Optimizer: "sgd"}))
	defer plan.Close()
	session := check(cairn.NewSession(plan, device))
	defer session.Close()
	stepper := check(cairn.NewStepper(session, cairn.StepperOptions{Rate: 0.1, ClipNorm: cairn.NoClip}))
	defer stepper.Close()

	if err := session.Initialise(1); err != nil {
		log.Fatal(err)
	}
	for step := 0; step < 200; step++ {
		if err := points(session); err != nil {
			log.Fatal(err)
		}
		if _, err := stepper.Micro(context.Background()); err != nil {
			log.Fatal(err)
		}
	}
	w, b := check(cairn.ReadAll[float32](session, "w")), check(cairn.ReadAll[float32](session, "b"))
	fmt.Printf("y = %.2f x + %.2f\n", w[0], b[0])
	// Output: y = 2.00 x + 1.00
}

// A budget that is too small names the smallest one that does.
func ExampleError() {
	instance := check(cairn.NewInstance(cairn.InstanceOptions{}))
	device := check(cairn.OpenDevice(instance, "cpu", cairn.DeviceOptions{}))
	graph := line(instance)
	_, err := cairn.NewPlan(graph, device, cairn.PlanOptions{BudgetBytes: 1})
	var failed *cairn.Error
	if errors.As(err, &failed) && errors.Is(err, cairn.OverBudget) {
		_, err = cairn.NewPlan(graph, device, cairn.PlanOptions{BudgetBytes: failed.Fault.SmallestBudgetBytes})
		fmt.Println("a larger budget:", err)
	}
	// Output: a larger budget: <nil>
}

// Mistakes in building are told once, with their line.
func ExampleGraph_Err() {
	instance := check(cairn.NewInstance(cairn.InstanceOptions{}))
	graph := check(cairn.NewGraph(instance))
	x := graph.Input("x", cairn.F32, 4, 3)
	h := graph.Linear(x, graph.Parameter("w", cairn.ParameterOptions{}, 8, 2), cairn.None) // 3 is not 2
	graph.Gelu(h)
	fmt.Println(errors.Is(graph.Err(), cairn.InvalidArgument))
	// Output: true
}

// A context ends a step; parameters are as before, and the session goes on.
func ExampleStepper_Micro_cancel() {
	instance := check(cairn.NewInstance(cairn.InstanceOptions{}))
	device := check(cairn.OpenDevice(instance, "cpu", cairn.DeviceOptions{}))
	session := check(cairn.NewSession(check(cairn.NewPlan(line(instance), device, cairn.PlanOptions{})), device))
	defer session.Close()
	stepper := check(cairn.NewStepper(session, cairn.StepperOptions{}))
	defer stepper.Close()
	if err := session.Initialise(1); err != nil {
		log.Fatal(err)
	}
	if err := points(session); err != nil {
		log.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := stepper.Micro(ctx)
	fmt.Println(errors.Is(err, cairn.Cancelled), errors.Is(err, context.Canceled))
	report := check(stepper.Micro(context.Background()))
	fmt.Println(report.Outcome)
	// Output:
	// true true
	// applied
}

// An op in Go, without a gradient. A panic in it would be an error of Run.
func ExampleGraph_AddOp() {
	instance := check(cairn.NewInstance(cairn.InstanceOptions{}))
	device := check(cairn.OpenDevice(instance, "cpu", cairn.DeviceOptions{}))
	graph := check(cairn.NewGraph(instance))
	graph.AddOp(cairn.CustomOp{
		Name: "floor", Inputs: 1, Outputs: 1, Recomputable: true,
		Shape: func(in []cairn.TensorType) ([]cairn.TensorType, error) { return in, nil },
		Forward: func(in, out []cairn.Tensor, _ []byte) error {
			to := out[0].Float32s()
			for i, x := range in[0].Float32s() {
				to[i] = float32(math.Floor(float64(x)))
			}
			return nil
		},
	})
	y := graph.Name(graph.Op("floor", []cairn.Value{graph.Input("x", cairn.F32, 3)}), "y")
	if err := graph.Freeze(cairn.FreezeOptions{Outputs: []cairn.Value{y}}); err != nil {
		log.Fatal(err)
	}
	session := check(cairn.NewSession(check(cairn.NewPlan(graph, device, cairn.PlanOptions{})), device))
	defer session.Close()
	if err := session.Write("x", []float32{1.5, -0.5, 7}); err != nil {
		log.Fatal(err)
	}
	if err := session.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(check(cairn.ReadAll[float32](session, "y")))
	// Output: [1 -1 7]
}

// What is saved goes on elsewhere with the same bits.
func ExampleStepper_Restore() {
	folder := check(os.MkdirTemp("", "cairn"))
	defer os.RemoveAll(folder)
	instance := check(cairn.NewInstance(cairn.InstanceOptions{}))
	device := check(cairn.OpenDevice(instance, "cpu", cairn.DeviceOptions{}))
	plan := check(cairn.NewPlan(line(instance), device, cairn.PlanOptions{}))
	run := func(checkpoint *cairn.Checkpoint, steps int) string {
		session := check(cairn.NewSession(plan, device))
		defer session.Close()
		stepper := check(cairn.NewStepper(session, cairn.StepperOptions{Rate: 0.1}))
		defer stepper.Close()
		err := session.Initialise(1)
		if checkpoint != nil {
			err = stepper.Restore(checkpoint)
		}
		for step := 0; step < steps && err == nil; step++ {
			if err = points(session); err == nil {
				_, err = stepper.Micro(context.Background())
			}
			if err == nil && step == 4 && checkpoint == nil {
				err = stepper.Save(filepath.Join(folder, "step-5"), cairn.SaveOptions{})
			}
		}
		if err != nil {
			log.Fatal(err)
		}
		return check(session.Digest())
	}
	whole := run(nil, 10)
	checkpoint := check(cairn.OpenCheckpoint(instance, folder)) // the newest below it
	defer checkpoint.Close()
	fmt.Println(run(checkpoint, 5) == whole)
	// Output: true
}
