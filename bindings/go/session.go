package cairn

// #include "shim.h"
import "C"

import (
	"context"
	"unsafe"
)

// Session holds the memory that a plan names, and runs it. A session, its steppers and all sessions of its store count as one
// object: a call waits until the one before is done. Cancel and Usage never wait.
type Session struct {
	object
}

func (s *Session) it() *object {
	if s == nil {
		return absent("session", "NewSession")
	}
	return &s.object
}

func (s *Session) c() *C.cairn_session_t { return (*C.cairn_session_t)(s.raw) }

// NewSession takes all memory that the plan names, and none later. Errors: OutOfMemory, IO (disk tier).
func NewSession(plan *Plan, device *Device) (*Session, error) {
	sessions, err := makeSessions([]*Plan{plan}, device,
		func(raw []*C.cairn_plan_t, out []*C.cairn_session_t, e *C.cairn_error_t) C.cairn_status_t {
			return C.cairn_session_create(raw[0], device.c(), &out[0], e)
		})
	if err != nil {
		return nil, err
	}
	return sessions[0], nil
}

// NewSessionSet makes sessions of all plans of one NewPlanSet, in its order, on one store: they take memory once, and parameters,
// gradients and optimizer state are the same values in all of them. Inputs and outputs are each session's own.
func NewSessionSet(plans []*Plan, device *Device) ([]*Session, error) {
	if len(plans) == 0 {
		return nil, invalid("no plan was given; a store needs one at least")
	}
	return makeSessions(plans, device,
		func(raw []*C.cairn_plan_t, out []*C.cairn_session_t, e *C.cairn_error_t) C.cairn_status_t {
			return C.cairn_session_create_set(&raw[0], C.size_t(len(raw)), device.c(), &out[0], e)
		})
}

type sessionCall func([]*C.cairn_plan_t, []*C.cairn_session_t, *C.cairn_error_t) C.cairn_status_t

func makeSessions(plans []*Plan, device *Device, call sessionCall) ([]*Session, error) {
	objects := []*object{device.it()}
	for _, plan := range plans {
		objects = append(objects, plan.it())
	}
	sessions := make([]*Session, len(plans))
	err := with(context.Background(), func() error {
		a := &arena{}
		defer a.free()
		raw, out := list[*C.cairn_plan_t](a, len(plans)), list[*C.cairn_session_t](a, len(plans))
		for i, plan := range plans {
			raw[i] = plan.c()
		}
		err := capture(func(e *C.cairn_error_t) C.cairn_status_t { return call(raw, out, e) }, hooksOf(objects))
		if err != nil {
			return err
		}
		store := newOrder()
		for i := range plans {
			sessions[i] = collected(&Session{}, (*Session).Close)
			sessions[i].init("session", unsafe.Pointer(out[i]), releaseSession, store, objects...)
		}
		return nil
	}, objects...)
	if err != nil {
		return nil, err
	}
	return sessions, nil
}

func releaseSession(raw unsafe.Pointer) { C.cairn_session_release((*C.cairn_session_t)(raw)) }

// Close releases the session and, with the last of a store's sessions and steppers, its memory.
func (s *Session) Close() error { return s.it().close() }

// Initialise fills all parameters from their Init; the same numbers on every device.
func (s *Session) Initialise(seed uint64) error {
	return do(func(e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_session_initialise(s.c(), C.uint64_t(seed), e)
	}, s.it())
}

// Write copies an input or parameter in, by name. data is a slice of the value's type (see Element), or of its bytes. Whole
// numbers of embeddings and losses are checked against the vocabulary. Errors: NotFound.
func (s *Session) Write(name string, data any) error {
	return s.transfer(name, data, func(name *C.char, data buffer, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_session_write(s.c(), name, data.first, C.size_t(data.bytes), e)
	})
}

// Read fills data with a value that outlives a run: inputs, parameters, "NAME/gradient", outputs, the loss, by name. data is as
// for Write. Errors: NotFound.
func (s *Session) Read(name string, data any) error {
	return s.transfer(name, data, func(name *C.char, data buffer, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_session_read(s.c(), name, data.first, C.size_t(data.bytes), e)
	})
}

func (s *Session) transfer(name string, data any, call func(*C.char, buffer, *C.cairn_error_t) C.cairn_status_t) error {
	if err := checkTexts("name", name); err != nil {
		return err
	}
	numbers, err := bufferOf(data)
	if err != nil {
		return err
	}
	return with(context.Background(), func() error {
		var value ValueInfo // of a name that is not known, the call itself says what is wrong
		if s.info(cstring(name), &value, nil) == C.CAIRN_STATUS_OK {
			if err := numbers.refuse(value); err != nil {
				return err
			}
		}
		return capture(func(e *C.cairn_error_t) C.cairn_status_t { return call(cstring(name), numbers, e) }, s.hooks)
	}, s.it())
}

// Info tells of a value that Write or Read takes, by name. Errors: NotFound.
func (s *Session) Info(name string) (ValueInfo, error) {
	var info ValueInfo
	if err := checkTexts("name", name); err != nil {
		return info, err
	}
	err := do(func(e *C.cairn_error_t) C.cairn_status_t { return s.info(cstring(name), &info, e) }, s.it())
	return info, err
}

func (s *Session) info(name *C.char, out *ValueInfo, e *C.cairn_error_t) C.cairn_status_t {
	raw := C.cairn_go_value_info()
	status := C.cairn_session_value_info(s.c(), name, &raw, e)
	if status == C.CAIRN_STATUS_OK {
		*out = valueInfo(&raw)
	}
	return status
}

// ReadAll reads a value that outlives a run into a new slice of its size.
func ReadAll[T Element](s *Session, name string) ([]T, error) {
	info, err := s.Info(name)
	if err != nil {
		return nil, err
	}
	var one T
	data := make([]T, info.Bytes/uint64(unsafe.Sizeof(one)))
	return data, s.Read(name, data)
}

// Digest is XXH3-128 over all parameters in the graph's order, as 32 hex digits.
func (s *Session) Digest() (string, error) {
	var hex [33]C.char
	err := do(func(e *C.cairn_error_t) C.cairn_status_t { return C.cairn_session_digest(s.c(), &hex[0], e) }, s.it())
	return C.GoString(&hex[0]), err
}

// BaseDigest is the same over the frozen parameters alone, as they are stored. Training never changes it.
func (s *Session) BaseDigest() (string, error) {
	var hex [33]C.char
	err := do(func(e *C.cairn_error_t) C.cairn_status_t { return C.cairn_session_base_digest(s.c(), &hex[0], e) }, s.it())
	return C.GoString(&hex[0]), err
}

// Run runs once on the inputs written: forward of a graph without a loss; forward and backward of a plan with NoOptimizer. When
// the context ends, the run ends at the next op with Cancelled, and the session is usable. Errors: Cancelled, WrongState (the plan
// has an optimizer: use a stepper), DeviceLost.
func (s *Session) Run(ctx context.Context) error {
	return with(ctx, func() error {
		call := func(e *C.cairn_error_t) C.cairn_status_t { return C.cairn_session_run(s.c(), e) }
		late, err := cancellable(ctx, s.c(), call, s.hooks)
		if late {
			_ = call(nil) // uses the cancel up: it ends before it begins
		}
		return err
	}, s.it())
}

// Cancel makes the run under way, or else the next one, of the session's store end with Cancelled at the next op. A context does
// this for one run alone. It may be called at any time.
func (s *Session) Cancel() {
	if s.it().use() != nil {
		return
	}
	defer s.done()
	C.cairn_session_cancel(s.c())
}
