package cairn

// #include "shim.h"
import "C"

import (
	"context"
	"unsafe"
)

// Plan decides every byte of a graph on a device before anything runs. It is immutable.
type Plan struct {
	object
}

func (p *Plan) it() *object {
	if p == nil {
		return absent("plan", "NewPlan")
	}
	return &p.object
}

func (p *Plan) c() *C.cairn_plan_t { return (*C.cairn_plan_t)(p.raw) }

// Program is one of several graphs on the same parameters.
type Program struct {
	Name  string // for messages; unique
	Graph *Graph
}

// NewPlan plans a frozen graph on a device. Nothing runs, nothing is allocated there. Errors: OverBudget (the fault names the
// smallest budget that does), Unsupported (an op without a gradient, a precision that the device has not), WrongState (not
// frozen).
func NewPlan(graph *Graph, device *Device, options PlanOptions) (*Plan, error) {
	plans, err := makePlans([]Program{{Graph: graph}}, device, options,
		func(options *C.cairn_plan_options_t, _ []C.cairn_program_t, out []*C.cairn_plan_t, e *C.cairn_error_t) C.cairn_status_t {
			return C.cairn_plan_create(graph.c(), device.c(), options, &out[0], e)
		})
	if err != nil {
		return nil, err
	}
	return plans[0], nil
}

// NewPlanSet plans several graphs for one store (NewSessionSet): training at other lengths or batch sizes, evaluation,
// generation. The first has all parameters; the others have some of them, by name. A graph to evaluate with has outputs and no
// loss. The budget holds for each; together they take what the largest takes.
func NewPlanSet(programs []Program, device *Device, options PlanOptions) ([]*Plan, error) {
	if len(programs) == 0 {
		return nil, invalid("no program was given; a set needs one at least")
	}
	return makePlans(programs, device, options,
		func(options *C.cairn_plan_options_t, raw []C.cairn_program_t, out []*C.cairn_plan_t, e *C.cairn_error_t) C.cairn_status_t {
			return C.cairn_plan_create_set(&raw[0], C.size_t(len(raw)), device.c(), options, &out[0], e)
		})
}

type planCall func(*C.cairn_plan_options_t, []C.cairn_program_t, []*C.cairn_plan_t, *C.cairn_error_t) C.cairn_status_t

func makePlans(programs []Program, device *Device, options PlanOptions, call planCall) ([]*Plan, error) {
	objects := []*object{device.it()}
	for _, program := range programs {
		objects = append(objects, program.Graph.it())
	}
	if options.Costs != nil {
		objects = append(objects, options.Costs.it())
	}
	plans := make([]*Plan, len(programs))
	err := with(context.Background(), func() error {
		a := &arena{}
		defer a.free()
		raw, err := options.raw(a)
		if err != nil {
			return err
		}
		names := list[C.cairn_program_t](a, len(programs))
		for i, program := range programs {
			names[i].name, names[i].graph = a.text(program.Name), program.Graph.c()
		}
		if a.err != nil {
			return a.err
		}
		out := list[*C.cairn_plan_t](a, len(programs))
		err = capture(func(e *C.cairn_error_t) C.cairn_status_t { return call(&raw, names, out, e) }, hooksOf(objects))
		if err != nil {
			return err
		}
		for i := range programs {
			plans[i] = collected(&Plan{}, (*Plan).Close)
			plans[i].init("plan", unsafe.Pointer(out[i]), releasePlan, newOrder(), objects...)
		}
		return nil
	}, objects...)
	if err != nil {
		return nil, err
	}
	return plans, nil
}

func releasePlan(raw unsafe.Pointer) { C.cairn_plan_release((*C.cairn_plan_t)(raw)) }

// Close releases the plan. Sessions of it go on.
func (p *Plan) Close() error { return p.it().close() }
