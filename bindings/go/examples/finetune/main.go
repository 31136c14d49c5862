// Command finetune trains an adapter for a model file, in this process within a budget, on texts of this program.
//
//	finetune FOLDER MODEL [BUDGET in MiB]
package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strconv"

	"cairn"
)

// Questions and the answers that the model is to give.
var rows = [][2]string{
	{"what marks the way?", "a cairn"},
	{"what is a cairn?", "a pile of stones"},
	{"who goes back?", "whoever finds the stones"},
}

const steps = 60

func main() {
	log.SetFlags(0)
	if len(os.Args) < 3 {
		log.Fatal("usage: finetune FOLDER MODEL [BUDGET in MiB]")
	}
	mib := uint64(64)
	if len(os.Args) > 3 {
		mib, _ = strconv.ParseUint(os.Args[3], 10, 32)
	}
	if err := run(os.Args[1], os.Args[2], mib<<20); err != nil {
		log.Fatal(err)
	}
}

func run(folder, path string, budget uint64) error {
	instance, err := cairn.NewInstance(cairn.InstanceOptions{})
	if err != nil {
		return err
	}
	defer instance.Close()
	// The same words that `cairn train MODEL` takes.
	settings := []string{"lora=8", "lora_targets=*_proj", "seq=64", "batch=2", "rate=1e-2"}
	model, err := cairn.OpenModel(instance, path, cairn.ModelOptions{Settings: settings, BudgetBytes: budget, Seed: 7})
	if err != nil {
		return err
	}
	defer model.Close()
	info, err := model.Info()
	if err != nil {
		return err
	}
	fmt.Printf("%d of %d parameters learn; planned: %d bytes of %d\n", info.TrainableParameters, info.Parameters,
		info.PlannedBytes[0], budget)
	for _, row := range rows {
		if err := model.Add(row[0], row[1]); err != nil {
			return err
		}
	}
	first, err := model.Train(1)
	if err != nil {
		return err
	}
	last, err := model.Train(steps - 1)
	if err != nil {
		return err
	}
	if last.Loss >= first.Loss {
		return fmt.Errorf("the loss did not fall: %f, then %f", first.Loss, last.Loss)
	}
	fmt.Printf("loss %.3f, then %.3f at step %d\n", first.Loss, last.Loss, last.Step)
	likeliest := cairn.NewSampling()
	likeliest.Temperature = 0
	answer, err := model.Generate(rows[0][0], 16, likeliest)
	if err != nil {
		return err
	}
	fmt.Printf("%s -> %s\n", rows[0][0], answer)
	if err := model.Save(filepath.Join(folder, "example-finetune-go")); err != nil {
		return err
	}
	return model.Export(filepath.Join(folder, "example-adapter-go"), "adapter")
}
