package cairn

// #include "shim.h"
import "C"

import (
	"context"
	"runtime"
	"sort"
	"sync"
	"sync/atomic"
	"unsafe"
)

// order lets calls that must not overlap wait for each other. Its numbers give the sequence in which several are taken.
type order struct {
	number uint64
	taken  chan struct{}
}

var orders uint64

func newOrder() *order {
	return &order{number: atomic.AddUint64(&orders, 1), taken: make(chan struct{}, 1)}
}

// object is a handle of the library. It is freed when it was closed and no call uses it.
type object struct {
	kind  string
	maker string // of one that is not there, nil in the program: what would have made it
	free  func(unsafe.Pointer)
	order *order  // nil: all calls with it may overlap
	hooks []*hook // functions of Go that the handle keeps; read and added to in the object's order

	mu     sync.Mutex
	raw    unsafe.Pointer
	uses   int
	closed bool
}

// init takes a handle over; what its parents keep it keeps, too.
func (o *object) init(kind string, raw unsafe.Pointer, free func(unsafe.Pointer), order *order, parents ...*object) {
	o.kind, o.raw, o.free, o.order = kind, raw, free, order
	for _, parent := range parents {
		for _, h := range parent.hooks {
			o.keep(h)
		}
	}
}

func (o *object) keep(h *hook) {
	for _, kept := range o.hooks {
		if kept == h {
			return
		}
	}
	h.retain()
	o.hooks = append(o.hooks, h)
}

// collected closes an object that nobody refers to any more.
func collected[T any](made *T, close func(*T) error) *T {
	runtime.SetFinalizer(made, func(lost *T) { _ = close(lost) })
	return made
}

// absent stands for a nil pointer.
func absent(kind, maker string) *object { return &object{kind: kind, maker: maker} }

func (o *object) use() error {
	if o.maker != "" {
		return invalid("the %s is nil; %s makes one", o.kind, o.maker)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.raw == nil {
		kind := o.kind
		if kind == "" {
			kind = "object, never made by a function of this package,"
		}
		return &Error{Status: WrongState, Message: "the " + kind + " is closed; make another one", cause: ErrClosed}
	}
	o.uses++
	return nil
}

func (o *object) done() {
	o.mu.Lock()
	o.uses--
	o.release()
}

func (o *object) close() error {
	o.mu.Lock()
	o.closed = true
	o.release()
	return nil
}

// release frees what is closed and unused, and unlocks.
func (o *object) release() {
	raw := o.raw
	if !o.closed || o.uses > 0 || raw == nil {
		o.mu.Unlock()
		return
	}
	o.raw = nil
	hooks := o.hooks
	o.hooks = nil
	o.mu.Unlock()
	o.free(raw)
	for _, h := range hooks {
		h.release()
	}
}

// with runs a function while all objects are there and no other call is made with them. The context ends the waiting alone.
func with(ctx context.Context, run func() error, objects ...*object) error {
	if ctx == nil {
		return invalid("the context is nil; context.Background() is one that never ends")
	}
	for i, o := range objects {
		if err := o.use(); err != nil {
			finish(objects[:i])
			return err
		}
	}
	defer finish(objects)
	held := ordered(objects)
	for i, o := range held {
		select {
		case o.taken <- struct{}{}: // also where the context has ended: whoever runs says so
			continue
		default:
		}
		select {
		case o.taken <- struct{}{}:
		case <-ctx.Done():
			unlock(held[:i])
			return stopped(ctx, "the context ended while another call was waited for; nothing was begun")
		}
	}
	defer unlock(held)
	return run()
}

func finish(objects []*object) {
	for _, o := range objects {
		o.done()
	}
}

func unlock(held []*order) {
	for _, o := range held {
		<-o.taken
	}
}

// ordered are the orders of objects, each once.
func ordered(objects []*object) []*order {
	list := make([]*order, 0, len(objects))
next:
	for _, o := range objects {
		if o.order == nil {
			continue
		}
		for _, there := range list {
			if there == o.order {
				continue next
			}
		}
		list = append(list, o.order)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].number < list[j].number })
	return list
}

// do makes a call of the library with objects that are kept until it returns.
func do(call func(*C.cairn_error_t) C.cairn_status_t, objects ...*object) error {
	return with(context.Background(), func() error { return capture(call, hooksOf(objects)) }, objects...)
}

func hooksOf(objects []*object) []*hook {
	if len(objects) == 1 {
		return objects[0].hooks
	}
	var all []*hook
	for _, o := range objects {
		all = append(all, o.hooks...)
	}
	return all
}

func stopped(ctx context.Context, message string) *Error {
	return &Error{Status: Cancelled, Message: message, cause: ctx.Err()}
}
