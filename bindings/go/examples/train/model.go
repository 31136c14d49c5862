package main

import (
	"fmt"

	"cairn"
)

const (
	batch      = 16
	length     = 32
	width      = 32
	heads      = 4
	blocks     = 2
	vocabulary = 32
)

// transformer is a graph with the parameters of a small transformer. It trains on rows of tokens, or, to generate with, gives the
// logits of one row as the output "logits".
func transformer(instance *cairn.Instance, rows int, trains bool) (*cairn.Graph, error) {
	g, err := cairn.NewGraph(instance)
	if err != nil {
		return nil, err
	}
	weight := func(name string, dims ...int) cairn.Value {
		return g.Parameter(name, cairn.ParameterOptions{Init: cairn.Normal(0.08)}, dims...)
	}
	norm := func(x cairn.Value, name string) cairn.Value {
		return g.Rmsnorm(x, g.Parameter(name, cairn.ParameterOptions{Init: cairn.Constant(1), NoDecay: true}, width))
	}
	tokens := g.Input("tokens", cairn.I32, rows, length)
	var targets cairn.Value
	if trains {
		targets = g.Input("targets", cairn.I32, rows, length)
	}
	table := weight("embedding", vocabulary, width)
	x := g.Add(g.Embedding(table, tokens), weight("position", length, width))
	for i := 0; i < blocks; i++ {
		// One block is one region: the planner decides what of it to keep and what to compute again.
		name := fmt.Sprintf("h%d", i)
		g.Region(name, cairn.RegionOptions{}, func() {
			h := g.Linear(norm(x, name+".norm1"), weight(name+".qkv", 3*width, width), cairn.None)
			h = g.Attention(h, cairn.None, cairn.None, heads)
			x = g.Add(x, g.Linear(h, weight(name+".out", width, width), cairn.None))
			h = g.Linear(norm(x, name+".norm2"), weight(name+".up", 4*width, width), cairn.None, cairn.WithActivation("gelu_tanh"))
			x = g.Add(x, g.Linear(h, weight(name+".down", width, 4*width), cairn.None))
		})
	}
	x = norm(x, "norm")
	// The table is the last layer, too: tied.
	options := cairn.FreezeOptions{}
	if trains {
		options.Loss = g.LinearCrossEntropy(x, table, targets, cairn.None) // logits are never all in memory
	} else {
		options.Outputs = []cairn.Value{g.Name(g.Linear(x, table, cairn.None), "logits")}
	}
	if err := g.Freeze(options); err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

// fill makes micro-batch number step: rows that count up by 1, 2 or 3 from anywhere.
func fill(step uint32, tokens, targets []int32) {
	state := 1 + 2654435761*step
	for row := 0; row < batch; row++ {
		state = state*1664525 + 1013904223
		start, stride := int32(state>>16)%vocabulary, 1+int32(state>>8)%3
		for i := int32(0); i < length; i++ {
			tokens[row*length+int(i)] = (start + i*stride) % vocabulary
			targets[row*length+int(i)] = (start + (i+1)*stride) % vocabulary
		}
	}
}
