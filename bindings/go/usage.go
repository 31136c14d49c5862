package cairn

// #include "shim.h"
import "C"

// Usage is measured bytes of a tier.
type Usage struct {
	ReservedBytes uint64 // taken from the system for this session's device, now
	PeakBytes     uint64 // highest end of any byte used since the session was made
	LivePeakBytes uint64
	PinnedBytes   uint64 // of those reserved, locked in memory
	StagingBytes  uint64 // more host memory, through which copies go
	// Of the device tier, as its driver counts for all programs: before the session took its own, and now. 0: it does not say.
	DriverBeforeBytes, DriverBytes uint64
}

// Usage tells how many bytes of a tier are and were in use. It may be called while the session runs.
func (s *Session) Usage(tier Tier) (Usage, error) {
	if err := s.it().use(); err != nil {
		return Usage{}, err
	}
	defer s.done()
	raw := C.cairn_go_tier_usage()
	err := capture(func(e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_session_usage(s.c(), C.uint32_t(tier), &raw, e)
	}, nil)
	if err != nil {
		return Usage{}, err
	}
	return Usage{
		ReservedBytes:     uint64(raw.reserved_bytes),
		PeakBytes:         uint64(raw.peak_bytes),
		LivePeakBytes:     uint64(raw.live_peak_bytes),
		PinnedBytes:       uint64(raw.pinned_bytes),
		StagingBytes:      uint64(raw.staging_bytes),
		DriverBeforeBytes: uint64(raw.driver_before_bytes),
		DriverBytes:       uint64(raw.driver_bytes),
	}, nil
}
