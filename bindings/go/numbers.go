package cairn

import (
	"strings"
	"unsafe"
)

// buffer is a slice of numbers as its bytes.
type buffer struct {
	word  string // "[]float32"
	first unsafe.Pointer
	bytes int
}

var nothing [8]byte

func bytesOf[T Element](word string, data []T) buffer {
	if len(data) == 0 {
		return buffer{word: word, first: unsafe.Pointer(&nothing)}
	}
	return buffer{word, unsafe.Pointer(&data[0]), len(data) * int(unsafe.Sizeof(data[0]))}
}

func bufferOf(data any) (buffer, error) {
	switch data := data.(type) {
	case []float32:
		return bytesOf("[]float32", data), nil
	case []float64:
		return bytesOf("[]float64", data), nil
	case []int32:
		return bytesOf("[]int32", data), nil
	case []int64:
		return bytesOf("[]int64", data), nil
	case []uint16:
		return bytesOf("[]uint16", data), nil
	case []uint8:
		return bytesOf("[]uint8", data), nil
	}
	return buffer{}, invalid("a %T was given; []float32, []float64, []int32, []int64, []uint16 (bits of bf16 and f16) or []uint8 "+
		"(any bytes) is needed", data)
}

// layout is the type and size of a value.
type layout struct {
	dtype    DType
	elements int
}

// layouts are those of a graph's values, by name.
type layouts map[string]layout

const gradientSuffix = "/gradient"

// find knows values of the graph and their gradients, which are as wide as sums are.
func (l layouts) find(name string) (layout, bool) {
	if found, ok := l[name]; ok {
		return found, true
	}
	if base := strings.TrimSuffix(name, gradientSuffix); base != name {
		if found, ok := l[base]; ok {
			if found.dtype != F64 {
				found.dtype = F32
			}
			return found, true
		}
	}
	return layout{}, false
}

// check refuses slices of another type than the value's. Bytes may stand for any; what is not known is left to the library.
func (l layouts) check(name string, data buffer) error {
	found, ok := l.find(name)
	if !ok || data.word == "[]uint8" {
		return nil
	}
	if wanted, _ := found.dtype.element(); wanted != "" && wanted != data.word {
		return invalid("'%s' is %s: a %s was given, %s is needed", name, found.dtype, data.word, wanted)
	}
	return nil
}
