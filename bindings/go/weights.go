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

// Layout says how a file has the values of a parameter, where it is not as they are. Its rows are Groups groups of units of Unit
// rows, in which Ways runs of units take turns; Offset is what the file's values are above the parameter's.
type Layout struct {
	Ours               string
	Groups, Ways, Unit uint32
	Offset             float32
}

func layouts(a *arena, rows []Layout) []C.cairn_layout_t {
	raw := list[C.cairn_layout_t](a, len(rows))
	for i, row := range rows {
		raw[i].ours = a.text(row.Ours)
		raw[i].groups, raw[i].ways, raw[i].unit = C.uint32_t(row.Groups), C.uint32_t(row.Ways), C.uint32_t(row.Unit)
		raw[i].offset = C.float(row.Offset)
	}
	return raw
}

// Merge is what is added to a parameter while it is written: W + Scale B A, of shapes [..., r, in] and [..., out, r], or of a table
// W + Scale A B transposed, of shapes [rows, r] and [width, r].
type Merge struct {
	Weight    string
	A, B      string // "": nothing is added
	Scale     float64
	Magnitude string // each row of the sum gets this length (DoRA); "": it keeps its own
	Table     bool
	Format    string // what the run stored W in, where the session has it in full; ""
}

func merges(a *arena, rows []Merge) []C.cairn_merge_t {
	raw := list[C.cairn_merge_t](a, len(rows))
	for i, row := range rows {
		raw[i].weight, raw[i].a, raw[i].b = a.text(row.Weight), a.word(row.A), a.word(row.B)
		raw[i].magnitude, raw[i].format = a.word(row.Magnitude), a.word(row.Format)
		raw[i].scale, raw[i].kind = C.double(row.Scale), C.CAIRN_MERGE_MATRIX
		if row.Table {
			raw[i].kind = C.CAIRN_MERGE_TABLE
		}
	}
	return raw
}

// MergeDifference is how far what is written of merged rows with a Format is from the other way to merge them: from W in full, or
// from what the format makes of it.
type MergeDifference struct{ Largest, Mean float64 }

// Export writes all parameters to a safetensors file; those without a row keep their names. Errors: IO.
func (s *Session) Export(path string, names []Rename) error {
	return s.safetensors(path, names, func(path *C.char, names []C.cairn_name_t, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_session_export(s.c(), path, first(names), C.size_t(len(names)), e)
	})
}

// ExportOptions says how ExportAs writes weights.
type ExportOptions struct {
	Dtype        string            // "f32", "bf16", "f16": what is written; "": as each parameter is stored
	FrozenDtype  string            // the same of parameters that are not trained; "": as Dtype says
	Directory    bool              // the path is a directory, new or empty, which gets model.safetensors, or several files and their index
	ShardBytes   uint64            // of a directory: the most bytes of tensors in one file, but for a larger tensor; 0: no limit
	Files        []string          // of a directory: copied into it
	FileName     string            // of a directory of one file: its name; "": model.safetensors
	Metadata     map[string]string // of the files that are written, besides format: pt
	Merges       []Merge           // a row for each parameter that is written with an adapter, or that a format rounded
	Dequantise   bool              // of merges with a Format, W is what the format makes of it
	Difference   *MergeDifference  // where it is put; nil: nowhere
	Container    string            // "" or "safetensors"; "gguf": a GGUF file, whose Dtype may be a block type, as "q8_0"
	GgufMetadata string            // of a GGUF file: JSON, see cairn_export_options_t
	Layouts      []Layout          // of a GGUF file
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
	laid, added := layouts(a, options.Layouts), merges(a, options.Merges)
	words, apart := metadata(a, options.Metadata), list[C.double](a, 2)
	raw.file_name, raw.metadata, raw.metadata_count = a.word(options.FileName), first(words), C.size_t(len(words))
	raw.merges, raw.merge_count = first(added), C.size_t(len(added))
	raw.dequantise, raw.out_difference = flag(options.Dequantise), first(apart)
	raw.container, raw.gguf_metadata = a.word(options.Container), a.word(options.GgufMetadata)
	raw.layouts, raw.layout_count = first(laid), C.size_t(len(laid))
	if a.err != nil {
		return a.err
	}
	err := s.safetensors(path, names, func(path *C.char, names []C.cairn_name_t, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_session_export_as(s.c(), path, first(names), C.size_t(len(names)), &raw, e)
	})
	if err == nil && options.Difference != nil {
		*options.Difference = MergeDifference{float64(apart[0]), float64(apart[1])}
	}
	return err
}

// Import reads all parameters from a safetensors or GGUF file, or from the directory of a model, and converts types.
// InvalidArgument names a tensor that is missing or has another shape. Other errors: NotFound, CorruptFile, IO.
func (s *Session) Import(path string, names []Rename) error {
	return s.safetensors(path, names, func(path *C.char, names []C.cairn_name_t, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_session_import(s.c(), path, first(names), C.size_t(len(names)), e)
	})
}

// ImportAs is Import of parameters that a file has in another order.
func (s *Session) ImportAs(path string, names []Rename, rows []Layout) error {
	a := &arena{}
	defer a.free()
	laid := layouts(a, rows)
	raw := C.cairn_go_import_options()
	raw.layouts, raw.layout_count = first(laid), C.size_t(len(laid))
	if a.err != nil {
		return a.err
	}
	return s.safetensors(path, names, func(path *C.char, names []C.cairn_name_t, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_session_import_as(s.c(), path, first(names), C.size_t(len(names)), &raw, e)
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
