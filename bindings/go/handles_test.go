package cairn_test

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"cairn"
)

// residentBytes is the memory of this process that is present.
func residentBytes(t *testing.T) int64 {
	t.Helper()
	runtime.GC()
	runtime.GC() // finalizers of the first one have run
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("this system does not tell how much memory a process takes: ", err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	ok(t, err)
	return pages * int64(os.Getpagesize())
}

// One object of each kind, closed by hand or left to the collector; errors and hooks among them. Returns how many.
func handles(t *testing.T, r *rig, checkpoint *cairn.Checkpoint, number int) int {
	count := 0
	close := func(made closer, err error) {
		ok(t, err)
		count++
		if number%2 == 0 {
			ok(t, made.Close())
		}
	}
	instance, err := cairn.NewInstance(cairn.InstanceOptions{Log: func(cairn.LogLevel, string) {}})
	ok(t, err)
	graph, err := cairn.NewGraph(instance)
	ok(t, err)
	graph.AddOp(sine())
	graph.Op("sine", []cairn.Value{graph.Input("x", cairn.F32, 4)})
	if graph.Gelu(99); graph.Err() == nil {
		t.Fatal("no error")
	}
	close(graph, nil)
	close(instance, nil)
	dataset, err := cairn.RandomDataset(r.instance, 1, 10, 4)
	close(dataset, err)
	tokenizer, err := cairn.OpenTokenizer(r.instance, "bytes", "")
	close(tokenizer, err)
	_, err = tokenizer.Encode("text")
	if number%2 != 0 {
		ok(t, err)
	}
	costs, err := cairn.NewCosts(r.device)
	close(costs, err)
	saved, err := checkpoint.Graph()
	close(saved, err)
	stepper, err := cairn.NewStepper(r.session, cairn.StepperOptions{})
	close(stepper, err)
	if number%100 == 0 { // these take threads, files and time
		device, err := cairn.OpenDevice(r.instance, "cpu", cairn.DeviceOptions{Threads: 1})
		ok(t, err)
		plan, err := cairn.NewPlan(r.graph, device, cairn.PlanOptions{})
		ok(t, err)
		session, err := cairn.NewSession(plan, device)
		ok(t, err)
		ok(t, session.Initialise(1))
		feed(t, session, 0, rows)
		own, err := cairn.NewStepper(session, cairn.StepperOptions{})
		ok(t, err)
		_, err = own.Micro(context.Background())
		close(own, err)
		close(session, nil)
		close(plan, nil)
		close(device, nil)
	}
	return count
}

func TestManyHandlesTakeNoMemory(t *testing.T) {
	wanted := 40_000
	if long {
		wanted = 1_000_000
	}
	r := newRig(t, cairn.PlanOptions{})
	folder := t.TempDir()
	ok(t, r.stepper(t, cairn.StepperOptions{}).Save(folder+"/step-1", cairn.SaveOptions{}))
	checkpoint, err := cairn.OpenCheckpoint(r.instance, folder)
	closing(t, checkpoint, err)

	number, count := 0, 0
	for ; count < wanted/2; number++ { // pools, pages and the notes of a race detector fill once
		count += handles(t, r, checkpoint, number)
	}
	before := residentBytes(t)
	for ; count < wanted; number++ {
		count += handles(t, r, checkpoint, number)
	}
	after := residentBytes(t)
	t.Logf("%d handles: %d KiB resident, %d KiB after the first half", count, after>>10, before>>10)
	// A leak of 100 bytes for each handle would be 50 MB of a million; of forty thousand, 500 bytes for each.
	if most := int64(8<<20) + 8*int64(wanted); after-before > most {
		t.Errorf("%d bytes more after %d handles; at most %d may be the allocators' own", after-before, count, most)
	}
}
