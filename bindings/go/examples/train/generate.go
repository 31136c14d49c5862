package main

import (
	"context"
	"fmt"

	"cairn"
)

// generate counts on from two numbers with the parameters of a checkpoint.
func generate(ctx context.Context, instance *cairn.Instance, device *cairn.Device, directory string) error {
	checkpoint, err := cairn.OpenCheckpoint(instance, directory)
	if err != nil {
		return err
	}
	defer checkpoint.Close()
	graph, err := transformer(instance, 1, false)
	if err != nil {
		return err
	}
	defer graph.Close()
	plan, err := cairn.NewPlan(graph, device, cairn.PlanOptions{})
	if err != nil {
		return err
	}
	defer plan.Close()
	session, err := cairn.NewSession(plan, device)
	if err != nil {
		return err
	}
	defer session.Close()
	if err := session.Load(checkpoint); err != nil {
		return err
	}
	task, _ := checkpoint.Metadata("task")
	tokens, logits := make([]int32, length), make([]float32, length*vocabulary)
	tokens[0], tokens[1] = 3, 5
	for at := 1; at < 11; at++ {
		if err := session.Write("tokens", tokens); err != nil {
			return err
		}
		if err := session.Run(ctx); err != nil {
			return err
		}
		if err := session.Read("logits", logits); err != nil {
			return err
		}
		// Attention looks back alone, so what follows `at` does not matter.
		tokens[at+1] = likeliest(logits[at*vocabulary : (at+1)*vocabulary])
	}
	fmt.Println(task+":", tokens[:12])
	return nil
}

func likeliest(logits []float32) int32 {
	best := 0
	for i, logit := range logits {
		if logit > logits[best] {
			best = i
		}
	}
	return int32(best)
}
