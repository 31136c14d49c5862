package cairn

// #include "shim.h"
import "C"

import "context"

// ValueKind is what makes a value.
type ValueKind uint32

// Kinds.
const (
	KindInput      ValueKind = 0
	KindParameter  ValueKind = 1
	KindActivation ValueKind = 2
	KindStatistic  ValueKind = 3
	KindCache      ValueKind = 4
)

// String is the word for a kind: input, parameter, activation, statistic or cache.
func (k ValueKind) String() string {
	return word(uint32(k), "input", "parameter", "activation", "statistic", "cache")
}

// ValueInfo is what a graph or a session knows about a value.
type ValueInfo struct {
	Name   string
	Dims   []int
	DType  DType
	Kind   ValueKind
	Region uint32 // number of the region it is in; 0: none
	Bytes  uint64
	Frozen bool // a parameter that is not trained
}

// Find is the value of that name, or None.
func (g *Graph) Find(name string) Value {
	var found C.cairn_value_t
	if checkTexts("name", name) != nil {
		return None
	}
	_ = with(context.Background(), func() error {
		found = C.cairn_graph_find(g.c(), cstring(name))
		return nil
	}, g.it())
	return Value(found)
}

// Info tells of a value. Errors: NotFound.
func (g *Graph) Info(value Value) (ValueInfo, error) {
	var info ValueInfo
	err := do(func(e *C.cairn_error_t) C.cairn_status_t { return g.info(value, &info, e) }, g.it())
	return info, err
}

// Values are all of the graph, in order of creation: the first is that of Value 1.
func (g *Graph) Values() ([]ValueInfo, error) {
	var all []ValueInfo
	err := with(context.Background(), func() error {
		all = make([]ValueInfo, C.cairn_graph_value_count(g.c()))
		for i := range all {
			err := capture(func(e *C.cairn_error_t) C.cairn_status_t { return g.info(Value(i+1), &all[i], e) }, nil)
			if err != nil {
				return err
			}
		}
		return nil
	}, g.it())
	return all, err
}

func (g *Graph) info(value Value, out *ValueInfo, e *C.cairn_error_t) C.cairn_status_t {
	raw := C.cairn_go_value_info()
	status := C.cairn_graph_value_info(g.c(), C.cairn_value_t(value), &raw, e)
	if status == C.CAIRN_STATUS_OK {
		*out = valueInfo(&raw)
	}
	return status
}

func valueInfo(raw *C.cairn_value_info_t) ValueInfo {
	info := ValueInfo{
		Name:   C.GoString(raw.name),
		Dims:   make([]int, raw.rank),
		DType:  DType(raw.dtype),
		Kind:   ValueKind(raw.kind),
		Region: uint32(raw.region),
		Bytes:  uint64(raw.bytes),
		Frozen: raw.frozen != 0,
	}
	for i := range info.Dims {
		info.Dims[i] = int(raw.dims[i])
	}
	return info
}
