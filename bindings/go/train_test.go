package cairn_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"cairn"
)

// steps trains on micro-batches from to to - 1, and returns their losses.
func steps(t *testing.T, session *cairn.Session, stepper *cairn.Stepper, from, to int) []float64 {
	t.Helper()
	var losses []float64
	for i := from; i < to; i++ {
		feed(t, session, i, rows)
		losses = append(losses, must(stepper.Micro(context.Background())).Loss)
	}
	return losses
}

func TestTrainingLearns(t *testing.T) {
	r := newRig(t, cairn.PlanOptions{Optimizer: "adamw"})
	losses := steps(t, r.session, r.stepper(t, cairn.StepperOptions{Rate: 0.01}), 0, 200)
	if first, last := losses[0], losses[len(losses)-1]; !(last < first/5) {
		t.Errorf("from %g to %g", first, last)
	}
	summary, usage := must(r.plan.Summary()), must(r.session.Usage(cairn.TierDevice))
	if summary.PeakBytes[cairn.TierDevice] != usage.PeakBytes || usage.PeakBytes == 0 {
		t.Errorf("planned %d, measured %d", summary.PeakBytes[cairn.TierDevice], usage.PeakBytes)
	}
}

// Kept, recomputed, offloaded: the same bits. And saved in the middle of an effective batch, resumed elsewhere.
func TestResumeIsTheSameToTheBit(t *testing.T) {
	options := cairn.StepperOptions{
		Rate: 0.01, MicroSteps: 2, TotalSteps: 20, WarmupSteps: 2, Schedules: []cairn.Schedule{{Name: "cosine"}},
	}
	folder := t.TempDir()
	whole := newRig(t, cairn.PlanOptions{})
	stepper := whole.stepper(t, options)
	steps(t, whole.session, stepper, 0, 15)
	notes := filepath.Join(folder, "notes.txt")
	ok(t, os.WriteFile(notes, []byte("of the program's own"), 0o600))
	directory := filepath.Join(folder, "run", "step-7")
	ok(t, os.Mkdir(filepath.Dir(directory), 0o700))
	ok(t, stepper.Save(directory, cairn.SaveOptions{
		Metadata: map[string]string{"recipe": "sum", "empty": ""}, Files: []string{notes},
	}))
	want := steps(t, whole.session, stepper, 15, 40)
	digest := must(whole.session.Digest())

	for _, plan := range []cairn.PlanOptions{
		{}, {Policy: cairn.Recompute}, {Policy: cairn.Offload, Tiers: []cairn.Tier{cairn.TierHost}},
	} {
		resumed := newRig(t, plan)
		checkpoint, err := cairn.OpenCheckpoint(resumed.instance, filepath.Dir(directory))
		closing(t, checkpoint, err)
		if word, there := checkpoint.Metadata("recipe"); word != "sum" || !there {
			t.Error(word, there)
		}
		if word, there := checkpoint.Metadata("empty"); word != "" || !there {
			t.Error(word, there)
		}
		if word, there := checkpoint.Metadata("none"); word != "" || there {
			t.Error(word, there)
		}
		if checkpoint.Directory() != directory {
			t.Error(checkpoint.Directory())
		}
		if text := must(os.ReadFile(filepath.Join(directory, "notes.txt"))); string(text) != "of the program's own" {
			t.Error(string(text))
		}
		again := resumed.stepper(t, options)
		ok(t, again.Restore(checkpoint))
		if report := must(again.Report()); report.Step != 7 || report.Micro != 1 {
			t.Errorf("%+v", report)
		}
		have := steps(t, resumed.session, again, 15, 40)
		for i := range want {
			if have[i] != want[i] {
				t.Fatalf("%v: loss %d is %g, not %g", plan.Policy, i, have[i], want[i])
			}
		}
		if got := must(resumed.session.Digest()); got != digest {
			t.Errorf("%v: %s, not %s", plan.Policy, got, digest)
		}
	}
}

func TestCheckpointsAreInspectedLoadedAndRemoved(t *testing.T) {
	r := newRig(t, cairn.PlanOptions{})
	stepper := r.stepper(t, cairn.StepperOptions{})
	steps(t, r.session, stepper, 0, 3)
	directory := filepath.Join(t.TempDir(), "step-3")
	ok(t, stepper.Save(directory, cairn.SaveOptions{}))
	var told map[string]any
	ok(t, json.Unmarshal(must(r.instance.Inspect(directory)), &told))
	if len(told) == 0 {
		t.Error(told)
	}
	checkpoint, err := cairn.OpenCheckpoint(r.instance, directory)
	closing(t, checkpoint, err)
	graph, err := checkpoint.Graph()
	closing(t, graph, err)
	if len(must(graph.Values())) != len(must(r.graph.Values())) {
		t.Error("another graph")
	}
	other := newRig(t, cairn.PlanOptions{NoOptimizer: true})
	ok(t, other.session.Initialise(77))
	ok(t, other.session.Load(checkpoint))
	if must(other.session.Digest()) != must(r.session.Digest()) {
		t.Error("other parameters")
	}
	ok(t, cairn.RemoveCheckpoint(r.instance, directory))
	if _, err := os.Stat(directory); !os.IsNotExist(err) {
		t.Error(err)
	}
	if err := cairn.RemoveCheckpoint(r.instance, directory); !errors.Is(err, cairn.NotFound) {
		t.Error(err)
	}
}

func TestWeightsAndGraphsAsFiles(t *testing.T) {
	r := newRig(t, cairn.PlanOptions{})
	folder := t.TempDir()
	names := []cairn.Rename{{Ours: "first.weight", Theirs: "w1", Transposed: true}, {Ours: "first.bias", Theirs: "b1"}}
	weights := filepath.Join(folder, "model.safetensors")
	ok(t, r.session.Export(weights, names))
	other := newRig(t, cairn.PlanOptions{})
	ok(t, other.session.Initialise(99))
	if err := other.session.Import(weights, nil); !errors.Is(err, cairn.InvalidArgument) {
		t.Error(err)
	}
	ok(t, other.session.Import(weights, names))
	if must(other.session.Digest()) != must(r.session.Digest()) {
		t.Error("other parameters")
	}
	options := cairn.ExportOptions{Directory: true, ShardBytes: 64, Files: []string{weights}}
	model := filepath.Join(folder, "model")
	ok(t, r.session.ExportAs(model, names, options))
	ok(t, other.session.Initialise(99))
	ok(t, other.session.Import(model, names))
	if must(other.session.Digest()) != must(r.session.Digest()) {
		t.Error("other parameters")
	}
	if err := r.session.ExportAs(model, names, options); !errors.Is(err, cairn.InvalidArgument) {
		t.Error(err)
	}
	if err := r.session.ExportAs(weights, names, cairn.ExportOptions{Dtype: "int8"}); !errors.Is(err, cairn.InvalidArgument) {
		t.Error(err)
	}
	path := filepath.Join(folder, "graph.cairn")
	ok(t, r.graph.Save(path))
	graph, err := cairn.LoadGraph(r.instance, path)
	closing(t, graph, err)
	for i, value := range must(graph.Values()) {
		want := must(r.graph.Info(cairn.Value(i + 1)))
		if want.Name != value.Name || want.Bytes != value.Bytes || want.Kind != value.Kind {
			t.Errorf("%+v, not %+v", value, want)
		}
	}
	if r.graph.Find("y") == cairn.None || r.graph.Find("nowhere") != cairn.None {
		t.Error("find")
	}
}

func TestSlicesOfTheRightTypeAlone(t *testing.T) {
	r := newRig(t, cairn.PlanOptions{})
	contains(t, r.session.Write("x", make([]int32, rows*width)), "'x' is f32", "[]int32", "[]float32")
	_, err := cairn.ReadAll[int32](r.session, "first.weight/gradient")
	contains(t, err, "'first.weight/gradient' is f32", "[]int32")
	info, err := r.session.Info("x")
	if err != nil || info.DType != cairn.F32 || info.Kind != cairn.KindInput || info.Bytes != rows*width*4 {
		t.Errorf("x is %v, %v", info, err)
	}
	if _, err := r.session.Info("nothing"); !errors.Is(err, cairn.NotFound) {
		t.Errorf("of a name that is not there: %v", err)
	}
	contains(t, r.session.Write("x", "text"), "string", "[]float32")
	contains(t, r.session.Write("x", []float32{}), "'x'", "0 were given")
	contains(t, r.session.Read("x", make([]float64, rows*width/2)), "[]float64")
	ok(t, r.session.Write("x", make([]byte, 4*rows*width)))
	if err := r.session.Write("nowhere", []float32{1}); !errors.Is(err, cairn.NotFound) {
		t.Error(err)
	}
	if _, err := cairn.ReadAll[float32](r.session, "nowhere"); !errors.Is(err, cairn.NotFound) {
		t.Error(err)
	}
	if _, err := cairn.ReadAll[float32](r.session, "loss"); !errors.Is(err, cairn.InvalidArgument) {
		t.Error(err) // it is float64
	}
}

func TestAccumulatingApplyingAndDiscarding(t *testing.T) {
	r := newRig(t, cairn.PlanOptions{})
	stepper := r.stepper(t, cairn.StepperOptions{MicroSteps: 4})
	if _, err := stepper.Apply(); !errors.Is(err, cairn.WrongState) {
		t.Error(err)
	}
	for micro := 1; micro <= 3; micro++ {
		report := must(stepper.Micro(context.Background()))
		if report.Outcome != cairn.Accumulated || report.Micro != micro || report.Outcome.String() != "accumulated" {
			t.Errorf("%+v", report)
		}
	}
	if err := stepper.Configure(cairn.StepperOptions{}); !errors.Is(err, cairn.WrongState) {
		t.Error(err)
	}
	report := must(stepper.Apply())
	if report.Outcome != cairn.Applied || report.StepWeight != 3*rows || !(report.GradientNorm > 0) {
		t.Errorf("%+v", report)
	}
	must(stepper.Micro(context.Background()))
	ok(t, stepper.Discard())
	ok(t, stepper.Configure(cairn.StepperOptions{MicroSteps: 1, Rate: 0.5}))
	if report = must(stepper.Micro(context.Background())); report.Outcome != cairn.Applied || report.Rate != 0.5 {
		t.Errorf("%+v", report)
	}
	feed(t, r.session, 0, rows)
	bad := make([]float32, rows*width)
	bad[0] = float32(math.Inf(1))
	ok(t, r.session.Write("x", bad))
	before := must(r.session.Digest())
	if report = must(stepper.Micro(context.Background())); report.Outcome != cairn.SkippedNonFinite || report.SkippedSteps != 1 {
		t.Errorf("%+v", report)
	}
	if must(r.session.Digest()) != before {
		t.Error("a skipped step changed parameters")
	}
}

func TestOptimizersGroupsAndHypers(t *testing.T) {
	r := newRig(t, cairn.PlanOptions{
		Optimizer: "sgd", Hypers: []cairn.Hyper{{Rest: true, Name: "momentum", Value: 0.9}},
		Groups: []cairn.ParameterGroup{{Pattern: "*.bias", Optimizer: "adamw"}},
	})
	stepper := r.stepper(t, cairn.StepperOptions{Rate: 0.1, Hypers: []cairn.Hyper{{Group: "*.bias", Name: "beta1", Value: 0.8}}})
	for _, row := range []struct {
		group, name string
		want        float64
	}{{"", "momentum", 0.9}, {"*.bias", "beta1", 0.8}, {"*.bias", "beta2", 0.95}} {
		if got, err := stepper.Get(row.group, row.name); err != nil || got != row.want {
			t.Errorf("%v: %g, %v", row, got, err)
		}
	}
	ok(t, stepper.Set(cairn.Hyper{Rest: true, Name: "momentum", Value: 0.5}))
	ok(t, stepper.Set(cairn.Hyper{Group: "*.bias", Name: "rate_scale", Value: 2}))
	if got := must(stepper.Get("", "momentum")); got != 0.5 {
		t.Error(got)
	}
	contains(t, stepper.Set(cairn.Hyper{Name: "no_such"}), "no_such")
	losses := steps(t, r.session, stepper, 0, 50)
	if !(losses[49] < losses[0]) {
		t.Error(losses[0], losses[49])
	}
	if _, err := cairn.NewPlan(r.graph, r.device, cairn.PlanOptions{Optimizer: "magic"}); !errors.Is(err, cairn.InvalidArgument) {
		t.Error(err)
	}
}

// One store, two programs: trains on rows of eight, and looks at others.
func TestProgramsOfOneStore(t *testing.T) {
	instance := newInstance(t)
	device := openCPU(t, instance)
	plans, err := cairn.NewPlanSet([]cairn.Program{
		{Name: "train", Graph: network(t, instance, rows, true)}, {Name: "half", Graph: network(t, instance, rows/2, true)},
		{Name: "test", Graph: network(t, instance, 64, false)},
	}, device, cairn.PlanOptions{})
	ok(t, err)
	sessions := must(cairn.NewSessionSet(plans, device))
	train, half, test := sessions[0], sessions[1], sessions[2]
	ok(t, train.Initialise(1))
	stepper, err := cairn.NewStepper(train, cairn.StepperOptions{Rate: 0.01})
	closing(t, stepper, err)
	evaluate := func() float64 {
		feed(t, test, 5000, 64)
		ok(t, test.Run(context.Background()))
		return must(cairn.ReadAll[float64](test, "error"))[0] / 64
	}
	first := evaluate()
	for i := 0; i < 150; i++ {
		feed(t, train, i, rows)
		must(stepper.Micro(context.Background()))
		feed(t, half, 1000+i, rows/2)
		if report := must(stepper.MicroOn(context.Background(), half)); report.Weight != rows/2 {
			t.Errorf("%+v", report)
		}
	}
	if last := evaluate(); !(last < first/3) {
		t.Errorf("from %g to %g", first, last)
	}
	if must(train.Digest()) != must(test.Digest()) {
		t.Error("two stores")
	}
	stranger := newRig(t, cairn.PlanOptions{})
	if _, err := stepper.MicroOn(context.Background(), stranger.session); !errors.Is(err, cairn.InvalidArgument) {
		t.Error(err)
	}
	for _, session := range sessions {
		ok(t, session.Close())
	}
}

func TestMixedPrecision(t *testing.T) {
	half := newRig(t, cairn.PlanOptions{AMP: cairn.AMPFP16})
	stepper := half.stepper(t, cairn.StepperOptions{
		LossScale: 1 << 10, LossScaleInterval: 2, LossScaleGrowth: 4, LossScaleBackoff: 0.25,
	})
	feed(t, half.session, 0, rows)
	var scales []float64
	for i := 0; i < 4; i++ {
		scales = append(scales, must(stepper.Micro(context.Background())).LossScale)
	}
	if y := must(cairn.ReadAll[float32](half.session, "y")); len(y) != rows || y[0] == 0 {
		t.Error(y) // outputs stay what the graph says
	}
	if scales[0] != 1<<10 || scales[2] != 1<<12 {
		t.Error(scales)
	}
	plan, err := cairn.NewPlan(half.graph, half.device, cairn.PlanOptions{
		AMP: cairn.AMPBF16, AMPRules: []cairn.AMPRule{{Op: "linear", Region: "first", Class: "full"}},
	})
	closing(t, plan, err)
	classes := map[string]string{}
	for _, op := range must(plan.Ops()) {
		if op.Op == "linear" {
			classes[op.Region] = op.AMPClass
			if (op.AMPRule == 0) != (op.Region == "first") {
				t.Errorf("%+v", op)
			}
		}
	}
	if classes["first"] != "full" || classes["second"] != "half" {
		t.Error(classes)
	}
	_, err = cairn.NewPlan(half.graph, half.device, cairn.PlanOptions{
		AMP: cairn.AMPBF16, AMPRules: []cairn.AMPRule{{Op: "rope", Class: "full"}},
	})
	contains(t, err, "INVALID_ARGUMENT", "rope")
}

func TestParametersStoredAsBF16(t *testing.T) {
	full, half := newRig(t, cairn.PlanOptions{AMP: cairn.AMPBF16}), newRig(t, cairn.PlanOptions{AMP: cairn.AMPBF16, Parameters: cairn.BF16})
	if a, b := must(full.plan.Summary()).ParametersBytes, must(half.plan.Summary()).ParametersBytes; !(b < a) {
		t.Errorf("%d bytes of parameters, %d as float32", b, a)
	}
	if losses := steps(t, half.session, half.stepper(t, cairn.StepperOptions{Rate: 0.01}), 0, 200); !(losses[199] < losses[0]) {
		t.Error(losses[0], losses[199])
	}
	_, err := cairn.NewPlan(full.graph, full.device, cairn.PlanOptions{Parameters: cairn.I32})
	contains(t, err, "INVALID_ARGUMENT")
}
