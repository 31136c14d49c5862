package cairn

// #include "shim.h"
import "C"

// DType is the type of a tensor's elements.
type DType uint32

// Element types. Dynamic8 and UDynamic8 are of optimizer states alone: blocks of 256 codes and their float32 scale. Split is
// how parameters may be stored: float32 as its bfloat16 and the 16 bits below.
const (
	F32       DType = C.CAIRN_F32
	BF16      DType = C.CAIRN_BF16
	F16       DType = C.CAIRN_F16
	F64       DType = C.CAIRN_F64
	I32       DType = C.CAIRN_I32
	I64       DType = C.CAIRN_I64
	U8        DType = C.CAIRN_U8
	Dynamic8  DType = C.CAIRN_DYNAMIC8
	UDynamic8 DType = C.CAIRN_UDYNAMIC8
	Split     DType = C.CAIRN_SPLIT
)

// String is the word for a type, "f32", as attributes of ops take it.
func (d DType) String() string {
	return word(uint32(d), "f32", "bf16", "f16", "f64", "i32", "i64", "u8", "unknown(7)", "dynamic8", "udynamic8", "split")
}

// Element is what slices of tensors hold: float32 for F32, float64 for F64, int32 for I32, int64 for I64, uint8 for U8, and
// uint16 for the bits of BF16 and F16.
type Element interface {
	float32 | float64 | int32 | int64 | uint16 | uint8
}

// element is the word for a type's slice, and the bytes of an element; "" where there is none.
func (d DType) element() (string, int) {
	switch d {
	case F32:
		return "[]float32", 4
	case BF16, F16:
		return "[]uint16", 2
	case F64:
		return "[]float64", 8
	case I32:
		return "[]int32", 4
	case I64:
		return "[]int64", 8
	case U8:
		return "[]uint8", 1
	}
	return "", 0
}
