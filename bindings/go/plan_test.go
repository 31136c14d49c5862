package cairn_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"cairn"
)

func TestTablesOfAPlan(t *testing.T) {
	r := newRig(t, cairn.PlanOptions{})
	summary := must(r.plan.Summary())
	memory := must(r.plan.Memory(cairn.TierDevice))
	sum := memory.ParametersBytes + memory.GradientsBytes + memory.OptimizerBytes + memory.ActivationsBytes + memory.WorkspaceBytes
	if sum != summary.PeakBytes[cairn.TierDevice] || memory.PeakAt == "" {
		t.Errorf("%+v", memory)
	}
	if _, err := r.plan.Memory(3); !errors.Is(err, cairn.InvalidArgument) {
		t.Error(err)
	}
	values := must(r.plan.Values())
	if uint64(len(values)) != summary.ValueCount || len(values) == 0 {
		t.Errorf("%d rows of %d", len(values), summary.ValueCount)
	}
	found := false
	for _, value := range values {
		if value.Name == "first.weight" {
			found = value.Category == "parameter" && value.Decision == cairn.DecisionPersistent && value.Bytes == 4*16*width &&
				value.Decision.String() == "persistent" && value.Tier.String() == "device"
		}
	}
	if !found {
		t.Errorf("%+v", values)
	}
	if ops := must(r.plan.Ops()); len(ops) != 3 || ops[0].Op != "linear" || ops[0].Region != "first" || ops[0].AMPRule != -1 {
		t.Errorf("%+v", ops)
	}
}

func TestRegionPolicies(t *testing.T) {
	r := newRig(t, cairn.PlanOptions{})
	decisions := func(options cairn.PlanOptions) map[string]map[cairn.Decision]bool {
		plan, err := cairn.NewPlan(network(t, r.instance, 512, true), r.device, options)
		found := map[string]map[cairn.Decision]bool{}
		for _, value := range must(closing(t, plan, err).Values()) {
			if found[value.Region] == nil {
				found[value.Region] = map[cairn.Decision]bool{}
			}
			found[value.Region][value.Decision] = true
			if value.Decision == cairn.DecisionOffload && value.Tier != cairn.TierDisk {
				t.Errorf("%+v", value)
			}
		}
		return found
	}
	all := decisions(cairn.PlanOptions{Policy: cairn.Offload, Tiers: []cairn.Tier{cairn.TierDisk}})
	if !all["first"][cairn.DecisionOffload] {
		t.Fatal(all)
	}
	none := decisions(cairn.PlanOptions{
		Policy: cairn.Offload, Tiers: []cairn.Tier{cairn.TierDisk},
		Regions: []cairn.RegionPolicy{{Pattern: "*", Policy: cairn.Offload}, {Pattern: "f*t", Policy: cairn.Keep}},
	})
	if none["first"][cairn.DecisionOffload] {
		t.Error(none)
	}
	one := decisions(cairn.PlanOptions{Regions: []cairn.RegionPolicy{{Pattern: "first", Policy: cairn.Offload, Tier: cairn.TierDisk}}})
	if !one["first"][cairn.DecisionOffload] {
		t.Error(one)
	}
	_, err := cairn.NewPlan(r.graph, r.device, cairn.PlanOptions{Regions: []cairn.RegionPolicy{{Pattern: "frist", Policy: cairn.Keep}}})
	if !errors.Is(err, cairn.NotFound) || !strings.Contains(err.Error(), "'first'") {
		t.Error(err)
	}
}

func TestRenderingsAndProblems(t *testing.T) {
	r := newRig(t, cairn.PlanOptions{})
	for kind, begin := range map[cairn.Rendering]string{
		cairn.RenderPlanJSON: "{", cairn.RenderProblemJSON: "{", cairn.RenderHTML: "<!", cairn.RenderSVG: "<svg",
		cairn.RenderSweep: "{", cairn.RenderReport: "<!",
	} {
		text := must(r.plan.Render(kind, "A title"))
		if !bytes.HasPrefix(bytes.TrimSpace(text), []byte(begin)) {
			t.Errorf("%d: %.40s", kind, text)
		}
	}
	if file := must(r.plan.Render(cairn.RenderFile, "")); len(file) == 0 {
		t.Error("no file")
	}
	problem := must(r.plan.Render(cairn.RenderProblemJSON, ""))
	var solved struct {
		Format string `json:"format"`
	}
	ok(t, json.Unmarshal(must(cairn.SolveProblem(r.instance, problem, 0, cairn.RenderPlanJSON)), &solved))
	if solved.Format != "cairn.plan/1" {
		t.Error(solved)
	}
	_, err := cairn.SolveProblem(r.instance, problem, 1, cairn.RenderPlanJSON)
	if !errors.Is(err, cairn.OverBudget) {
		t.Error(err)
	}
	if _, err = cairn.SolveProblem(r.instance, nil, 0, cairn.RenderPlanJSON); !errors.Is(err, cairn.CorruptFile) {
		t.Error(err)
	}
	if _, err = r.plan.Render(99, ""); !errors.Is(err, cairn.InvalidArgument) {
		t.Error(err)
	}
}

func TestCostsAreMeasuredAndUsed(t *testing.T) {
	r := newRig(t, cairn.PlanOptions{})
	costs, err := cairn.NewCosts(r.device)
	closing(t, costs, err)
	if err := costs.AddRun(r.session, 0, 0); !errors.Is(err, cairn.WrongState) {
		t.Error(err)
	}
	ok(t, r.session.Trace(true))
	report := must(r.stepper(t, cairn.StepperOptions{}).Micro(context.Background()))
	spans := must(r.session.Spans())
	if len(spans) == 0 || spans[0].Lane != cairn.LaneCompute || spans[0].Name == "" ||
		spans[0].EndSeconds < spans[0].BeginSeconds {
		t.Errorf("%+v", spans)
	}
	ok(t, r.session.Trace(false))
	ok(t, costs.AddRun(r.session, report.Seconds, report.OptimizerSeconds))
	must(costs.MeasureKernels(r.plan, r.device))
	profile := must(costs.JSON())
	again, err := cairn.ReadCosts(r.instance, profile)
	closing(t, again, err)
	plan, err := cairn.NewPlan(r.graph, r.device, cairn.PlanOptions{Costs: again})
	closing(t, plan, err)
	if must(plan.Counter("measured_ops")) == 0 {
		t.Error("no op's seconds come from the profile")
	}
	if _, err := cairn.ReadCosts(r.instance, []byte("no json")); !errors.Is(err, cairn.CorruptFile) {
		t.Error(err)
	}
	if long { // takes seconds, and 512 MiB
		ok(t, costs.MeasureLink(r.device, cairn.TierHost))
	}
}

func TestTablesOfTheLibrary(t *testing.T) {
	for _, name := range []string{"half", "follow", "full"} {
		found := false
		for _, class := range must(cairn.AMPClasses()) {
			found = found || class.Name == name && class.ByRule
		}
		if !found {
			t.Error(name)
		}
	}
	optimizers := must(cairn.Optimizers())
	if optimizers[0].Name != "adamw" || !strings.Contains(optimizers[0].Hypers, "beta2=0.95") || optimizers[0].States != "m v" {
		t.Errorf("%+v", optimizers[0])
	}
	ends := map[string]bool{}
	for _, schedule := range must(cairn.Schedules()) {
		ends[schedule.Name] = schedule.Ends
	}
	if !ends["cosine"] || ends["constant"] {
		t.Error(ends)
	}
	linear := must(cairn.Ops())[1]
	if linear.Name != "linear" || len(linear.Inputs) != 3 || !linear.Inputs[2].Optional || linear.Attributes[0].Type != "word" {
		t.Errorf("%+v", linear)
	}
}

func TestScheduleRates(t *testing.T) {
	options := cairn.StepperOptions{Rate: 1, TotalSteps: 20, WarmupSteps: 4, Schedules: []cairn.Schedule{
		{Name: "linear", Steps: 8, Values: []cairn.ScheduleValue{{Name: "end_factor", Value: 0.5}}},
		{Name: "onecycle", Values: []cairn.ScheduleValue{{Name: "anneal", Word: "linear"}}},
	}}
	rates, momenta, err := cairn.ScheduleRates(options, 0, 20)
	ok(t, err)
	if len(rates) != 20 || rates[0] != 0.25 || rates[3] != 1 || !math.IsNaN(momenta[0]) || math.IsNaN(momenta[19]) {
		t.Error(rates, momenta)
	}
	unknown := cairn.StepperOptions{Schedules: []cairn.Schedule{{Name: "none"}}}
	if _, _, err = cairn.ScheduleRates(unknown, 0, 0); !errors.Is(err, cairn.InvalidArgument) {
		t.Error(err)
	}
	for _, count := range []int{-1, 1<<27 + 1, math.MaxInt64} {
		if _, _, err = cairn.ScheduleRates(options, 0, count); !errors.Is(err, cairn.InvalidArgument) {
			t.Error(count, err)
		}
	}
}

func TestDevices(t *testing.T) {
	instance := newInstance(t)
	devices := must(instance.Devices())
	names := map[string]bool{}
	for _, device := range devices {
		names[device.Name] = true
		if device.Name == "cpu" && (device.Threads < 1 || device.MemoryBytes == 0 || device.ISA == "" || device.Description == "") {
			t.Errorf("%+v", device)
		}
	}
	if !names["cpu"] {
		t.Error(devices)
	}
	checked, err := cairn.OpenDevice(instance, "reference", cairn.DeviceOptions{Verify: true, DiskDirectory: t.TempDir()})
	closing(t, checked, err)
	plan, err := cairn.NewPlan(network(t, instance, rows, true), checked, cairn.PlanOptions{
		Policy: cairn.Offload, Tiers: []cairn.Tier{cairn.TierDisk},
	})
	closing(t, plan, err)
	session, err := cairn.NewSession(plan, checked)
	closing(t, session, err)
	ok(t, session.Initialise(1))
	feed(t, session, 0, rows)
	stepper, err := cairn.NewStepper(session, cairn.StepperOptions{})
	closing(t, stepper, err)
	must(stepper.Micro(context.Background()))
}

// counting takes memory from the system, page by page.
type counting struct {
	mu     sync.Mutex
	blocks map[unsafe.Pointer][]byte
	peak   int
}

func (c *counting) Allocate(bytes, alignment uintptr) unsafe.Pointer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if bytes == 0 || alignment > uintptr(os.Getpagesize()) {
		return nil
	}
	block, err := syscall.Mmap(-1, 0, int(bytes), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil
	}
	c.blocks[unsafe.Pointer(&block[0])] = block
	if len(c.blocks) > c.peak {
		c.peak = len(c.blocks)
	}
	return unsafe.Pointer(&block[0])
}

func (c *counting) Release(block unsafe.Pointer, _, _ uintptr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := syscall.Munmap(c.blocks[block]); err != nil {
		panic(err)
	}
	delete(c.blocks, block)
}

func TestAllocatorAndLogOfTheProgram(t *testing.T) {
	memory := &counting{blocks: map[unsafe.Pointer][]byte{}}
	var messages []string
	instance, err := cairn.NewInstance(cairn.InstanceOptions{
		Allocator: memory,
		Log: func(level cairn.LogLevel, message string) {
			messages = append(messages, level.String()+": "+message)
			panic("a log that panics is not heard")
		},
	})
	closing(t, instance, err)
	device := openCPU(t, instance)
	graph, err := cairn.NewGraph(instance)
	closing(t, graph, err)
	x := graph.Input("x", cairn.F32, 4)
	graph.Parameter("unused", cairn.ParameterOptions{}, 4)
	w := graph.Parameter("w", cairn.ParameterOptions{}, 4)
	ok(t, graph.Freeze(cairn.FreezeOptions{Loss: graph.ReduceSum(graph.Mul(x, w))}))
	if len(messages) == 0 || !strings.Contains(strings.Join(messages, "\n"), "unused") {
		t.Error(messages)
	}
	plan, err := cairn.NewPlan(graph, device, cairn.PlanOptions{})
	closing(t, plan, err)
	session, err := cairn.NewSession(plan, device)
	closing(t, session, err)
	ok(t, session.Initialise(1))
	ok(t, session.Write("x", []float32{1, 2, 3, 4}))
	stepper, err := cairn.NewStepper(session, cairn.StepperOptions{})
	closing(t, stepper, err)
	must(stepper.Micro(context.Background()))
	for _, object := range []closer{stepper, session, plan, graph, device, instance} {
		ok(t, object.Close())
	}
	if memory.peak == 0 || len(memory.blocks) != 0 {
		t.Errorf("%d blocks at once, %d left", memory.peak, len(memory.blocks))
	}
}

// heap gives memory of Go, which cgo forbids; panicking gives none.
type heap struct{ refusing }

func (heap) Allocate(bytes, alignment uintptr) unsafe.Pointer {
	return unsafe.Pointer(&make([]byte, bytes+alignment)[0])
}

type panicking struct{ refusing }

func (panicking) Allocate(bytes, alignment uintptr) unsafe.Pointer { panic("no memory") }

func TestAllocatorsThatFail(t *testing.T) {
	for _, allocator := range []cairn.Allocator{&refusing{}, &heap{}, &panicking{}} {
		instance, err := cairn.NewInstance(cairn.InstanceOptions{Allocator: allocator})
		closing(t, instance, err)
		device := openCPU(t, instance)
		plan, err := cairn.NewPlan(network(t, instance, rows, true), device, cairn.PlanOptions{})
		closing(t, plan, err)
		_, err = cairn.NewSession(plan, device)
		var own *cairn.Error
		if !errors.As(err, &own) || own.Status != cairn.OutOfMemory || own.Fault == nil || own.Fault.RequestedBytes == 0 {
			t.Errorf("%T: %v", allocator, err)
		}
	}
}
