package cairn

// #include "shim.h"
import "C"

import "unsafe"

// Costs are seconds of ops and links that plans are made with: a profile, measured on a machine, or the model of a device that
// is not there. Without one, plans use rough rates of the device.
type Costs struct{ object }

func (c *Costs) it() *object {
	if c == nil {
		return absent("costs", "NewCosts")
	}
	return &c.object
}

func (c *Costs) c() *C.cairn_costs_t { return (*C.cairn_costs_t)(c.raw) }

// NewCosts makes an empty profile of a device, filled by MeasureLink, MeasureKernels and AddRun.
func NewCosts(device *Device) (*Costs, error) {
	return makeCosts(device.it(), func(raw **C.cairn_costs_t, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_costs_create(device.c(), raw, e)
	})
}

// ReadCosts reads JSON, "cairn.profile/1" or "cairn.device-model/1". Errors: CorruptFile.
func ReadCosts(instance *Instance, json []byte) (*Costs, error) {
	data := bytesOf("", json)
	return makeCosts(instance.it(), func(raw **C.cairn_costs_t, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_costs_read(instance.c(), (*C.char)(data.first), C.size_t(data.bytes), raw, e)
	})
}

func makeCosts(parent *object, call func(**C.cairn_costs_t, *C.cairn_error_t) C.cairn_status_t) (*Costs, error) {
	made := &Costs{}
	err := do(func(e *C.cairn_error_t) C.cairn_status_t {
		var raw *C.cairn_costs_t
		status := call(&raw, e)
		if status == C.CAIRN_STATUS_OK {
			made.init("costs", unsafe.Pointer(raw), releaseCosts, newOrder(), parent)
		}
		return status
	}, parent)
	if err != nil {
		return nil, err
	}
	return collected(made, (*Costs).Close), nil
}

func releaseCosts(raw unsafe.Pointer) { C.cairn_costs_release((*C.cairn_costs_t)(raw)) }

// Close releases the costs. Plans made with them go on.
func (c *Costs) Close() error { return c.it().close() }

// MeasureLink measures copies to and from a tier and puts the result into the profile. It takes about a second, and 256 MiB on
// the device and on the tier; nothing else should run. Errors: WrongState (a device model), IO (disk tier).
func (c *Costs) MeasureLink(device *Device, tier Tier) error {
	return do(func(e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_costs_measure_link(c.c(), device.c(), C.uint32_t(tier), e)
	}, c.it(), device.it())
}

// MeasureKernels times what the kernels of a plan's ops have to choose from, puts what is clearly faster into the profile, and
// tells how many ops were timed. It takes seconds; nothing else should run. Errors: WrongState (a device model).
func (c *Costs) MeasureKernels(plan *Plan, device *Device) (uint64, error) {
	var count C.uint64_t
	err := do(func(e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_costs_measure_kernels(c.c(), plan.c(), device.c(), &count, e)
	}, c.it(), plan.it(), device.it())
	return uint64(count), err
}

// AddRun adds the session's last traced run. stepSeconds and optimizerSeconds are of the step that it was part of; 0: not known.
// Errors: WrongState (no run was traced; a device model).
func (c *Costs) AddRun(session *Session, stepSeconds, optimizerSeconds float64) error {
	return do(func(e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_costs_add_run(c.c(), session.c(), C.double(stepSeconds), C.double(optimizerSeconds), e)
	}, c.it(), session.it())
}

// JSON is the profile, as ReadCosts takes it. Errors: WrongState (a device model).
func (c *Costs) JSON() ([]byte, error) {
	return textOf(func(out **C.cairn_text_t, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_costs_json(c.c(), out, e)
	}, c.it())
}
