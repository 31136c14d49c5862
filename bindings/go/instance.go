package cairn

// #include "shim.h"
import "C"

import (
	"context"
	"runtime/cgo"
	"unsafe"
)

// LogLevel is how much a message of the library matters.
type LogLevel int32

// Levels.
const (
	LogInfo    LogLevel = C.CAIRN_LOG_INFO
	LogWarning LogLevel = C.CAIRN_LOG_WARNING
)

// String is the word for a level: info or warning.
func (l LogLevel) String() string { return word(uint32(l), "info", "warning") }

// Allocator gives the memory for tensors: arenas, the host tier, staging. Its methods are called from any thread, must not
// call this package, and must not return memory of Go. A panic counts as no memory, and so does memory of Go.
type Allocator interface {
	// Allocate returns a block aligned to a power of two, or nil.
	Allocate(bytes, alignment uintptr) unsafe.Pointer
	// Release gives back a block of Allocate, with the same sizes.
	Release(block unsafe.Pointer, bytes, alignment uintptr)
}

// InstanceOptions are the hooks of a program.
type InstanceOptions struct {
	// Log is told what is no error, on the thread of the call that has something to tell. It must not call this package.
	// A panic in it is dropped. nil: nothing is told.
	Log func(level LogLevel, message string)
	// Allocator takes the place of the system's.
	Allocator Allocator
}

// Instance holds a program's hooks. Two instances do not see each other.
type Instance struct{ object }

func (i *Instance) it() *object {
	if i == nil {
		return absent("instance", "NewInstance")
	}
	return &i.object
}

func (i *Instance) c() *C.cairn_instance_t { return (*C.cairn_instance_t)(i.raw) }

// NewInstance makes an instance. Errors: Unsupported (the library is of another major version than its header was).
func NewInstance(options InstanceOptions) (*Instance, error) {
	if err := checkVersion(VersionNumber(), C.CAIRN_VERSION_MAJOR); err != nil {
		return nil, err
	}
	made := &Instance{}
	var log, allocator C.uintptr_t
	var hooks []*hook
	add := func(target any) C.uintptr_t {
		hooks = append(hooks, newHook(target))
		return C.uintptr_t(hooks[len(hooks)-1].number)
	}
	if options.Log != nil {
		log = add(options.Log)
	}
	if options.Allocator != nil {
		allocator = add(options.Allocator)
	}
	err := capture(func(e *C.cairn_error_t) C.cairn_status_t {
		var raw *C.cairn_instance_t
		status := C.cairn_go_instance_create(log, allocator, &raw, e)
		if status == C.CAIRN_STATUS_OK {
			made.init("instance", unsafe.Pointer(raw), releaseInstance, newOrder())
		}
		return status
	}, nil)
	for _, h := range hooks {
		if err == nil {
			made.keep(h)
		}
		h.release()
	}
	if err != nil {
		return nil, err
	}
	return collected(made, (*Instance).Close), nil
}

func releaseInstance(raw unsafe.Pointer) { C.cairn_instance_release((*C.cairn_instance_t)(raw)) }

// Close releases the instance. What was made from it goes on.
func (i *Instance) Close() error { return i.it().close() }

// Inspect tells what a file or checkpoint directory is, as a JSON object.
func (i *Instance) Inspect(path string) ([]byte, error) {
	if err := checkTexts("path", path); err != nil {
		return nil, err
	}
	return textOf(func(out **C.cairn_text_t, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_inspect(i.c(), cstring(path), out, e)
	}, i.it())
}

// textOf is the text that a call makes.
func textOf(call func(**C.cairn_text_t, *C.cairn_error_t) C.cairn_status_t, objects ...*object) ([]byte, error) {
	var text *C.cairn_text_t
	err := do(func(e *C.cairn_error_t) C.cairn_status_t { return call(&text, e) }, objects...)
	if err != nil {
		return nil, err
	}
	return takeText(text), nil
}

// rows asks for rows until there are no more. one fills row number index.
func rows(one func(index C.size_t, e *C.cairn_error_t) C.cairn_status_t, objects ...*object) error {
	return with(context.Background(), func() error {
		for index := C.size_t(0); ; index++ {
			status := one(index, nil)
			if status == C.CAIRN_STATUS_NOT_FOUND {
				return nil
			}
			if status != C.CAIRN_STATUS_OK {
				return capture(func(e *C.cairn_error_t) C.cairn_status_t { return one(index, e) }, nil)
			}
		}
	}, objects...)
}

//export cairnGoLog
func cairnGoLog(user C.uintptr_t, level C.int32_t, message *C.char) {
	text := C.GoString(message)
	_ = protect(func() error {
		cgo.Handle(user).Value().(func(LogLevel, string))(LogLevel(level), text)
		return nil
	})
}

//export cairnGoAllocate
func cairnGoAllocate(user C.uintptr_t, bytes, alignment C.size_t) unsafe.Pointer {
	var block unsafe.Pointer
	_ = protect(func() error {
		given := cgo.Handle(user).Value().(Allocator).Allocate(uintptr(bytes), uintptr(alignment))
		C.cairn_go_look(&given) // panics where cgo would panic below, where it could not be caught: for memory of Go
		block = given
		return nil
	})
	return block
}

//export cairnGoRelease
func cairnGoRelease(user C.uintptr_t, block unsafe.Pointer, bytes, alignment C.size_t) {
	_ = protect(func() error {
		cgo.Handle(user).Value().(Allocator).Release(block, uintptr(bytes), uintptr(alignment))
		return nil
	})
}
