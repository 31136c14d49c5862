package cairn

// #include "shim.h"
import "C"

import "math"

// ScheduleValue is a parameter of a schedule, by name (Schedules tells them). A list has one of these for each element, ascending.
type ScheduleValue struct {
	Name  string
	Word  string // of a parameter that is one of a few words; "": Value counts
	Value float64
}

// Schedule is how the learning rate goes. Of several that follow each other all but the last say how many steps they last.
type Schedule struct {
	Name   string // "cosine", "linear", "wsd", ...
	Steps  int    // how many it lasts, before the next one begins; 0, of the last one alone: up to TotalSteps
	Values []ScheduleValue
}

func (a *arena) schedules(schedules []Schedule) ([]C.cairn_schedule_t, error) {
	raw := list[C.cairn_schedule_t](a, len(schedules))
	for i, schedule := range schedules {
		if schedule.Steps < 0 {
			return nil, invalid("schedule '%s' has %d steps; it must be 0 or more", schedule.Name, schedule.Steps)
		}
		values := list[C.cairn_schedule_value_t](a, len(schedule.Values))
		for j, value := range schedule.Values {
			values[j].name, values[j].word, values[j].value = a.text(value.Name), a.word(value.Word), C.double(value.Value)
		}
		raw[i].name, raw[i].steps = a.text(schedule.Name), C.uint64_t(schedule.Steps)
		raw[i].values, raw[i].value_count = first(values), C.uint64_t(len(values))
	}
	return raw, a.err
}

// maxRates is how many rates one call gives: 1 GiB of them, and as much of momenta. Go ends a program whose memory has no room.
const maxRates = 1 << 27

// ScheduleRates are the rates, and the momenta, that a stepper with these options would give the updates of steps first to
// first + count - 1, counted from 0. A momentum is NaN where the schedule has none.
func ScheduleRates(options StepperOptions, first uint64, count int) (rates, momenta []float64, err error) {
	if count < 0 {
		return nil, nil, invalid("count is %d; it must be 0 or more", count)
	}
	if count > maxRates {
		return nil, nil, invalid("count is %d; at most %d are given at once: ask for them in parts", count, maxRates)
	}
	a := &arena{}
	defer a.free()
	raw, err := options.raw(a)
	if err != nil {
		return nil, nil, err
	}
	rates, momenta = make([]float64, count+1), make([]float64, count+1)
	for i := range momenta {
		momenta[i] = math.NaN()
	}
	err = capture(func(e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_schedule_rates(&raw, C.uint64_t(first), C.size_t(count), (*C.double)(&rates[0]), (*C.double)(&momenta[0]), e)
	}, nil)
	if err != nil {
		return nil, nil, err
	}
	return rates[:count:count], momenta[:count:count], nil
}
