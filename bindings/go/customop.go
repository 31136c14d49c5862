package cairn

// #include "shim.h"
import "C"

import (
	"fmt"
	"unsafe"
)

// TensorType is what a tensor is without its numbers.
type TensorType struct {
	DType DType
	Dims  []int // row-major, slowest first
}

// Elements is how many numbers a tensor has.
func (t TensorType) Elements() int {
	elements := 1
	for _, dim := range t.Dims {
		elements *= dim
	}
	return elements
}

// Tensor is a tensor as a custom op sees it: a view of the library's memory, valid until the function returns.
type Tensor struct {
	TensorType
	data unsafe.Pointer
}

// Present tells whether the tensor is there: operands may be left out, gradients may be zero or not wanted.
func (t Tensor) Present() bool { return t.data != nil }

// Float32s are the numbers of an F32 tensor; nil where it is of another type, or not there.
func (t Tensor) Float32s() []float32 { return view[float32](t, F32) }

// Float64s are the numbers of an F64 tensor; nil where it is of another type, or not there.
func (t Tensor) Float64s() []float64 { return view[float64](t, F64) }

// Int32s are the numbers of an I32 tensor; nil where it is of another type, or not there.
func (t Tensor) Int32s() []int32 { return view[int32](t, I32) }

// Int64s are the numbers of an I64 tensor; nil where it is of another type, or not there.
func (t Tensor) Int64s() []int64 { return view[int64](t, I64) }

// Bytes are the bytes of a tensor of any type; nil where it is not there.
func (t Tensor) Bytes() []byte {
	_, size := t.DType.element()
	if t.data == nil || size == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(t.data), t.Elements()*size)
}

func view[T Element](t Tensor, dtype DType) []T {
	if t.data == nil || t.DType != dtype {
		return nil
	}
	return unsafe.Slice((*T)(t.data), t.Elements())
}

// CustomOp is an op of the program's own. Its functions are called on threads of the library's, several at a time where
// several sessions run, and must not call this package. An error that a function returns fails the run, with the status of
// the error if that is a Status or an *Error, else InvalidArgument; errors.Is and errors.As find it in what the run returns.
// A panic does the same, as a *PanicError; what Go's runtime ends a program for (an exhausted stack, concurrent writes to a map)
// ends it here, too. A run that failed so poisons its session, unless the status is OutOfMemory.
type CustomOp struct {
	Name    string
	Inputs  int // 1 to 4
	Outputs int // 1 to 4
	// Recomputable: Forward is deterministic and has no side effects, so that the planner may run it again in backward.
	Recomputable bool
	// Shape tells the types of the outputs. It is called when the op is added.
	Shape func(in []TensorType) ([]TensorType, error)
	// Workspace tells how many bytes Forward and Backward want besides the tensors; nil: none. The first answer for each
	// combination of types counts.
	Workspace func(in []TensorType) (int, error)
	// Forward fills out.
	Forward func(in, out []Tensor, workspace []byte) error
	// Backward fills the gradients of the inputs, those that are Present. Gradients of outputs that are not Present are zero.
	// nil: the op has no gradient.
	Backward func(in, out, outGradients, inGradients []Tensor, workspace []byte) error
}

// AddOp makes an op of the program's own known by its name in this graph; Op adds it. The functions are kept as long as the
// graph and every plan, session and stepper made from it.
func (g *Graph) AddOp(op CustomOp) {
	g.attempt(func() error {
		if err := op.check(); err != nil {
			return err
		}
		made := &customOp{CustomOp: op, workspaces: map[string]int{}}
		made.hook = newHook(made)
		made.hook.mention = fmt.Sprintf("custom op '%s'", op.Name)
		defer made.hook.release()
		err := capture(func(e *C.cairn_error_t) C.cairn_status_t {
			return C.cairn_go_custom_op(g.c(), cstring(op.Name), C.uint32_t(op.Inputs), C.uint32_t(op.Outputs),
				flag(op.Recomputable), flag(op.Workspace != nil), flag(op.Backward != nil), C.uintptr_t(made.hook.number), e)
		}, nil)
		if err == nil {
			g.keep(made.hook)
		}
		return err
	})
}

func (op *CustomOp) check() error {
	if err := checkTexts("name", op.Name); err != nil {
		return err
	}
	if op.Shape == nil || op.Forward == nil {
		return invalid("custom op '%s' has no %s; Shape and Forward are needed", op.Name,
			map[bool]string{true: "Shape", false: "Forward"}[op.Shape == nil])
	}
	if op.Inputs < 1 || op.Inputs > 4 || op.Outputs < 1 || op.Outputs > 4 {
		return invalid("custom op '%s' has %d inputs and %d outputs; 1 to 4 of each are possible", op.Name, op.Inputs, op.Outputs)
	}
	return nil
}
