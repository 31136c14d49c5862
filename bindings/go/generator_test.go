package cairn_test

import (
	"reflect"
	"testing"

	"cairn"
)

const vocabulary = 5

// counter is a model that counts the tokens that its cache holds: the next is the one after that which was there most often.
func counter(t *testing.T, instance *cairn.Instance, length int) *cairn.Graph {
	made, err := cairn.NewGraph(instance)
	g := closing(t, made, err)
	tokens, position := g.Input("tokens", cairn.I32, 2, length), g.Input("position", cairn.I32, 2)
	count := g.Input("count", cairn.I32, 2)
	x := g.Embedding(g.Parameter("table", cairn.ParameterOptions{}, vocabulary, vocabulary), tokens)
	cache := g.Cache("cache", cairn.F32, 0, 2, 4, vocabulary)
	all := g.Op("append", []cairn.Value{cache, x, position, count})
	counts := g.Op("reduce_sum", []cairn.Value{all}, cairn.WithAxes([]int{1}))
	logits := g.Op("linear", []cairn.Value{counts, g.Parameter("after", cairn.ParameterOptions{}, vocabulary, vocabulary)})
	g.Name(logits, "logits")
	ok(t, g.Freeze(cairn.FreezeOptions{Outputs: []cairn.Value{logits}}))
	return g
}

// TestDraw: a token from logits of one's own.
func TestDraw(t *testing.T) {
	by, logits := cairn.NewSampling(), []float32{0.5, 2, 1}
	by.Temperature = 0
	if token := must(by.Draw(logits, nil)); token != 1 {
		t.Errorf("%v", token)
	}
	by.RepetitionPenalty = 4
	if token := must(by.Draw(logits, []int32{1})); token != 2 {
		t.Errorf("%v", token)
	}
	_, err := by.Draw(logits, []int32{3})
	contains(t, err, "INVALID_ARGUMENT", "token 3")
	_, err = by.Draw(nil, nil)
	contains(t, err, "INVALID_ARGUMENT", "0 logits")
}

// TestGenerator: samples go on each by itself, and what is wrong is told.
func TestGenerator(t *testing.T) {
	instance := newInstance(t)
	device := openCPU(t, instance)
	programs := []cairn.Program{{Name: "one", Graph: counter(t, instance, 1)}, {Name: "many", Graph: counter(t, instance, 3)}}
	plans := must(cairn.NewPlanSet(programs, device, cairn.PlanOptions{}))
	sessions := must(cairn.NewSessionSet(plans, device))
	for i := range plans {
		closing(t, plans[i], nil)
		closing(t, sessions[i], nil)
	}
	ok(t, sessions[0].Initialise(1))
	table, after := make([]float32, vocabulary*vocabulary), make([]float32, vocabulary*vocabulary)
	for i := 0; i < vocabulary; i++ {
		table[i*vocabulary+i] = 1
		after[(i+1)%vocabulary*vocabulary+i] = 1
	}
	ok(t, sessions[0].Write("table", table))
	ok(t, sessions[0].Write("after", after))

	_, err := cairn.NewGenerator(sessions[1:], 0)
	contains(t, err, "INVALID_ARGUMENT", "shortest")
	_, err = cairn.NewGenerator(nil, 0)
	contains(t, err, "INVALID_ARGUMENT", "no session")
	made, err := cairn.NewGenerator(sessions, 0)
	g := closing(t, made, err)
	_, err = g.Logits(1)
	contains(t, err, "WRONG_STATE", "no token")
	greedy := cairn.NewSampling()
	greedy.Temperature = 0
	ok(t, g.Begin(1, []int32{2, 2}, greedy))
	if tokens := must(g.Next()); !reflect.DeepEqual(tokens, []int32{-1, 3}) {
		t.Errorf("%v", tokens)
	}
	ok(t, g.Begin(0, []int32{4}, greedy))
	if tokens := must(g.Next()); !reflect.DeepEqual(tokens, []int32{0, 3}) {
		t.Errorf("%v", tokens)
	}
	if logits := must(g.Logits(1)); logits[3] != 2 {
		t.Errorf("%v", logits)
	}
	ok(t, g.End(1))
	if tokens := must(g.Next()); tokens[1] != -1 {
		t.Errorf("%v", tokens)
	}
	contains(t, g.Begin(0, []int32{1, 1, 1, 1, 1}, greedy), "INVALID_ARGUMENT", "holds 4")
	contains(t, g.Begin(0, nil, greedy), "INVALID_ARGUMENT", "needs a token")
	info := must(g.Info())
	if info.Samples != 2 || info.Vocabulary != 5 || info.Capacity != 4 || info.CacheBytes != 160 || info.PrefillTokens != 3 ||
		info.DecodeTokens != 2 {
		t.Errorf("%+v", info)
	}
}
