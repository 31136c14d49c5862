package cairn

// #include "shim.h"
import "C"

import "context"

// Rename is another name for a parameter in a safetensors file.
type Rename struct {
	Ours, Theirs string
	Transposed   bool // stored as [in, out]
}

// Export writes all parameters to a safetensors file; those without a row keep their names. Errors: IO.
func (s *Session) Export(path string, names []Rename) error {
	return s.safetensors(path, names, func(path *C.char, names []C.cairn_name_t, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_session_export(s.c(), path, first(names), C.size_t(len(names)), e)
	})
}

// Import reads all parameters from a safetensors file, and converts F16, BF16 and F64. InvalidArgument names a tensor that is
// missing or has another shape. Other errors: NotFound, CorruptFile, IO.
func (s *Session) Import(path string, names []Rename) error {
	return s.safetensors(path, names, func(path *C.char, names []C.cairn_name_t, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_session_import(s.c(), path, first(names), C.size_t(len(names)), e)
	})
}

type weightsCall func(*C.char, []C.cairn_name_t, *C.cairn_error_t) C.cairn_status_t

func (s *Session) safetensors(path string, names []Rename, call weightsCall) error {
	if err := checkTexts("path", path); err != nil {
		return err
	}
	return with(context.Background(), func() error {
		a := &arena{}
		defer a.free()
		raw := list[C.cairn_name_t](a, len(names))
		for i, name := range names {
			raw[i].ours, raw[i].theirs, raw[i].transposed = a.text(name.Ours), a.text(name.Theirs), flag(name.Transposed)
		}
		if a.err != nil {
			return a.err
		}
		return capture(func(e *C.cairn_error_t) C.cairn_status_t { return call(cstring(path), raw, e) }, nil)
	}, s.it())
}
