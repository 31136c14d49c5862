package cairn

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"sync"
)

// ErrClosed is what calls with a closed object wrap: errors.Is(err, cairn.ErrClosed).
var ErrClosed = errors.New("the object was closed")

// Error is a call that failed. errors.As finds it; errors.Is compares its Status, and what caused it: the error of a custom
// op's function, a *PanicError, that of a context, ErrClosed.
type Error struct {
	Status  Status
	Message string       // what was given, what is wanted, and the remedy
	Where   string       // file:line of the call that built the graph wrongly; else ""
	Fault   *MemoryFault // with OutOfMemory and OverBudget, where it is known; else nil
	cause   error
}

// MemoryFault is what was asked of memory, in bytes.
type MemoryFault struct {
	RequestedBytes      uint64
	InUseBytes          uint64
	BudgetBytes         uint64
	SmallestBudgetBytes uint64 // OverBudget: the smallest budget that succeeds; 0: unknown
	Tier                Tier
	Region              string // what forms the peak: region or op; may be empty
}

// Error is the text: status, message, and the place where it is known.
func (e *Error) Error() string {
	text := e.Status.Error() + ": " + e.Message
	if e.Where != "" {
		text += " (" + e.Where + ")"
	}
	return text
}

// Is tells whether the target is the error's status.
func (e *Error) Is(target error) bool {
	status, ok := target.(Status)
	return ok && status == e.Status
}

// Unwrap is what caused the error, if that is an error of Go.
func (e *Error) Unwrap() error { return e.cause }

func invalid(format string, arguments ...any) *Error {
	return &Error{Status: InvalidArgument, Message: fmt.Sprintf(format, arguments...)}
}

// Error objects of C are used again: each takes a kilobyte, and a call that succeeds does not touch it.
var spareErrors struct {
	sync.Mutex
	list []*C.cairn_error_t
}

const mostSpareErrors = 64

func takeError() *C.cairn_error_t {
	spareErrors.Lock()
	defer spareErrors.Unlock()
	if last := len(spareErrors.list) - 1; last >= 0 {
		taken := spareErrors.list[last]
		spareErrors.list = spareErrors.list[:last]
		return taken
	}
	return C.cairn_error_create() // NULL without memory, which every call takes
}

func putError(e *C.cairn_error_t) {
	if e == nil {
		return
	}
	spareErrors.Lock()
	defer spareErrors.Unlock()
	if len(spareErrors.list) < mostSpareErrors {
		spareErrors.list = append(spareErrors.list, e)
		return
	}
	C.cairn_error_release(e)
}

// capture makes a call, and its failure an *Error. hooks: Go functions that may have caused it.
func capture(call func(*C.cairn_error_t) C.cairn_status_t, hooks []*hook) error {
	e := takeError()
	defer putError(e)
	status := Status(call(e))
	if status == OK {
		return nil
	}
	made := &Error{Status: status, Message: "there is no memory for a message"}
	if e == nil {
		return made
	}
	made.Message = C.GoString(C.cairn_error_message(e))
	fault := C.cairn_go_memory_fault()
	if C.cairn_error_memory_fault(e, &fault) == C.CAIRN_STATUS_OK {
		made.Fault = &MemoryFault{
			RequestedBytes:      uint64(fault.requested_bytes),
			InUseBytes:          uint64(fault.in_use_bytes),
			BudgetBytes:         uint64(fault.budget_bytes),
			SmallestBudgetBytes: uint64(fault.smallest_budget_bytes),
			Tier:                Tier(fault.tier),
			Region:              C.GoString(&fault.region[0]),
		}
	}
	for _, h := range hooks {
		if h.mention != "" && strings.Contains(made.Message, h.mention) {
			last := h.failure()
			made.cause = last.err
			if last.err != nil && (last.kept == "" || !strings.Contains(made.Message, last.kept)) {
				made.Message += ": " + last.said
			}
		}
	}
	return made
}

// word is one of the words, by number.
func word(number uint32, words ...string) string {
	if int(number) < len(words) {
		return words[number]
	}
	return fmt.Sprintf("unknown(%d)", number)
}
