package cairn_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"cairn"
)

// together runs a function on several goroutines.
func together(count int, run func(number int)) {
	var all sync.WaitGroup
	for i := 0; i < count; i++ {
		all.Add(1)
		go func(number int) {
			defer all.Done()
			run(number)
		}(i)
	}
	all.Wait()
}

// Goroutines that share a session and its stepper wait for each other.
func TestGoroutinesShareASession(t *testing.T) {
	r := newRig(t, cairn.PlanOptions{})
	stepper := r.stepper(t, cairn.StepperOptions{})
	together(4, func(int) {
		for i := 0; i < 20; i++ {
			if _, err := stepper.Micro(context.Background()); err != nil {
				t.Error(err)
			}
			if _, err := cairn.ReadAll[float32](r.session, "first.weight"); err != nil {
				t.Error(err)
			}
			if _, err := r.session.Digest(); err != nil {
				t.Error(err)
			}
			if _, err := r.session.Usage(cairn.TierDevice); err != nil {
				t.Error(err)
			}
			if _, err := r.plan.Summary(); err != nil {
				t.Error(err)
			}
		}
	})
	if report := must(stepper.Report()); report.Step != 80 {
		t.Errorf("%+v", report)
	}
}

// Each has its own, on one device and from one plan; the bits are the same.
func TestGoroutinesWithSessionsOfTheirOwn(t *testing.T) {
	r := newRig(t, cairn.PlanOptions{})
	digests := make([]string, 4)
	together(len(digests), func(number int) {
		session, err := cairn.NewSession(r.plan, r.device)
		if err != nil {
			t.Error(err)
			return
		}
		defer session.Close()
		stepper, err := cairn.NewStepper(session, cairn.StepperOptions{})
		if err == nil {
			err = session.Initialise(5)
		}
		for i := 0; i < 10 && err == nil; i++ {
			feed(t, session, i, rows)
			_, err = stepper.Micro(context.Background())
		}
		if err == nil {
			digests[number], err = session.Digest()
		}
		if err != nil {
			t.Error(err)
		}
	})
	for _, digest := range digests {
		if digest != digests[0] || digest == "" {
			t.Error(digests)
		}
	}
}

// Closing while others call ends in an error there, never in a crash.
func TestCloseDuringCalls(t *testing.T) {
	for round := 0; round < 20; round++ {
		r := newRig(t, cairn.PlanOptions{})
		stepper := r.stepper(t, cairn.StepperOptions{})
		together(4, func(number int) {
			for i := 0; i < 200; i++ {
				var err error
				switch number {
				case 0:
					_, err = stepper.Micro(context.Background())
				case 1:
					_, err = r.session.Usage(cairn.TierDevice)
				case 2:
					r.session.Cancel()
					_, err = r.session.Digest()
				default:
					if i == 100 {
						for _, object := range []closer{r.session, stepper, r.plan, r.graph, r.device} {
							ok(t, object.Close())
						}
					}
				}
				if err != nil && !errors.Is(err, cairn.ErrClosed) && !errors.Is(err, cairn.Cancelled) {
					t.Error(err)
				}
			}
		})
	}
}

func TestGoroutinesShareADataset(t *testing.T) {
	dataset, err := cairn.RandomDataset(newInstance(t), 3, 50, 16)
	closing(t, dataset, err)
	batches := make([][]int32, 8)
	together(len(batches), func(number int) {
		inputs, targets := make([]int32, 64), make([]int32, 64)
		for i := uint64(0); i < 50; i++ {
			if _, err := dataset.Batch(1, i, 4, inputs, targets); err != nil {
				t.Error(err)
			}
		}
		batches[number] = inputs
	})
	for _, batch := range batches {
		for i := range batch {
			if batch[i] != batches[0][i] {
				t.Fatal("other tokens")
			}
		}
	}
}
