package cairn

import (
	"errors"
	"fmt"
	"runtime/cgo"
	"runtime/debug"
	"sync/atomic"
)

// PanicError is a panic in a function that the library called. It is caught there, and the run fails with it.
type PanicError struct {
	Value any    // what was given to panic
	Stack []byte // where
}

// Error is the panic's value as a text.
func (p *PanicError) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Unwrap is the panic's value, if that is an error.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

var errLeft = errors.New("the function left its goroutine (runtime.Goexit, or panic(nil)) and gave no result")

// hook is a function of Go that the library knows by a number, for as long as an object may call it.
type hook struct {
	number  cgo.Handle
	mention string // what messages say where it failed; "" never
	refs    int32
	failed  atomic.Value // the last failure, boxed
}

type failure struct {
	err  error
	said string // what it says
	kept string // of that, what the library's messages have; "" nothing
}

// newHook gives a target a number. The one reference is the caller's.
func newHook(target any) *hook { return &hook{number: cgo.NewHandle(target), refs: 1} }

func (h *hook) retain() { atomic.AddInt32(&h.refs, 1) }

func (h *hook) release() {
	if atomic.AddInt32(&h.refs, -1) == 0 {
		h.number.Delete()
	}
}

func (h *hook) failure() failure {
	last, _ := h.failed.Load().(failure)
	return last
}

// protect calls a function on a goroutine of its own, so that neither a panic nor runtime.Goexit reaches the library's frames.
func protect(call func() error) error {
	result := make(chan error, 1)
	go func() {
		err := errLeft
		defer func() {
			if value := recover(); value != nil {
				err = &PanicError{Value: value, Stack: debug.Stack()}
			}
			result <- err
		}()
		err = call()
	}()
	return <-result
}
