package cairn

// #include "shim.h"
import "C"

import "unsafe"

//go:generate sh -c "cairn ops --json | go run ./internal/opgen/main ops_gen.go"

// Attr is a named attribute of an op. Value is an int, int64, bool (0 or 1), float64, string, DType, []int, []int64 or
// []float64. The With functions make those of known ops.
type Attr struct {
	Name  string
	Value any
}

// Op adds an op by name and returns its first output. Operands stand in the order of the op's row (Ops); None for one that is
// left out. The methods named after ops are this with the operands and attributes that they take.
func (g *Graph) Op(name string, inputs []Value, attrs ...Attr) Value {
	return g.OpOutputs(name, 1, inputs, attrs...)[0]
}

// OpOutputs adds an op and returns its first `outputs` outputs; those that it does not make are None.
func (g *Graph) OpOutputs(name string, outputs int, inputs []Value, attrs ...Attr) []Value {
	if outputs < 0 {
		g.attempt(func() error { return invalid("%s: %d outputs were asked for; it must be 0 or more", name, outputs) })
		return nil
	}
	made := make([]Value, outputs+1)
	g.attempt(func() error {
		if err := checkTexts("name", name); err != nil {
			return err
		}
		a := &arena{}
		defer a.free()
		raw, err := a.attrs(name, attrs)
		if err != nil {
			return err
		}
		given := append(append([]Value{}, inputs...), None)
		return capture(func(e *C.cairn_error_t) C.cairn_status_t {
			return C.cairn_graph_op(g.c(), cstring(name), (*C.cairn_value_t)(unsafe.Pointer(&given[0])), C.size_t(len(inputs)),
				first(raw), C.size_t(len(raw)), (*C.cairn_value_t)(unsafe.Pointer(&made[0])), C.size_t(outputs), e)
		}, g.hooks)
	})
	return made[:outputs:outputs]
}

func (a *arena) attrs(op string, attrs []Attr) ([]C.cairn_attr_t, error) {
	raw := list[C.cairn_attr_t](a, len(attrs))
	for i, attr := range attrs {
		raw[i].name = a.text(attr.Name)
		switch value := attr.Value.(type) {
		case int:
			raw[i].kind, raw[i].integer = C.CAIRN_ATTR_INTEGER, C.int64_t(value)
		case int64:
			raw[i].kind, raw[i].integer = C.CAIRN_ATTR_INTEGER, C.int64_t(value)
		case bool:
			raw[i].kind, raw[i].integer = C.CAIRN_ATTR_INTEGER, C.int64_t(flag(value))
		case float64:
			raw[i].kind, raw[i].real = C.CAIRN_ATTR_REAL, C.double(value)
		case string:
			raw[i].kind, raw[i].word = C.CAIRN_ATTR_WORD, a.text(value)
		case DType:
			raw[i].kind, raw[i].word = C.CAIRN_ATTR_WORD, a.text(value.String())
		case []int:
			setList(a, &raw[i], value)
		case []int64:
			setList(a, &raw[i], value)
		case []float64:
			copied := list[C.double](a, len(value))
			for k, number := range value {
				copied[k] = C.double(number)
			}
			raw[i].kind, raw[i].reals, raw[i].list_count = C.CAIRN_ATTR_REALS, first(copied), C.uint32_t(len(copied))
		default:
			return nil, invalid("%s: attribute '%s' is a %T; an int, int64, bool, float64, string, DType, []int, []int64 or "+
				"[]float64 is needed", op, attr.Name, attr.Value)
		}
	}
	return raw, a.err
}

func setList[T int | int64](a *arena, raw *C.cairn_attr_t, numbers []T) {
	copied := list[C.int64_t](a, len(numbers))
	for i, number := range numbers {
		copied[i] = C.int64_t(number)
	}
	raw.kind, raw.list, raw.list_count = C.CAIRN_ATTR_LIST, first(copied), C.uint32_t(len(copied))
}
