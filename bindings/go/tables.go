package cairn

// #include "shim.h"
import "C"

import "strings"

// Operand is an input or output of an op.
type Operand struct {
	Name     string
	Optional bool // an input that may be left out; an output that is made only where the description says so
}

// AttrInfo is an attribute that an op takes.
type AttrInfo struct {
	Name     string
	Type     string // integer, real, word, list (of integers) or reals
	Required bool
}

// OpInfo is an op that Graph.Op knows.
type OpInfo struct {
	Name        string
	Inputs      []Operand
	Outputs     []Operand
	Attributes  []AttrInfo
	Description string // what it computes, shapes, defaults. x[.., C]: any leading dimensions
	AMPClass    string // what mixed precision makes of it where no rule says otherwise
}

// Ops are those that Graph.Op knows.
func Ops() ([]OpInfo, error) {
	var found []OpInfo
	err := rows(func(index C.size_t, e *C.cairn_error_t) C.cairn_status_t {
		info := C.cairn_go_op_info()
		status := C.cairn_op_describe(index, &info, e)
		if status == C.CAIRN_STATUS_OK {
			found = append(found, OpInfo{
				Name:        C.GoString(info.name),
				Inputs:      operands(C.GoString(info.inputs)),
				Outputs:     operands(C.GoString(info.outputs)),
				Attributes:  attributes(C.GoString(info.attributes)),
				Description: C.GoString(info.description),
				AMPClass:    C.GoString(info.amp_class),
			})
		}
		return status
	})
	return found, err
}

func operands(text string) []Operand {
	var found []Operand
	for _, name := range strings.Fields(text) {
		found = append(found, Operand{strings.TrimSuffix(name, "?"), strings.HasSuffix(name, "?")})
	}
	return found
}

var attrTypes = map[string]string{"i": "integer", "f": "real", "s": "word", "l": "list", "r": "reals"}

func attributes(text string) []AttrInfo {
	var found []AttrInfo
	for _, field := range strings.Fields(text) {
		name, kind, _ := strings.Cut(strings.TrimSuffix(field, "!"), ":")
		found = append(found, AttrInfo{name, attrTypes[kind], strings.HasSuffix(field, "!")})
	}
	return found
}

// AMPClassInfo is a class that ops have under mixed precision.
type AMPClassInfo struct {
	Name        string // half, follow, full, mixed, as_is
	Description string
	ByRule      bool // an AMPRule may give it
}

// AMPClasses are those that there are.
func AMPClasses() ([]AMPClassInfo, error) {
	var found []AMPClassInfo
	err := rows(func(index C.size_t, e *C.cairn_error_t) C.cairn_status_t {
		info := C.cairn_go_amp_class_info()
		status := C.cairn_amp_class_describe(index, &info, e)
		if status == C.CAIRN_STATUS_OK {
			found = append(found, AMPClassInfo{C.GoString(info.name), C.GoString(info.description), info.by_rule != 0})
		}
		return status
	})
	return found, err
}

// FormatInfo is a format that tensors are stored in.
type FormatInfo struct {
	Name       string
	ComputedAs string // the format that kernels compute with
	Read       string // how ops read a parameter that is stored so: "as stored", "dequantised", "by updates"
	Bits       int    // of one value
	Block      int    // values that are stored together
	Row        int    // what the last dimension of a parameter is a multiple of
	ScaleBytes int    // what a block has besides its values
	Trains     bool   // a parameter that is trained may be stored so
}

// Formats are those that there are.
func Formats() ([]FormatInfo, error) {
	var found []FormatInfo
	err := rows(func(index C.size_t, e *C.cairn_error_t) C.cairn_status_t {
		info := C.cairn_go_format_info()
		status := C.cairn_format_describe(index, &info, e)
		if status == C.CAIRN_STATUS_OK {
			found = append(found, FormatInfo{C.GoString(info.name), C.GoString(info.computed_as), C.GoString(info.read),
				int(info.bits), int(info.block), int(info.row), int(info.scale_bytes), info.trains != 0})
		}
		return status
	})
	return found, err
}

// OptimizerInfo is an optimizer that plans know.
type OptimizerInfo struct {
	Name        string
	States      string // what it keeps of each parameter: words; "?name" after one: only where that hyper-parameter is not 0
	Hypers      string // "name=default", separated by blanks
	Description string
	Otherwise   string // the optimizer of those parameters that this one does not take; "": it takes all
}

// Optimizers are those that plans know.
func Optimizers() ([]OptimizerInfo, error) {
	var found []OptimizerInfo
	err := rows(func(index C.size_t, e *C.cairn_error_t) C.cairn_status_t {
		info := C.cairn_go_optimizer_info()
		status := C.cairn_optimizer_describe(index, &info, e)
		if status == C.CAIRN_STATUS_OK {
			found = append(found, OptimizerInfo{C.GoString(info.name), C.GoString(info.states), C.GoString(info.hypers),
				C.GoString(info.description), C.GoString(info.otherwise)})
		}
		return status
	})
	return found, err
}

// ScheduleInfo is a schedule of the learning rate that steppers know.
type ScheduleInfo struct {
	Name        string
	Parameters  string // "name=default", separated by blanks; "name=word|word": one of these; "name=": a list
	Description string
	Ends        bool // it is laid out over its steps, and needs to know where it ends
}

// Schedules are those that steppers know.
func Schedules() ([]ScheduleInfo, error) {
	var found []ScheduleInfo
	err := rows(func(index C.size_t, e *C.cairn_error_t) C.cairn_status_t {
		info := C.cairn_go_schedule_info()
		status := C.cairn_schedule_describe(index, &info, e)
		if status == C.CAIRN_STATUS_OK {
			found = append(found, ScheduleInfo{C.GoString(info.name), C.GoString(info.parameters),
				C.GoString(info.description), info.ends != 0})
		}
		return status
	})
	return found, err
}

// PlanCounterInfo is a number that plans count of how they do things: Plan.Counter.
type PlanCounterInfo struct {
	Name        string
	Unit        string // "count", "bytes", "seconds", or "tier": the number of a Tier
	Description string
}

// PlanCounters are those that plans count.
func PlanCounters() ([]PlanCounterInfo, error) {
	var found []PlanCounterInfo
	err := rows(func(index C.size_t, e *C.cairn_error_t) C.cairn_status_t {
		info := C.cairn_go_plan_counter_info()
		status := C.cairn_plan_counter_describe(index, &info, e)
		if status == C.CAIRN_STATUS_OK {
			found = append(found, PlanCounterInfo{C.GoString(info.name), C.GoString(info.unit),
				C.GoString(info.description)})
		}
		return status
	})
	return found, err
}

// SettingsOf says what has settings.
type SettingsOf uint32

// What has settings: an optimizer or a schedule, by its name, and steppers.
const (
	SettingsOfOptimizer SettingsOf = C.CAIRN_SETTINGS_OF_OPTIMIZER
	SettingsOfSchedule  SettingsOf = C.CAIRN_SETTINGS_OF_SCHEDULE
	SettingsOfStepper   SettingsOf = C.CAIRN_SETTINGS_OF_STEPPER
)

// SettingInfo is a number or a word that an optimizer, a schedule or a stepper takes, and what it may be.
type SettingInfo struct {
	Name         string
	Description  string
	Allowed      string   // what it may be, in words: "at least 0 and below 1"; "" where Words says it
	Words        []string // it is one of these, the first by default; none: it is a number
	DefaultValue float64
	Least, Most  float64 // the bounds of a number
	Above, Below bool    // Least, or Most, itself is out of range
	Integer      bool    // integers alone
	OrZero       bool    // 0 is in range, too, and stands for a default
	List         bool    // several such numbers, ascending
	Switch       bool    // 0 or 1: no or yes
}

// Settings are what an optimizer or a schedule of that name takes, or a stepper, whose name is "".
func Settings(of SettingsOf, name string) ([]SettingInfo, error) {
	var a arena
	defer a.free()
	owner := a.word(name)
	if a.err != nil {
		return nil, a.err
	}
	var found []SettingInfo
	err := rows(func(index C.size_t, e *C.cairn_error_t) C.cairn_status_t {
		info := C.cairn_go_setting_info()
		status := C.cairn_setting_describe(C.uint32_t(of), owner, index, &info, e)
		if status == C.CAIRN_STATUS_OK {
			is := func(trait C.uint32_t) bool { return info.traits&trait != 0 }
			found = append(found, SettingInfo{
				Name:         C.GoString(info.name),
				Description:  C.GoString(info.description),
				Allowed:      C.GoString(info.allowed),
				Words:        strings.Fields(C.GoString(info.words)),
				DefaultValue: float64(info.default_value),
				Least:        float64(info.least),
				Most:         float64(info.most),
				Above:        is(C.CAIRN_SETTING_ABOVE),
				Below:        is(C.CAIRN_SETTING_BELOW),
				Integer:      is(C.CAIRN_SETTING_INTEGER),
				OrZero:       is(C.CAIRN_SETTING_OR_ZERO),
				List:         is(C.CAIRN_SETTING_LIST),
				Switch:       is(C.CAIRN_SETTING_SWITCH),
			})
		}
		return status
	})
	return found, err
}
