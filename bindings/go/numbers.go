package cairn

import "unsafe"

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

// refuse says what is wrong with a slice of that type for a value. Bytes may stand for any.
func (b buffer) refuse(value ValueInfo) error {
	wanted, _ := value.DType.element()
	if b.word == "[]uint8" || wanted == "" || wanted == b.word {
		return nil
	}
	return invalid("'%s' is %s: a %s was given, %s is needed", value.Name, value.DType, b.word, wanted)
}
