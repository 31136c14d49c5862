package cairn

// #include "shim.h"
import "C"

import "context"

// Rename is another name for a parameter in a safetensors file.
type Rename struct {
	Ours, Theirs string
	Transposed   bool // stored as [in, out]
	Stacked      bool // one element of the first dimension, as one expert's matrix: a row for each, in their order
}

// Export writes all parameters to a safetensors file; those without a row keep their names. Errors: IO.
func (s *Session) Export(path string, names []Rename) error {
	return s.safetensors(path, names, func(path *C.char, names []C.cairn_name_t, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_session_export(s.c(), path, first(names), C.size_t(len(names)), e)
	})
}

// ExportOptions says how ExportAs writes weights.
type ExportOptions struct {
	Dtype       string   // "f32", "bf16", "f16": what is written; "": as each parameter is stored
	FrozenDtype string   // the same of parameters that are not trained; "": as Dtype says
	Directory   bool     // the path is a directory, new or empty, which gets model.safetensors, or several files and their index
	ShardBytes  uint64   // of a directory: the most bytes of tensors in one file, but for a larger tensor; 0: no limit
	Files       []string // of a directory: copied into it
}

// ExportAs is Export in another type, or as the directory of a model. All or nothing, durable when it returns. Errors: also
// InvalidArgument (the directory holds something; no such type).
func (s *Session) ExportAs(path string, names []Rename, options ExportOptions) error {
	a := &arena{}
	defer a.free()
	raw := C.cairn_go_export_options()
	raw.dtype, raw.frozen_dtype = a.word(options.Dtype), a.word(options.FrozenDtype)
	raw.directory, raw.shard_bytes = flag(options.Directory), C.uint64_t(options.ShardBytes)
	files := list[*C.char](a, len(options.Files))
	for i, file := range options.Files {
		files[i] = a.text(file)
	}
	raw.files, raw.file_count = first(files), C.size_t(len(files))
	if a.err != nil {
		return a.err
	}
	return s.safetensors(path, names, func(path *C.char, names []C.cairn_name_t, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_session_export_as(s.c(), path, first(names), C.size_t(len(names)), &raw, e)
	})
}

// Import reads all parameters from a safetensors file, or from the directory of a model, and converts F16, BF16 and F64.
// InvalidArgument names a tensor that is missing or has another shape. Other errors: NotFound, CorruptFile, IO.
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
			raw[i].ours, raw[i].theirs = a.text(name.Ours), a.text(name.Theirs)
			raw[i].transposed, raw[i].stacked = flag(name.Transposed), flag(name.Stacked)
		}
		if a.err != nil {
			return a.err
		}
		return capture(func(e *C.cairn_error_t) C.cairn_status_t { return call(cstring(path), raw, e) }, nil)
	}, s.it())
}
