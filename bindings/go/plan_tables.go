package cairn

// #include "shim.h"
import "C"

// Decision is what a plan does with a value.
type Decision uint32

// Decisions.
const (
	DecisionKeep       Decision = C.CAIRN_DECISION_KEEP
	DecisionRecompute  Decision = C.CAIRN_DECISION_RECOMPUTE
	DecisionOffload    Decision = C.CAIRN_DECISION_OFFLOAD
	DecisionPersistent Decision = C.CAIRN_DECISION_PERSISTENT
)

// String is the word for a decision: keep, recompute, offload or persistent.
func (d Decision) String() string {
	return word(uint32(d), "keep", "recompute", "offload", "persistent")
}

// PlanValue is a row of a plan's table of values.
type PlanValue struct {
	Name                string
	Region              string // "" outside
	Reason              string
	Category            string // parameter, gradient, optimizer, packed, input, output, scratch, activation, backward
	Bytes               uint64
	OffsetBytes         int64 // in the device arena, of its first residency; -1: it lives in a tier
	Decision            Decision
	Tier                Tier // with DecisionOffload, and where a persistent value lives
	FirstStep, LastStep int  // of the plan
}

// Values are the rows of the plan's table.
func (p *Plan) Values() ([]PlanValue, error) {
	var found []PlanValue
	err := rows(func(index C.size_t, e *C.cairn_error_t) C.cairn_status_t {
		raw := C.cairn_go_plan_value()
		status := C.cairn_plan_value(p.c(), index, &raw, e)
		if status == C.CAIRN_STATUS_OK {
			found = append(found, PlanValue{
				Name:        C.GoString(raw.name),
				Region:      C.GoString(raw.region),
				Reason:      C.GoString(raw.reason),
				Category:    C.GoString(raw.category),
				Bytes:       uint64(raw.bytes),
				OffsetBytes: int64(raw.offset_bytes),
				Decision:    Decision(raw.decision),
				Tier:        Tier(raw.tier),
				FirstStep:   int(raw.first_step),
				LastStep:    int(raw.last_step),
			})
		}
		return status
	}, p.it())
	return found, err
}

// PlanOp is an op of the graph that was planned, and its precision.
type PlanOp struct {
	Name     string
	Op       string // as Graph.Op took it
	Region   string // "" outside
	AMPClass string // what holds for it; with AMPOff: would hold
	AMPRule  int    // number of the plan's rule that says so, from 0; -1: the class is the op's own
}

// Ops are those of the graph, in the order in which they were added.
func (p *Plan) Ops() ([]PlanOp, error) {
	var found []PlanOp
	err := rows(func(index C.size_t, e *C.cairn_error_t) C.cairn_status_t {
		raw := C.cairn_go_plan_op()
		status := C.cairn_plan_op(p.c(), index, &raw, e)
		if status == C.CAIRN_STATUS_OK {
			found = append(found, PlanOp{C.GoString(raw.name), C.GoString(raw.op), C.GoString(raw.region),
				C.GoString(raw.amp_class), int(raw.amp_rule)})
		}
		return status
	}, p.it())
	return found, err
}

// Rendering is a form of a plan.
type Rendering uint32

// Renderings. Sweep and Report solve the problem under some 20 budgets.
const (
	RenderPlanJSON    Rendering = C.CAIRN_RENDER_PLAN_JSON    // "cairn.plan/1"
	RenderProblemJSON Rendering = C.CAIRN_RENDER_PROBLEM_JSON // "cairn.problem/1"
	RenderHTML        Rendering = C.CAIRN_RENDER_HTML         // one page
	RenderSVG         Rendering = C.CAIRN_RENDER_SVG          // memory over time
	RenderFile        Rendering = C.CAIRN_RENDER_FILE         // a plan file, see Instance.Inspect
	RenderSweep       Rendering = C.CAIRN_RENDER_SWEEP        // the trade-off curve, "cairn.sweep/1"
	RenderReport      Rendering = C.CAIRN_RENDER_REPORT       // the page with that curve
)

// Render is the plan in another form. title: the first line of a page; further lines, "word: text", stand below it.
func (p *Plan) Render(kind Rendering, title string) ([]byte, error) {
	if err := checkTexts("title", title); err != nil {
		return nil, err
	}
	return textOf(func(out **C.cairn_text_t, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_plan_render(p.c(), C.uint32_t(kind), cstring(title), out, e)
	}, p.it())
}

// SolveProblem solves a problem given as JSON ("cairn.problem/1") and renders the plan; budgetBytes 0: the problem's own.
// Errors: OverBudget, CorruptFile.
func SolveProblem(instance *Instance, json []byte, budgetBytes uint64, kind Rendering) ([]byte, error) {
	data := bytesOf("", json)
	return textOf(func(out **C.cairn_text_t, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_problem_solve(instance.c(), (*C.char)(data.first), C.size_t(data.bytes), C.uint64_t(budgetBytes),
			C.uint32_t(kind), out, e)
	}, instance.it())
}
