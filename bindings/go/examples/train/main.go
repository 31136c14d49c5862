// Command train is a complete training run: a small transformer learns to count, inside 70 % of the memory that keeping everything
// takes. It is saved half way, loaded into a new session, and goes on as if nothing had happened; then it counts by itself.
//
//	train [FOLDER for the checkpoint]
//
// An interrupt (Ctrl-C) ends it between two ops, with parameters as they were.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"

	"cairn"
)

const steps = 60

func main() {
	log.SetFlags(0)
	folder := "."
	if len(os.Args) > 1 {
		folder = os.Args[1]
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, filepath.Join(folder, "example-train-go")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, directory string) error {
	instance, err := cairn.NewInstance(cairn.InstanceOptions{})
	if err != nil {
		return err
	}
	defer instance.Close()
	device, err := cairn.OpenDevice(instance, "cpu", cairn.DeviceOptions{})
	if err != nil {
		return err
	}
	defer device.Close()
	graph, err := transformer(instance, batch, true)
	if err != nil {
		return err
	}
	defer graph.Close()
	plan, err := cairn.NewPlan(graph, device, cairn.PlanOptions{BudgetShare: 0.7})
	if err != nil {
		return err
	}
	defer plan.Close()
	summary, err := plan.Summary()
	if err != nil {
		return err
	}
	fmt.Printf("planned: %.2f of %.2f MB, keeping %.2f MB of activations and recomputing %.2f MB\n",
		float64(summary.PeakBytes[cairn.TierDevice])/1e6, float64(summary.BudgetBytes)/1e6, float64(summary.KeepBytes)/1e6,
		float64(summary.RecomputeBytes)/1e6)

	if err := os.MkdirAll(directory, 0o777); err != nil {
		return err
	}
	half, end := filepath.Join(directory, "step-30"), filepath.Join(directory, "step-60")
	whole, err := trainer(ctx, plan, device, nil, half)
	if err != nil {
		return err
	}
	fmt.Println("again, from the checkpoint")
	checkpoint, err := cairn.OpenCheckpoint(instance, half)
	if err != nil {
		return err
	}
	defer checkpoint.Close()
	resumed, err := trainer(ctx, plan, device, checkpoint, end)
	if err != nil {
		return err
	}
	if whole != resumed {
		return fmt.Errorf("parameters %s, and resumed %s: NOT the same", whole, resumed)
	}
	fmt.Printf("parameters %s, the same to the bit\n", whole)
	return generate(ctx, instance, device, end)
}

// trainer trains to the end, from a checkpoint or else from the beginning. What it saves, half way or at the end, is `to`. It
// returns the parameters' digest.
func trainer(ctx context.Context, plan *cairn.Plan, device *cairn.Device, from *cairn.Checkpoint, to string) (string, error) {
	session, err := cairn.NewSession(plan, device)
	if err != nil {
		return "", err
	}
	defer session.Close()
	stepper, err := cairn.NewStepper(session, cairn.StepperOptions{
		Rate: 1e-2, WarmupSteps: 5, TotalSteps: steps, Schedules: []cairn.Schedule{{Name: "cosine"}},
	})
	if err != nil {
		return "", err
	}
	defer stepper.Close()
	if from == nil {
		err = session.Initialise(42)
	} else {
		err = stepper.Restore(from)
	}
	if err != nil {
		return "", err
	}
	tokens, targets := make([]int32, batch*length), make([]int32, batch*length)
	report, err := stepper.Report()
	for err == nil && report.Step < steps {
		fill(uint32(report.Step), tokens, targets)
		if err = session.Write("tokens", tokens); err != nil {
			break
		}
		if err = session.Write("targets", targets); err != nil {
			break
		}
		if report, err = stepper.Micro(ctx); err != nil {
			break
		}
		if report.Step%10 == 0 {
			fmt.Printf("step %2d: loss %.4f, gradient norm %.3f, rate %.4f, %.1f ms\n", report.Step, report.Loss,
				report.GradientNorm, report.Rate, 1e3*(report.Seconds+report.OptimizerSeconds))
		}
		if from == nil && report.Step == steps/2 {
			err = stepper.Save(to, cairn.SaveOptions{})
		}
	}
	if err == nil && from != nil {
		err = stepper.Save(to, cairn.SaveOptions{Metadata: map[string]string{"task": "counting"}})
	}
	if err != nil {
		return "", err
	}
	return session.Digest()
}
