package cairn

// #include "shim.h"
import "C"

import (
	"context"
	"sort"
	"unsafe"
)

// SaveOptions are what a checkpoint holds besides graph, parameters, moments and the state of the run.
type SaveOptions struct {
	Metadata map[string]string
	Files    []string // paths of files to keep copies of
	// Frozen parameters are not stored: who restores the checkpoint has the same ones in the session already.
	WithoutFrozen bool
}

// metadata is sorted by its keys: the same file for the same words.
func metadata(a *arena, words map[string]string) []C.cairn_metadata_t {
	keys := make([]string, 0, len(words))
	for key := range words {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	raw := list[C.cairn_metadata_t](a, len(keys))
	for i, key := range keys {
		raw[i].key, raw[i].value = a.text(key), a.text(words[key])
	}
	return raw
}

// Save writes a checkpoint into a new directory: durable when it returns, all or nothing. In the middle of an accumulation the
// gradients are in it. Errors: IO, CorruptFile (reads back otherwise than written).
func (s *Stepper) Save(directory string, options SaveOptions) error {
	if err := checkTexts("directory", directory); err != nil {
		return err
	}
	return with(context.Background(), func() error {
		a := &arena{}
		defer a.free()
		metadata, files := metadata(a, options.Metadata), list[*C.char](a, len(options.Files))
		for i, file := range options.Files {
			files[i] = a.text(file)
		}
		if a.err != nil {
			return a.err
		}
		raw := C.cairn_go_save_options()
		raw.metadata, raw.metadata_count = first(metadata), C.size_t(len(metadata))
		raw.files, raw.file_count = first(files), C.size_t(len(files))
		raw.without_frozen = flag(options.WithoutFrozen)
		return capture(func(e *C.cairn_error_t) C.cairn_status_t {
			return C.cairn_stepper_save_as(s.c(), cstring(directory), &raw, e)
		}, nil)
	}, s.it())
}

// Checkpoint is what a stepper saved.
type Checkpoint struct{ object }

func (c *Checkpoint) it() *object {
	if c == nil {
		return absent("checkpoint", "OpenCheckpoint")
	}
	return &c.object
}

func (c *Checkpoint) c() *C.cairn_checkpoint_t { return (*C.cairn_checkpoint_t)(c.raw) }

// OpenCheckpoint opens a checkpoint, or the newest complete one below a directory. Errors: NotFound, CorruptFile, IO.
func OpenCheckpoint(instance *Instance, directory string) (*Checkpoint, error) {
	if err := checkTexts("directory", directory); err != nil {
		return nil, err
	}
	made := &Checkpoint{}
	err := do(func(e *C.cairn_error_t) C.cairn_status_t {
		var raw *C.cairn_checkpoint_t
		status := C.cairn_checkpoint_open(instance.c(), cstring(directory), &raw, e)
		if status == C.CAIRN_STATUS_OK {
			made.init("checkpoint", unsafe.Pointer(raw), releaseCheckpoint, nil, &instance.object)
		}
		return status
	}, instance.it())
	if err != nil {
		return nil, err
	}
	return collected(made, (*Checkpoint).Close), nil
}

func releaseCheckpoint(raw unsafe.Pointer) { C.cairn_checkpoint_release((*C.cairn_checkpoint_t)(raw)) }

// RemoveCheckpoint deletes the checkpoint in a directory: what its manifest lists, and the directory if nothing else is in it.
// Errors: NotFound, InvalidArgument (a link), CorruptFile (nothing is deleted), IO.
func RemoveCheckpoint(instance *Instance, directory string) error {
	if err := checkTexts("directory", directory); err != nil {
		return err
	}
	return do(func(e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_checkpoint_remove(instance.c(), cstring(directory), e)
	}, instance.it())
}

// Close releases the checkpoint. Graphs made from it stand alone.
func (c *Checkpoint) Close() error { return c.it().close() }

// Directory is the one it was opened from; "" of a closed checkpoint.
func (c *Checkpoint) Directory() string {
	directory := ""
	_ = with(context.Background(), func() error {
		directory = C.GoString(C.cairn_checkpoint_directory(c.c()))
		return nil
	}, c.it())
	return directory
}

// Verify compares all tensors with their digests. Errors: CorruptFile, IO.
func (c *Checkpoint) Verify() error {
	return do(func(e *C.cairn_error_t) C.cairn_status_t { return C.cairn_checkpoint_verify(c.c(), e) }, c.it())
}

// Metadata is the value of a key, and whether there is one.
func (c *Checkpoint) Metadata(key string) (value string, there bool) {
	if checkTexts("key", key) != nil {
		return "", false
	}
	_ = with(context.Background(), func() error {
		if found := C.cairn_checkpoint_metadata(c.c(), cstring(key)); found != nil {
			value, there = C.GoString(found), true
		}
		return nil
	}, c.it())
	return value, there
}

// Graph is the one that was trained, frozen.
func (c *Checkpoint) Graph() (*Graph, error) {
	made := &Graph{}
	err := do(func(e *C.cairn_error_t) C.cairn_status_t {
		var raw *C.cairn_graph_t
		status := C.cairn_checkpoint_graph(c.c(), &raw, e)
		if status == C.CAIRN_STATUS_OK {
			made.init("graph", unsafe.Pointer(raw), releaseGraph, newOrder(), &c.object)
		}
		return status
	}, c.it())
	if err != nil {
		return nil, err
	}
	return collected(made, (*Graph).Close), nil
}

// Restore puts a stepper of an equal graph exactly where the saved one was: what follows has the same bits. Errors: CorruptFile,
// WrongState.
func (s *Stepper) Restore(checkpoint *Checkpoint) error {
	return do(func(e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_stepper_restore(s.c(), checkpoint.c(), e)
	}, s.it(), checkpoint.it())
}

// Load takes the parameters of a checkpoint alone, by name, into any session. Errors: NotFound (names the first parameter that is
// not there), CorruptFile.
func (s *Session) Load(checkpoint *Checkpoint) error {
	return do(func(e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_session_load(s.c(), checkpoint.c(), e)
	}, s.it(), checkpoint.it())
}

// LoadEMA is Load with the averages of the parameters that have one (PlanOptions.EMA) in their place. Errors: NotFound (the
// checkpoint has no averages, or not all parameters), CorruptFile.
func (s *Session) LoadEMA(checkpoint *Checkpoint) error {
	return do(func(e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_session_load_ema(s.c(), checkpoint.c(), e)
	}, s.it(), checkpoint.it())
}
