package cairn

// #include "shim.h"
import "C"

// AdapterKind is how an adapter's matrices add to a weight, and how they begin.
type AdapterKind uint32

// W + alpha / rank B A; the same divided by the root of the rank; with a learnt length for each row; begun by the weight itself.
const (
	Lora   AdapterKind = C.CAIRN_ADAPTER_LORA
	Rslora AdapterKind = C.CAIRN_ADAPTER_RSLORA
	Dora   AdapterKind = C.CAIRN_ADAPTER_DORA
	Pissa  AdapterKind = C.CAIRN_ADAPTER_PISSA
)

// Adapter is a rule: which weights are frozen and get small matrices that learn. Patterns name modules (weights without ".weight"),
// with commas between them.
type Adapter struct {
	Kind    AdapterKind
	Rank    int     // 0: 8
	Alpha   float64 // 0: Rank
	Dropout float64 // of the adapter's input
	Targets string  // "": every linear layer and experts
	Except  string  // gets none
	Saved   string  // trains as it is
	Ranks   string  // "PATTERN=8,..."
	Alphas  string  // "PATTERN=16,..."
}

// Adapt makes ops that are added from here on, and whose weights the rule names, ops with an adapter. Freezing the graph freezes
// all other parameters.
func (g *Graph) Adapt(rule Adapter) {
	if rule.Rank == 0 {
		rule.Rank = 8
	}
	g.attempt(func() error {
		texts := []string{rule.Targets, rule.Except, rule.Saved, rule.Ranks, rule.Alphas}
		if err := checkTexts("pattern", texts...); err != nil {
			return err
		}
		return capture(func(e *C.cairn_error_t) C.cairn_status_t {
			return C.cairn_go_graph_adapt(g.c(), C.uint32_t(rule.Kind), C.uint32_t(rule.Rank), C.double(rule.Alpha),
				C.double(rule.Dropout), cstring(texts[0]), cstring(texts[1]), cstring(texts[2]), cstring(texts[3]),
				cstring(texts[4]), e)
		}, nil)
	})
}
