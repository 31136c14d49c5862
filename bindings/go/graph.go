package cairn

// #include "shim.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"
)

// Value is a value of one graph.
type Value uint32

// None is no value: an operand left out, or what a failed call returns.
const None Value = 0

// Graph is a model, built value by value, frozen once, and then immutable.
//
// Calls that build return values and no error: after the first one that fails, later ones do nothing and return None. Err
// tells what it was and where it was called, and Freeze returns it.
type Graph struct {
	object
	problem error // the first failure of a call that builds
}

func (g *Graph) it() *object {
	if g == nil {
		return absent("graph", "NewGraph")
	}
	return &g.object
}

func (g *Graph) c() *C.cairn_graph_t { return (*C.cairn_graph_t)(g.raw) }

// NewGraph makes an empty graph.
func NewGraph(instance *Instance) (*Graph, error) {
	return makeGraph(instance, func(raw **C.cairn_graph_t, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_graph_create(instance.c(), raw, e)
	})
}

// LoadGraph reads a graph that Save wrote; it is frozen.
func LoadGraph(instance *Instance, path string) (*Graph, error) {
	if err := checkTexts("path", path); err != nil {
		return nil, err
	}
	return makeGraph(instance, func(raw **C.cairn_graph_t, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_graph_load(instance.c(), cstring(path), raw, e)
	})
}

func makeGraph(instance *Instance, call func(**C.cairn_graph_t, *C.cairn_error_t) C.cairn_status_t) (*Graph, error) {
	made := &Graph{}
	err := do(func(e *C.cairn_error_t) C.cairn_status_t {
		var raw *C.cairn_graph_t
		status := call(&raw, e)
		if status == C.CAIRN_STATUS_OK {
			made.init("graph", unsafe.Pointer(raw), releaseGraph, newOrder(), &instance.object)
		}
		return status
	}, instance.it())
	if err != nil {
		return nil, err
	}
	return collected(made, (*Graph).Close), nil
}

func releaseGraph(raw unsafe.Pointer) { C.cairn_graph_release((*C.cairn_graph_t)(raw)) }

// Close releases the graph. Plans made from it go on.
func (g *Graph) Close() error { return g.it().close() }

// build makes a call that builds, unless one has failed.
func (g *Graph) build(call func(*C.cairn_error_t) C.cairn_status_t) bool {
	return g.attempt(func() error { return capture(call, g.hooks) })
}

func (g *Graph) attempt(run func() error) bool {
	built := false
	err := with(context.Background(), func() error {
		if g.problem != nil {
			return nil
		}
		g.problem = placed(run())
		built = g.problem == nil
		return nil
	}, g.it())
	if err != nil && g != nil {
		g.note(err)
	}
	return built
}

// note keeps the failure of a call that could not even begin.
func (g *Graph) note(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.problem == nil {
		g.problem = placed(err)
	}
}

// placed adds the line outside this package that made the call.
func placed(err error) error {
	var own *Error
	if !errors.As(err, &own) || own.Where != "" {
		return err
	}
	var callers [32]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, "cairn.") && !strings.HasPrefix(frame.Function, "runtime.") {
			own.Where = fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line)
			return err
		}
		if !more {
			return err
		}
	}
}

// Err is the first failure of the calls that build, or nil.
func (g *Graph) Err() error { return g.take(false) }

// ClearErr returns that failure and forgets it. The graph is as it was before the call that failed, and can be built on.
func (g *Graph) ClearErr() error { return g.take(true) }

func (g *Graph) take(clear bool) error {
	var found error
	err := with(context.Background(), func() error {
		found = g.problem
		if clear {
			g.problem = nil
		}
		return nil
	}, g.it())
	if err != nil {
		return err
	}
	return found
}

// Input adds a value that the program writes before each run.
func (g *Graph) Input(name string, dtype DType, dims ...int) Value {
	var value C.cairn_value_t
	g.attempt(func() error {
		if err := checkTexts("name", name); err != nil {
			return err
		}
		return capture(func(e *C.cairn_error_t) C.cairn_status_t {
			return C.cairn_go_graph_input(g.c(), cstring(name), &dimsOf(dims)[0], C.uint32_t(len(dims)), C.uint32_t(dtype),
				&value, e)
		}, nil)
	})
	return Value(value)
}

// Init is how a parameter starts; the zero Init is zeros.
type Init struct {
	kind  C.uint32_t
	scale float64
}

// Constant starts a parameter with one number everywhere.
func Constant(number float64) Init { return Init{C.CAIRN_INIT_CONSTANT, number} }

// Normal starts a parameter with normally distributed numbers.
func Normal(deviation float64) Init { return Init{C.CAIRN_INIT_NORMAL, deviation} }

// Uniform starts a parameter with numbers of [-bound, bound).
func Uniform(bound float64) Init { return Init{C.CAIRN_INIT_UNIFORM, bound} }

// TruncatedNormal starts a parameter with normally distributed numbers, cut off at two deviations.
func TruncatedNormal(deviation float64) Init { return Init{C.CAIRN_INIT_TRUNCATED_NORMAL, deviation} }

// Orthogonal starts a parameter with orthonormal rows, or columns where these are fewer, times a factor.
func Orthogonal(factor float64) Init { return Init{C.CAIRN_INIT_ORTHOGONAL, factor} }

// ParameterOptions are what a parameter has besides its shape.
type ParameterOptions struct {
	Init    Init
	DType   DType // F32 or F64
	Frozen  bool  // no gradient, no optimizer state
	NoDecay bool  // weight decay does not apply: biases, norms
}

// Parameter adds a trainable tensor. Using it in several ops ties them.
func (g *Graph) Parameter(name string, options ParameterOptions, dims ...int) Value {
	var value C.cairn_value_t
	g.attempt(func() error {
		if err := checkTexts("name", name); err != nil {
			return err
		}
		return capture(func(e *C.cairn_error_t) C.cairn_status_t {
			return C.cairn_go_graph_parameter(g.c(), cstring(name), &dimsOf(dims)[0], C.uint32_t(len(dims)),
				C.uint32_t(options.DType), options.Init.kind, C.double(options.Init.scale), flag(options.Frozen),
				flag(options.NoDecay), &value, e)
		}, nil)
	})
	return Value(value)
}

// Statistic adds a value that applied steps move (op running_mean) and checkpoints hold. It begins as fill; dtype: F32 or F64.
func (g *Graph) Statistic(name string, dtype DType, fill float64, dims ...int) Value {
	return g.resident(name, dtype, KindStatistic, fill, dims)
}

// Cache adds a value that runs change (op append) and no checkpoint holds. It begins as fill.
func (g *Graph) Cache(name string, dtype DType, fill float64, dims ...int) Value {
	return g.resident(name, dtype, KindCache, fill, dims)
}

func (g *Graph) resident(name string, dtype DType, kind ValueKind, fill float64, dims []int) Value {
	var value C.cairn_value_t
	g.attempt(func() error {
		if err := checkTexts("name", name); err != nil {
			return err
		}
		return capture(func(e *C.cairn_error_t) C.cairn_status_t {
			return C.cairn_go_graph_resident(g.c(), cstring(name), &dimsOf(dims)[0], C.uint32_t(len(dims)), C.uint32_t(dtype),
				C.uint32_t(kind), C.double(fill), &value, e)
		}, nil)
	})
	return Value(value)
}

// Name gives a value a name of its own, unique in the graph, and returns the value.
func (g *Graph) Name(value Value, name string) Value {
	g.attempt(func() error {
		if err := checkTexts("name", name); err != nil {
			return err
		}
		return capture(func(e *C.cairn_error_t) C.cairn_status_t {
			return C.cairn_graph_name(g.c(), C.cairn_value_t(value), cstring(name), e)
		}, nil)
	})
	return value
}

// FreezeOptions are what a graph is for.
type FreezeOptions struct {
	Loss    Value   // None: the graph only runs forward. A loss op's sum, or any scalar
	Weight  Value   // its denominator; None: the loss op's own weight, or 1 per micro-batch
	Outputs []Value // values that the program reads after a run
}

// Freeze ends building. It returns what a call that built failed with, if one did.
func (g *Graph) Freeze(options FreezeOptions) error {
	outputs := append([]Value{}, options.Outputs...)
	outputs = append(outputs, None) // its address is taken
	frozen := false
	err := with(context.Background(), func() error {
		if g.problem != nil {
			return g.problem
		}
		err := capture(func(e *C.cairn_error_t) C.cairn_status_t {
			return C.cairn_go_graph_freeze(g.c(), C.cairn_value_t(options.Loss), C.cairn_value_t(options.Weight),
				(*C.cairn_value_t)(unsafe.Pointer(&outputs[0])), C.size_t(len(options.Outputs)), e)
		}, g.hooks)
		frozen = err == nil
		return err
	}, g.it())
	if !frozen {
		return placed(err)
	}
	return nil
}

// Save writes a frozen graph to a file of its own, which has the names of custom ops. Errors: IO.
func (g *Graph) Save(path string) error {
	if err := checkTexts("path", path); err != nil {
		return err
	}
	return do(func(e *C.cairn_error_t) C.cairn_status_t { return C.cairn_graph_save(g.c(), cstring(path), e) }, g.it())
}
