package cairn

// #include "shim.h"
import "C"

import (
	"context"
	"unsafe"
)

// Stepper trains a session: micro-batches, accumulation, the optimizer's update. Gradients are sums over the effective batch,
// divided once by its total weight.
type Stepper struct {
	object
	session *C.cairn_session_t // retained, so that a context can cancel it when the Session is closed
}

func (s *Stepper) it() *object {
	if s == nil {
		return absent("stepper", "NewStepper")
	}
	return &s.object
}

func (s *Stepper) c() *C.cairn_stepper_t { return (*C.cairn_stepper_t)(s.raw) }

// NewStepper makes a controller over a session whose graph trains; it keeps what it needs of the session. Errors: WrongState (the
// graph has no loss, the plan no optimizer).
func NewStepper(session *Session, options StepperOptions) (*Stepper, error) {
	made := &Stepper{}
	err := with(context.Background(), func() error {
		a := &arena{}
		defer a.free()
		raw, err := options.raw(a)
		if err != nil {
			return err
		}
		return capture(func(e *C.cairn_error_t) C.cairn_status_t {
			var out *C.cairn_stepper_t
			status := C.cairn_stepper_create(session.c(), &raw, &out, e)
			if status == C.CAIRN_STATUS_OK {
				made.session = session.c()
				C.cairn_session_retain(made.session)
				made.init("stepper", unsafe.Pointer(out), releaseStepper(made.session), session.order, &session.object)
			}
			return status
		}, session.hooks)
	}, session.it())
	if err != nil {
		return nil, err
	}
	return collected(made, (*Stepper).Close), nil
}

func releaseStepper(session *C.cairn_session_t) func(unsafe.Pointer) {
	return func(raw unsafe.Pointer) {
		C.cairn_stepper_release((*C.cairn_stepper_t)(raw))
		C.cairn_session_release(session)
	}
}

// Close releases the stepper.
func (s *Stepper) Close() error { return s.it().close() }

// Micro runs one micro-batch on the inputs written to the session; the last of an effective batch updates the parameters. A batch
// whose loss or gradients are not finite is no error but an outcome.
//
// When the context ends, the micro-batch ends at the next op with Cancelled: the effective batch is discarded, parameters and
// optimizer state are as before, and the session is usable. An update that has begun is finished. With a context that has ended
// before, nothing runs and nothing is discarded.
//
// Other errors: DeviceLost; IO (a disk tier that failed); OutOfMemory (the message says whether the effective batch is discarded
// or the session is lost); NonFinite (plans with FuseUpdate: restore a checkpoint).
func (s *Stepper) Micro(ctx context.Context) (StepReport, error) {
	return s.micro(ctx, func(report *C.cairn_step_report_t, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_stepper_micro(s.c(), report, e)
	})
}

// MicroOn is Micro by another session on the stepper's store (NewSessionSet): its inputs, its length.
func (s *Stepper) MicroOn(ctx context.Context, session *Session) (StepReport, error) {
	return s.micro(ctx, func(report *C.cairn_step_report_t, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_stepper_micro_on(s.c(), session.c(), report, e)
	}, session.it())
}

type stepCall func(*C.cairn_step_report_t, *C.cairn_error_t) C.cairn_status_t

func (s *Stepper) micro(ctx context.Context, run stepCall, more ...*object) (StepReport, error) {
	var report StepReport
	err := with(ctx, func() error {
		raw := C.cairn_go_step_report()
		call := func(e *C.cairn_error_t) C.cairn_status_t { return run(&raw, e) }
		late, err := cancellable(ctx, s.session, call, s.hooks)
		goesOn := raw.outcome == C.CAIRN_STEP_ACCUMULATED || raw.outcome == C.CAIRN_STEP_GATHERED
		if late && run(nil, nil) == C.CAIRN_STATUS_CANCELLED && err == nil && goesOn {
			// Using the cancel up discards what is accumulated, as any cancel does.
			err = stopped(ctx, "cancelled at the end of a micro-batch; the effective batch is discarded")
		}
		if err == nil {
			report = reportOf(&raw)
		}
		return err
	}, append([]*object{s.it()}, more...)...)
	return report, err
}

// Apply ends the effective batch early, with the denominator it has: the remainder of an epoch. Errors: WrongState (nothing is
// accumulated).
func (s *Stepper) Apply() (StepReport, error) {
	return s.reported(func(report *C.cairn_step_report_t, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_stepper_apply(s.c(), report, e)
	})
}

// Report tells where the stepper stands without running anything: Step, Micro, SkippedSteps, StepLoss, StepWeight.
func (s *Stepper) Report() (StepReport, error) {
	return s.reported(func(report *C.cairn_step_report_t, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_stepper_report(s.c(), report, e)
	})
}

func (s *Stepper) reported(call stepCall) (StepReport, error) {
	raw := C.cairn_go_step_report()
	err := do(func(e *C.cairn_error_t) C.cairn_status_t { return call(&raw, e) }, s.it())
	if err != nil {
		return StepReport{}, err
	}
	return reportOf(&raw), nil
}

// Discard drops what was accumulated.
func (s *Stepper) Discard() error {
	return do(func(e *C.cairn_error_t) C.cairn_status_t { return C.cairn_stepper_discard(s.c(), e) }, s.it())
}

// Configure changes the options of later steps; Seed is kept. Errors: WrongState (in the middle of an effective batch).
func (s *Stepper) Configure(options StepperOptions) error {
	return with(context.Background(), func() error {
		a := &arena{}
		defer a.free()
		raw, err := options.raw(a)
		if err != nil {
			return err
		}
		return capture(func(e *C.cairn_error_t) C.cairn_status_t { return C.cairn_stepper_configure(s.c(), &raw, e) }, nil)
	}, s.it())
}

// Set changes one hyper-parameter of later steps. Errors: WrongState (in the middle of an effective batch).
func (s *Stepper) Set(hyper Hyper) error {
	return with(context.Background(), func() error {
		a := &arena{}
		defer a.free()
		group, name := hyper.group(a), a.text(hyper.Name)
		if a.err != nil {
			return a.err
		}
		return capture(func(e *C.cairn_error_t) C.cairn_status_t {
			return C.cairn_stepper_set(s.c(), group, name, C.double(hyper.Value), e)
		}, nil)
	}, s.it())
}

// Get is a hyper-parameter as it is now, of a group; "": of the parameters that no group names.
func (s *Stepper) Get(group, name string) (float64, error) {
	if err := checkTexts("name", group, name); err != nil {
		return 0, err
	}
	var value C.double
	err := do(func(e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_stepper_get(s.c(), optional(group), cstring(name), &value, e)
	}, s.it())
	return float64(value), err
}
