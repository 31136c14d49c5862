package cairn

// #include "shim.h"
import "C"

// Lane is a queue of a device.
type Lane uint32

// Lanes.
const (
	LaneCompute Lane = C.CAIRN_LANE_COMPUTE
	LaneCopyOut Lane = C.CAIRN_LANE_COPY_OUT
	LaneCopyIn  Lane = C.CAIRN_LANE_COPY_IN
	LaneHost    Lane = C.CAIRN_LANE_HOST
	LaneHostIn  Lane = C.CAIRN_LANE_HOST_IN
	LaneHostOut Lane = C.CAIRN_LANE_HOST_OUT
)

// String is the word for a lane: compute, copy_out, copy_in, host, host_in or host_out.
func (l Lane) String() string {
	return word(uint32(l), "compute", "copy_out", "copy_in", "host", "host_in", "host_out")
}

// Span is when an op or copy of a traced run ran.
type Span struct {
	Name         string  // of the op, or of the value that is copied
	BeginSeconds float64 // since the run began
	EndSeconds   float64
	LiveBytes    uint64 // device bytes in use at that place of the program
	Lane         Lane
	Tier         Tier // of a copy: the other end; of an op: where it ran
}

// Trace makes later runs record when each op and copy ran, or no longer.
func (s *Session) Trace(on bool) error {
	return do(func(e *C.cairn_error_t) C.cairn_status_t { return C.cairn_session_trace(s.c(), flag(on), e) }, s.it())
}

// Spans are those of the last traced run, lane by lane, each in order.
func (s *Session) Spans() ([]Span, error) {
	var found []Span
	err := rows(func(index C.size_t, e *C.cairn_error_t) C.cairn_status_t {
		raw := C.cairn_go_span()
		status := C.cairn_session_span(s.c(), index, &raw, e)
		if status == C.CAIRN_STATUS_OK {
			found = append(found, Span{C.GoString(raw.name), float64(raw.begin_seconds), float64(raw.end_seconds),
				uint64(raw.live_bytes), Lane(raw.lane), Tier(raw.tier)})
		}
		return status
	}, s.it())
	return found, err
}
