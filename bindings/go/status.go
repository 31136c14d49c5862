package cairn

// #cgo pkg-config: cairn
// #include "shim.h"
import "C"

import "fmt"

// Status is what a call came to. It is an error, so that errors.Is(err, cairn.OverBudget) asks for it.
type Status int32

// Statuses. Later versions of the library may have more.
const (
	OK              Status = C.CAIRN_STATUS_OK               // no error
	InvalidArgument Status = C.CAIRN_STATUS_INVALID_ARGUMENT // the arguments must change
	WrongState      Status = C.CAIRN_STATUS_WRONG_STATE      // not now: the message names the state and the one that is needed
	OutOfMemory     Status = C.CAIRN_STATUS_OUT_OF_MEMORY    // the system gave no memory; Error.Fault says how much was asked for
	OverBudget      Status = C.CAIRN_STATUS_OVER_BUDGET      // no plan fits; Error.Fault names the smallest budget that does
	Unsupported     Status = C.CAIRN_STATUS_UNSUPPORTED      // valid, but this build, device or version cannot
	NotFound        Status = C.CAIRN_STATUS_NOT_FOUND        // no such file, name, row or device
	CorruptFile     Status = C.CAIRN_STATUS_CORRUPT_FILE     // truncated, changed or foreign bytes
	IO              Status = C.CAIRN_STATUS_IO               // the system refused reading or writing
	DeviceLost      Status = C.CAIRN_STATUS_DEVICE_LOST      // the device is gone until the process ends
	Cancelled       Status = C.CAIRN_STATUS_CANCELLED        // a context or Session.Cancel stopped it
	NonFinite       Status = C.CAIRN_STATUS_NON_FINITE       // a number that must be finite is not
	Internal        Status = C.CAIRN_STATUS_INTERNAL         // a bug of the library
)

// String is the name of a status, "OVER_BUDGET"; "UNKNOWN" for others.
func (s Status) String() string { return C.GoString(C.cairn_status_name(C.cairn_status_t(s))) }

// Error is the name of a status as an error's text.
func (s Status) Error() string { return "cairn: " + s.String() }

// Version is that of the library in use, "1.0.0".
func Version() string { return C.GoString(C.cairn_version()) }

// VersionNumber is major * 10000 + minor * 100 + patch of the library in use.
func VersionNumber() uint32 { return uint32(C.cairn_version_number()) }

// checkVersion refuses a library whose promises are others than those of the header that this package was compiled with.
func checkVersion(library, header uint32) error {
	if library/10000 == header {
		return nil
	}
	return &Error{Status: Unsupported, Message: fmt.Sprintf("libcairn is version %d.%d.%d, and this program was compiled for "+
		"version %d; install libcairn.so.%d, or compile the program again", library/10000, library/100%100, library%100, header,
		header)}
}

// Tier is where bytes live.
type Tier uint32

// Tiers.
const (
	TierDevice Tier = C.CAIRN_TIER_DEVICE // the arena
	TierHost   Tier = C.CAIRN_TIER_HOST   // pinned memory of the host
	TierDisk   Tier = C.CAIRN_TIER_DISK   // a file
)

// String is the word for a tier: device, host or disk.
func (t Tier) String() string { return word(uint32(t), "device", "host", "disk") }
