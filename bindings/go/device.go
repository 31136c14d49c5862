package cairn

// #include "shim.h"
import "C"

import "unsafe"

// DeviceInfo is what a device of this machine is.
type DeviceInfo struct {
	Name        string // as for OpenDevice
	Description string // processor, instruction sets
	MemoryBytes uint64
	Threads     int
	FastBF16    bool   // bf16 products are faster than float32
	DiskAccess  string // how the disk tier reaches its directory: direct, buffered, memory (tmpfs), none
	ISA         string // instruction set in use: amx, avx512_bf16, ...; of a GPU its architecture
}

// Devices are those of this machine.
func (i *Instance) Devices() ([]DeviceInfo, error) {
	var found []DeviceInfo
	err := rows(func(index C.size_t, e *C.cairn_error_t) C.cairn_status_t {
		info := C.cairn_go_device_info()
		status := C.cairn_instance_device(i.c(), index, &info, e)
		if status == C.CAIRN_STATUS_OK {
			found = append(found, DeviceInfo{
				Name:        C.GoString(&info.name[0]),
				Description: C.GoString(&info.description[0]),
				MemoryBytes: uint64(info.memory_bytes),
				Threads:     int(info.threads),
				FastBF16:    info.fast_bf16 != 0,
				DiskAccess:  C.GoString(&info.disk_access[0]),
				ISA:         C.GoString(&info.isa[0]),
			})
		}
		return status
	}, i.it())
	return found, err
}

// DeviceOptions are how a device works.
type DeviceOptions struct {
	Threads            int     // 0: all processors; the bits of a run depend on it
	Verify             bool    // check ordering, lifetimes and races of all work: slow, for debugging
	LinkBytesPerSecond float64 // CPU: throttles copies of the host tier, to stand in for a link; 0: none
	DiskDirectory      string  // for the disk tier; "": $TMPDIR or /tmp
	// What plans without costs take the device's rates from: "cache" (measured once, in less than a second, on a GPU in
	// three, and kept), "measure" (again), "model" (nothing is measured), or a file that was kept; "": as CAIRN_RATES says, or "cache".
	Rates string
}

// Device runs plans.
type Device struct{ object }

func (d *Device) it() *object {
	if d == nil {
		return absent("device", "OpenDevice")
	}
	return &d.object
}

func (d *Device) c() *C.cairn_device_t { return (*C.cairn_device_t)(d.raw) }

// OpenDevice opens "cpu", "reference" (slow, obvious kernels: the oracle) or "cuda:N". Errors: NotFound (the message lists
// those known), Unsupported (there is none here), OutOfMemory (the system does not give the threads).
func OpenDevice(instance *Instance, name string, options DeviceOptions) (*Device, error) {
	if err := checkTexts("name", name, options.DiskDirectory, options.Rates); err != nil {
		return nil, err
	}
	if options.Threads < 0 || int64(options.Threads) > 1<<31 {
		return nil, invalid("DeviceOptions.Threads is %d; it must be a number of threads, or 0 for all processors", options.Threads)
	}
	made := &Device{}
	err := do(func(e *C.cairn_error_t) C.cairn_status_t {
		var raw *C.cairn_device_t
		status := C.cairn_go_device_open(instance.c(), cstring(name), C.uint32_t(options.Threads), flag(options.Verify),
			C.double(options.LinkBytesPerSecond), optional(options.DiskDirectory), optional(options.Rates), &raw, e)
		if status == C.CAIRN_STATUS_OK {
			made.init("device", unsafe.Pointer(raw), releaseDevice, newOrder(), &instance.object)
		}
		return status
	}, instance.it())
	if err != nil {
		return nil, err
	}
	return collected(made, (*Device).Close), nil
}

func releaseDevice(raw unsafe.Pointer) { C.cairn_device_release((*C.cairn_device_t)(raw)) }

// Close releases the device. Sessions on it go on.
func (d *Device) Close() error { return d.it().close() }
