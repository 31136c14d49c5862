package cairn

// #include "shim.h"
import "C"

// PlanSummary is a plan in numbers. Arrays are by tier; seconds are predicted, of one micro-batch.
type PlanSummary struct {
	PeakBytes       [3]uint64 // what a session takes, and the highest byte that a run uses
	BudgetBytes     uint64    // 0: none
	LivePeakBytes   uint64    // device: most bytes alive at once
	PersistentBytes uint64    // device: parameters, gradients, moments, packed weights, inputs
	// At the peak.
	ParametersBytes, GradientsBytes, OptimizerBytes, ActivationsBytes, WorkspaceBytes uint64
	ActivationPeakBytes                                                               uint64 // most bytes of activations at once
	// Of values that backward needs.
	KeepBytes, RecomputeBytes, OffloadHostBytes, OffloadDiskBytes uint64
	PredictedSeconds, KeepAllSeconds                              float64
	BoundSeconds                                                  float64 // no plan under the budget is faster
	Gap                                                           float64 // (predicted - bound) / bound
	SolveSeconds                                                  float64
	ValueCount, OpCount, InstructionCount, RegionCount            uint64
	UpdateSeconds                                                 float64 // once per step
	HostSeconds                                                   float64 // inputs written, work submitted, loss read
	MeasuredOpCount                                               uint64  // ops whose seconds come from the profile
	// Of optimizer state and master weights that live in a tier.
	OptimizerHostBytes, OptimizerDiskBytes uint64
	PackedBytes                            uint64 // persistent packed weights, for faster products
	UnpackedBytes                          uint64 // packed weights given up to meet the budget
	InPlaceOpCount                         uint64 // ops that write over an input
	UpdateAt                               Tier   // Host: what lives on the host is updated there, where it lies
	DeferredUpdateCount                    uint64 // parameters that the next micro-batch updates, or whoever looks at them
	HostUpdateCount                        uint64 // of those, that the host's processors update, for a device with its own memory
	HostAddCount                           uint64 // whose gradients the host's processors add up there
}

// Summary is the plan in numbers.
func (p *Plan) Summary() (PlanSummary, error) {
	raw := C.cairn_go_plan_summary()
	err := do(func(e *C.cairn_error_t) C.cairn_status_t { return C.cairn_plan_summary(p.c(), &raw, e) }, p.it())
	if err != nil {
		return PlanSummary{}, err
	}
	return PlanSummary{
		PeakBytes:           three(raw.peak_bytes),
		BudgetBytes:         uint64(raw.budget_bytes),
		LivePeakBytes:       uint64(raw.live_peak_bytes),
		PersistentBytes:     uint64(raw.persistent_bytes),
		ParametersBytes:     uint64(raw.parameters_bytes),
		GradientsBytes:      uint64(raw.gradients_bytes),
		OptimizerBytes:      uint64(raw.optimizer_bytes),
		ActivationsBytes:    uint64(raw.activations_bytes),
		WorkspaceBytes:      uint64(raw.workspace_bytes),
		ActivationPeakBytes: uint64(raw.activation_peak_bytes),
		KeepBytes:           uint64(raw.keep_bytes),
		RecomputeBytes:      uint64(raw.recompute_bytes),
		OffloadHostBytes:    uint64(raw.offload_host_bytes),
		OffloadDiskBytes:    uint64(raw.offload_disk_bytes),
		PredictedSeconds:    float64(raw.predicted_seconds),
		KeepAllSeconds:      float64(raw.keep_all_seconds),
		BoundSeconds:        float64(raw.bound_seconds),
		Gap:                 float64(raw.gap),
		SolveSeconds:        float64(raw.solve_seconds),
		ValueCount:          uint64(raw.value_count),
		OpCount:             uint64(raw.op_count),
		InstructionCount:    uint64(raw.instruction_count),
		RegionCount:         uint64(raw.region_count),
		UpdateSeconds:       float64(raw.update_seconds),
		HostSeconds:         float64(raw.host_seconds),
		MeasuredOpCount:     uint64(raw.measured_op_count),
		OptimizerHostBytes:  uint64(raw.optimizer_host_bytes),
		OptimizerDiskBytes:  uint64(raw.optimizer_disk_bytes),
		PackedBytes:         uint64(raw.packed_bytes),
		UnpackedBytes:       uint64(raw.unpacked_bytes),
		InPlaceOpCount:      uint64(raw.in_place_op_count),
		UpdateAt:            Tier(raw.update_at),
		DeferredUpdateCount: uint64(raw.deferred_update_count),
		HostUpdateCount:     uint64(raw.host_update_count),
		HostAddCount:        uint64(raw.host_add_count),
	}, nil
}

// PlanMemory is what the bytes of a tier are for, at the tier's peak, which they add up to.
type PlanMemory struct {
	ParametersBytes, GradientsBytes, OptimizerBytes, ActivationsBytes, WorkspaceBytes uint64
	PeakAt                                                                            string // the op there; "": what persists is all
}

// Memory is what the bytes of a tier are for.
func (p *Plan) Memory(tier Tier) (PlanMemory, error) {
	raw := C.cairn_go_plan_memory()
	var memory PlanMemory
	err := do(func(e *C.cairn_error_t) C.cairn_status_t {
		status := C.cairn_plan_memory(p.c(), C.uint32_t(tier), &raw, e)
		if status == C.CAIRN_STATUS_OK {
			memory = PlanMemory{
				ParametersBytes:  uint64(raw.parameters_bytes),
				GradientsBytes:   uint64(raw.gradients_bytes),
				OptimizerBytes:   uint64(raw.optimizer_bytes),
				ActivationsBytes: uint64(raw.activations_bytes),
				WorkspaceBytes:   uint64(raw.workspace_bytes),
				PeakAt:           C.GoString(raw.peak_at),
			}
		}
		return status
	}, p.it())
	return memory, err
}

func three(raw [3]C.uint64_t) [3]uint64 {
	return [3]uint64{uint64(raw[0]), uint64(raw[1]), uint64(raw[2])}
}

// PlanRates is what a plan's predicted seconds rest on.
type PlanRates struct {
	Source                                string  // "measured", "cached", "file", "model", "profile" or "device-model"
	Path                                  string  // of the file that rates stand in; "": in none
	Notice                                string  // why rates were not kept, or what was kept is not used; "": nothing
	F32FlopsPerSecond, Bf16FlopsPerSecond float64 // of long products
	MemoryBytesPerSecond                  float64 // of streams that no cache holds
	MeasuringSeconds                      float64 // that measuring took, now or then
}

// Rates says what the plan's predicted seconds rest on.
func (p *Plan) Rates() (PlanRates, error) {
	raw := C.cairn_go_plan_rates()
	made := PlanRates{}
	err := do(func(e *C.cairn_error_t) C.cairn_status_t {
		status := C.cairn_plan_rates(p.c(), &raw, e)
		if status == C.CAIRN_STATUS_OK { // its texts are the plan's, which lives until the call has ended
			made = PlanRates{
				Source:               C.GoString(raw.source),
				Path:                 C.GoString(raw.path),
				Notice:               C.GoString(raw.notice),
				F32FlopsPerSecond:    float64(raw.f32_flops_per_second),
				Bf16FlopsPerSecond:   float64(raw.bf16_flops_per_second),
				MemoryBytesPerSecond: float64(raw.memory_bytes_per_second),
				MeasuringSeconds:     float64(raw.measuring_seconds),
			}
		}
		return status
	}, p.it())
	return made, err
}
