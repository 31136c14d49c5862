package cairn

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/cgo"
	"sync"
	"unsafe"
)

// customOp is an op of the program's as the library calls it.
type customOp struct {
	CustomOp
	hook *hook

	mu         sync.Mutex
	workspaces map[string]int // bytes, by the types of the inputs: a promise is kept
}

const mostRank = 8

// call runs a function of an op, keeps what it failed with, and gives the library a status for it.
func call(user C.uintptr_t, run func(op *customOp) error) C.int32_t {
	var op *customOp
	err := protect(func() error {
		op = cgo.Handle(user).Value().(*customOp)
		return run(op)
	})
	if err == nil {
		return 0
	}
	words, status := told(err)
	// The library asks for the words on this thread, which a callback does not leave.
	kept := words[:C.cairn_go_keep_failure(cstring(words))]
	if op != nil {
		op.hook.failed.Store(failure{err, words, kept})
	}
	return status
}

// told is what an error says, and its status. Its methods are the program's, and may panic, too: a nil pointer in the interface.
func told(err error) (words string, status C.int32_t) {
	failed := protect(func() error {
		words, status = err.Error(), statusOf(err)
		return nil
	})
	if failed == nil {
		return words, status
	}
	words = fmt.Sprintf("an error of type %T, whose own methods fail", err)
	if panicked, ok := failed.(*PanicError); ok {
		if why, ok := panicked.Value.(runtime.Error); ok {
			words += ": " + why.Error()
		}
	}
	return words, noStatus
}

// noStatus is that of an error without one: the library makes INVALID_ARGUMENT of it.
const noStatus = -1

// statusOf is the status that an error carries.
func statusOf(err error) C.int32_t {
	var own *Error
	var status Status
	if errors.As(err, &own) && own.Status != OK {
		return C.int32_t(own.Status)
	}
	if errors.As(err, &status) && status != OK {
		return C.int32_t(status)
	}
	return noStatus
}

func tensors(raw *C.cairn_tensor_t, count int) []Tensor {
	made := make([]Tensor, count)
	for i, t := range unsafe.Slice(raw, count) {
		made[i] = Tensor{TensorType{DType(t.dtype), make([]int, t.rank)}, t.data}
		for d := range made[i].Dims {
			made[i].Dims[d] = int(t.dims[d])
		}
	}
	return made
}

func typesOf(tensors []Tensor) []TensorType {
	made := make([]TensorType, len(tensors))
	for i, t := range tensors {
		made[i] = t.TensorType
	}
	return made
}

// bytes is how much workspace the op wants for inputs of these types.
func (op *customOp) bytes(in []TensorType) (int, error) {
	if op.Workspace == nil {
		return 0, nil
	}
	key := fmt.Sprint(in)
	op.mu.Lock()
	defer op.mu.Unlock()
	if promised, there := op.workspaces[key]; there {
		return promised, nil
	}
	wanted, err := op.Workspace(in)
	if err == nil && wanted < 0 {
		err = invalid("Workspace gave %d bytes; it must be 0 or more", wanted)
	}
	if err == nil {
		op.workspaces[key] = wanted
	}
	return wanted, err
}

func (op *customOp) workspace(in []Tensor, block unsafe.Pointer) ([]byte, error) {
	bytes, err := op.bytes(typesOf(in))
	if err != nil || bytes == 0 || block == nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(block), bytes), nil
}

//export cairnGoShape
func cairnGoShape(user C.uintptr_t, in, out *C.cairn_tensor_t) C.int32_t {
	return call(user, func(op *customOp) error {
		types, err := op.Shape(typesOf(tensors(in, op.Inputs)))
		if err != nil {
			return err
		}
		if len(types) != op.Outputs {
			return invalid("Shape gave %d types; the op has %d outputs", len(types), op.Outputs)
		}
		for i, raw := range unsafe.Slice(out, op.Outputs) {
			if len(types[i].Dims) > mostRank {
				return invalid("Shape gave output %d the rank %d; at most %d is possible", i, len(types[i].Dims), mostRank)
			}
			raw.dtype, raw.rank = C.uint32_t(types[i].DType), C.uint32_t(len(types[i].Dims))
			for d, dim := range types[i].Dims {
				raw.dims[d] = C.int64_t(dim)
			}
			unsafe.Slice(out, op.Outputs)[i] = raw
		}
		return nil
	})
}

//export cairnGoWorkspace
func cairnGoWorkspace(user C.uintptr_t, in *C.cairn_tensor_t) C.int64_t {
	bytes := 0
	status := call(user, func(op *customOp) (err error) {
		bytes, err = op.bytes(typesOf(tensors(in, op.Inputs)))
		return err
	})
	if status != 0 {
		return -1
	}
	return C.int64_t(bytes)
}

//export cairnGoForward
func cairnGoForward(user C.uintptr_t, in, out *C.cairn_tensor_t, block unsafe.Pointer) C.int32_t {
	return call(user, func(op *customOp) error {
		inputs := tensors(in, op.Inputs)
		workspace, err := op.workspace(inputs, block)
		if err != nil {
			return err
		}
		return op.Forward(inputs, tensors(out, op.Outputs), workspace)
	})
}

//export cairnGoBackward
func cairnGoBackward(user C.uintptr_t, in, out *C.cairn_tensor_t, block unsafe.Pointer) C.int32_t {
	return call(user, func(op *customOp) error {
		all := tensors(in, op.Inputs+2*op.Outputs)
		inputs, outputs := all[:op.Inputs], all[op.Inputs:op.Inputs+op.Outputs]
		workspace, err := op.workspace(inputs, block)
		if err != nil {
			return err
		}
		return op.Backward(inputs, outputs, all[op.Inputs+op.Outputs:], tensors(out, op.Inputs), workspace)
	})
}
