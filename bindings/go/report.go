package cairn

// #include "shim.h"
import "C"

// Outcome is what a micro-batch came to.
type Outcome uint32

// Outcomes.
const (
	Accumulated      Outcome = C.CAIRN_STEP_ACCUMULATED       // more micro-batches belong to the effective batch
	Applied          Outcome = C.CAIRN_STEP_APPLIED           // parameters were updated
	SkippedNonFinite Outcome = C.CAIRN_STEP_SKIPPED_NONFINITE // loss or gradients were not finite; parameters do not change
	SkippedEmpty     Outcome = C.CAIRN_STEP_SKIPPED_EMPTY     // the weights add up to 0, so that nothing counts; parameters do not change
	Gathered         Outcome = C.CAIRN_STEP_GATHERED          // the first of two passes over a micro-batch, for values of the effective batch
)

// String is the word for an outcome: accumulated, applied, skipped_nonfinite, skipped_empty or gathered.
func (o Outcome) String() string {
	return word(uint32(o), "accumulated", "applied", "skipped_nonfinite", "skipped_empty", "gathered")
}

// StepReport is what a micro-batch did. Arrays are by tier.
type StepReport struct {
	Outcome              Outcome
	Step                 uint64 // effective batches completed (applied or skipped) after this call
	Micro                int    // micro-batches accumulated after this call
	SkippedSteps         uint64
	Loss, Weight         float64 // of this micro-batch: sum / weight, and weight
	StepLoss, StepWeight float64 // of the effective batch so far
	GradientNorm         float64 // before clipping; with Applied and SkippedNonFinite
	Rate, LossScale      float64 // used by this micro-batch
	Seconds              float64
	StallSeconds         float64
	OptimizerSeconds     float64
	SubmitSeconds        float64   // the program handed its work to the device
	CopiedOutBytes       [3]uint64 // from the device to the tier
	CopiedInBytes        [3]uint64 // and back
	CopyingOutSeconds    [3]float64
	CopyingInSeconds     [3]float64
	FellBack             bool // the disk tier failed; this micro-batch ran again, from a plan without it
}

func reportOf(raw *C.cairn_step_report_t) StepReport {
	report := StepReport{
		Outcome:          Outcome(raw.outcome),
		Step:             uint64(raw.step),
		Micro:            int(raw.micro),
		SkippedSteps:     uint64(raw.skipped_steps),
		Loss:             float64(raw.loss),
		Weight:           float64(raw.weight),
		StepLoss:         float64(raw.step_loss),
		StepWeight:       float64(raw.step_weight),
		GradientNorm:     float64(raw.gradient_norm),
		Rate:             float64(raw.rate),
		LossScale:        float64(raw.loss_scale),
		Seconds:          float64(raw.seconds),
		StallSeconds:     float64(raw.stall_seconds),
		OptimizerSeconds: float64(raw.optimizer_seconds),
		SubmitSeconds:    float64(raw.submit_seconds),
		CopiedOutBytes:   three(raw.copied_out_bytes),
		CopiedInBytes:    three(raw.copied_in_bytes),
		FellBack:         raw.fell_back != 0,
	}
	for tier := range report.CopyingOutSeconds {
		report.CopyingOutSeconds[tier] = float64(raw.copying_out_seconds[tier])
		report.CopyingInSeconds[tier] = float64(raw.copying_in_seconds[tier])
	}
	return report
}
