package cairn_test

import (
	"context"
	"errors"
	"math/rand"
	"testing"
	"time"

	"cairn"
)

// slow is a sine that tells when it begins, and takes a while.
func slow(began chan<- bool, pause time.Duration) cairn.CustomOp {
	op := sine()
	forward := op.Forward
	op.Forward = func(in, out []cairn.Tensor, workspace []byte) error {
		select {
		case began <- true:
		default:
		}
		time.Sleep(pause)
		return forward(in, out, workspace)
	}
	return op
}

func stepperOf(t *testing.T, op cairn.CustomOp, options cairn.StepperOptions) (*cairn.Session, *cairn.Stepper) {
	t.Helper()
	instance := newInstance(t)
	device := openCPU(t, instance)
	plan, err := cairn.NewPlan(sineGraph(t, instance, op), device, cairn.PlanOptions{})
	closing(t, plan, err)
	session, err := cairn.NewSession(plan, device)
	closing(t, session, err)
	ok(t, session.Initialise(1))
	ok(t, session.Write("x", []float32{0, 1, 2, 3, 4, 5, 6, 7}))
	stepper, err := cairn.NewStepper(session, options)
	return session, closing(t, stepper, err)
}

// eventually repeats what a busy machine may do too late; the last try counts.
func eventually(t *testing.T, try func() bool) {
	t.Helper()
	for i := 0; i < 20; i++ {
		if try() {
			return
		}
	}
	t.Error("20 tries, and nothing was cancelled")
}

func TestContextCancelsAStep(t *testing.T) {
	began := make(chan bool, 1)
	session, stepper := stepperOf(t, slow(began, 50*time.Millisecond), cairn.StepperOptions{})
	eventually(t, func() bool {
		before, step := must(session.Digest()), must(stepper.Report()).Step
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			<-began
			if _, err := session.Usage(cairn.TierDevice); err != nil { // allowed while it runs
				t.Error(err)
			}
			cancel()
		}()
		_, err := stepper.Micro(ctx)
		if err == nil {
			return false
		}
		if !errors.Is(err, cairn.Cancelled) || !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if after := must(session.Digest()); after != before {
			t.Error("a cancelled step changed parameters")
		}
		report := must(stepper.Micro(context.Background()))
		if report.Outcome != cairn.Applied || report.Step != step+1 {
			t.Errorf("%+v", report)
		}
		return true
	})
}

func TestDeadlineCancelsARun(t *testing.T) {
	session := sineSession(t, slow(nil, 50*time.Millisecond))
	eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		err := session.Run(ctx)
		if err != nil && (!errors.Is(err, cairn.Cancelled) || !errors.Is(err, context.DeadlineExceeded)) {
			t.Fatal(err)
		}
		ok(t, session.Run(context.Background()))
		return err != nil
	})
}

func TestContextThatHasEndedRunsNothing(t *testing.T) {
	_, stepper := stepperOf(t, sine(), cairn.StepperOptions{MicroSteps: 2})
	must(stepper.Micro(context.Background()))
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := stepper.Micro(ended); !errors.Is(err, cairn.Cancelled) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if report := must(stepper.Report()); report.Micro != 1 {
		t.Errorf("what was accumulated is gone: %+v", report)
	}
	if report := must(stepper.Micro(context.Background())); report.Outcome != cairn.Applied {
		t.Errorf("%+v", report)
	}
}

// A cancel at any moment stops its own step or none: never the next one.
func TestCancelStopsNoOtherStep(t *testing.T) {
	rounds := 300
	if long {
		rounds = 100_000
	}
	const micros = 3
	r := newRig(t, cairn.PlanOptions{})
	stepper := r.stepper(t, cairn.StepperOptions{MicroSteps: micros})
	random := rand.New(rand.NewSource(1))
	micro, cancelled := 0, 0
	start := time.Now()
	must(stepper.Micro(context.Background()))
	ok(t, stepper.Discard())
	usual := time.Since(start)
	for round := 0; round < rounds; round++ {
		ctx, cancel := context.WithCancel(context.Background())
		pause := time.Duration(random.Int63n(int64(2 * usual)))
		go func() {
			for began := time.Now(); time.Since(began) < pause; {
			}
			cancel()
		}()
		report, err := stepper.Micro(ctx)
		switch {
		case err == nil:
			micro = (micro + 1) % micros
			if report.Micro != micro {
				t.Fatalf("round %d: %d micro-batches, not %d", round, report.Micro, micro)
			}
		case errors.Is(err, cairn.Cancelled) && errors.Is(err, context.Canceled):
			cancelled++
			if state := must(stepper.Report()); state.Micro == 0 {
				micro = 0
			} else if state.Micro != micro { // it had ended before the run began
				t.Fatalf("round %d: %d micro-batches, not %d", round, state.Micro, micro)
			}
		default:
			t.Fatal(err)
		}
		if report, err = stepper.Micro(context.Background()); err != nil {
			t.Fatalf("round %d: the next step: %v", round, err)
		}
		if micro = (micro + 1) % micros; report.Micro != micro {
			t.Fatalf("round %d: %d micro-batches, not %d", round, report.Micro, micro)
		}
		cancel()
	}
	t.Logf("%d of %d were cancelled", cancelled, rounds)
}

// The same of runs without a stepper.
func TestCancelStopsNoOtherRun(t *testing.T) {
	session := sineSession(t, sine())
	random := rand.New(rand.NewSource(2))
	for round := 0; round < 300; round++ {
		ctx, cancel := context.WithCancel(context.Background())
		pause := time.Duration(random.Intn(100_000))
		go func() {
			for began := time.Now(); time.Since(began) < pause; {
			}
			cancel()
		}()
		if err := session.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if err := session.Run(context.Background()); err != nil {
			t.Fatalf("round %d: the next run: %v", round, err)
		}
		cancel()
	}
}

// One that waits for nobody never says that another call was waited for.
func TestEndedContextIsSaidToHaveEnded(t *testing.T) {
	_, stepper := stepperOf(t, sine(), cairn.StepperOptions{})
	ended, end := context.WithCancel(context.Background())
	end()
	for i := 0; i < 50; i++ {
		_, err := stepper.Micro(ended)
		contains(t, err, "the context had ended before the run began; nothing was changed")
	}
}
