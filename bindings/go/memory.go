package cairn

// #include "shim.h"
import "C"

import (
	"strings"
	"unsafe"
)

// cstring is a text with the NUL that C wants, in memory of Go: for calls that copy it.
func cstring(text string) *C.char {
	bytes := make([]byte, len(text)+1)
	copy(bytes, text)
	return (*C.char)(unsafe.Pointer(&bytes[0]))
}

// optional is the text, or NULL where it is empty.
func optional(text string) *C.char {
	if text == "" {
		return nil
	}
	return cstring(text)
}

// checkTexts refuses texts that C would cut.
func checkTexts(what string, texts ...string) error {
	for _, text := range texts {
		if strings.IndexByte(text, 0) >= 0 {
			return invalid("the %s %q has a NUL in it; names, paths and words have none", what, text)
		}
	}
	return nil
}

// arena is memory of C for structs that hold pointers, freed after a call.
type arena struct {
	blocks []unsafe.Pointer
	err    error
}

func (a *arena) bytes(size uintptr) unsafe.Pointer {
	block := C.calloc(1, C.size_t(size+1))
	a.blocks = append(a.blocks, block)
	return block
}

// text is a copy; "" is an empty text.
func (a *arena) text(text string) *C.char {
	if err := checkTexts("text", text); err != nil && a.err == nil {
		a.err = err
	}
	copied := C.CString(text)
	a.blocks = append(a.blocks, unsafe.Pointer(copied))
	return copied
}

// word is a copy; "" is NULL.
func (a *arena) word(text string) *C.char {
	if text == "" {
		return nil
	}
	return a.text(text)
}

func (a *arena) free() {
	for _, block := range a.blocks {
		C.free(block)
	}
}

// list is room in the arena for as many elements; nil for none.
func list[T any](a *arena, count int) []T {
	if count == 0 {
		return nil
	}
	var element T
	return unsafe.Slice((*T)(a.bytes(unsafe.Sizeof(element)*uintptr(count))), count)
}

// first is the address of a list's first element; nil for none.
func first[T any](list []T) *T {
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}

// takeText copies a text of the library's, and releases it.
func takeText(text *C.cairn_text_t) []byte {
	defer C.cairn_text_release(text)
	size := int(C.cairn_text_size(text))
	copied := make([]byte, size)
	if size > 0 {
		copy(copied, unsafe.Slice((*byte)(unsafe.Pointer(C.cairn_text_data(text))), size))
	}
	return copied
}

func flag(on bool) C.uint32_t {
	if on {
		return 1
	}
	return 0
}

func dimsOf(dims []int) []C.int64_t {
	made := make([]C.int64_t, len(dims)+1) // never empty: its address is taken
	for i, dim := range dims {
		made[i] = C.int64_t(dim)
	}
	return made
}
