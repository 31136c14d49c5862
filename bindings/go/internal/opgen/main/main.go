// Command main reads what `cairn ops --json` prints, and writes the methods for it into the file that its argument names.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"cairn/internal/opgen"
)

func main() {
	if len(os.Args) != 2 {
		fail(fmt.Errorf("usage: cairn ops --json | main FILE.go"))
	}
	var ops []opgen.Op
	if err := json.NewDecoder(os.Stdin).Decode(&ops); err != nil {
		fail(fmt.Errorf("what `cairn ops --json` prints is needed on the standard input: %w", err))
	}
	source, err := opgen.Generate(ops)
	if err == nil {
		err = os.WriteFile(os.Args[1], source, 0o666)
	}
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "opgen:", err)
	os.Exit(1)
}
