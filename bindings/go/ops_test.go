package cairn_test

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"cairn"
	"cairn/internal/opgen"
)

func TestGeneratedMethodsAreThoseOfTheLibrary(t *testing.T) {
	table := must(cairn.Ops())
	if len(table) < 20 {
		t.Fatalf("%d ops", len(table))
	}
	var ops []opgen.Op
	for _, op := range table {
		row := opgen.Op{Name: op.Name, Description: op.Description}
		for _, operand := range op.Inputs {
			row.Inputs = append(row.Inputs, opgen.Operand(operand))
		}
		for _, attr := range op.Attributes {
			row.Attributes = append(row.Attributes, opgen.Attribute(attr))
		}
		ops = append(ops, row)
	}
	want := must(opgen.Generate(ops))
	have := must(os.ReadFile("ops_gen.go"))
	if !bytes.Equal(want, have) {
		t.Error("ops_gen.go is not what the library's table gives: run go generate, with `cairn` on the PATH")
	}
}

// Each kind of attribute, and operands left out, through the methods.
func TestMethodsOfOps(t *testing.T) {
	made, err := cairn.NewGraph(newInstance(t))
	g := closing(t, made, err)
	x := g.Input("x", cairn.F32, 2, 6, 8)
	dims := func(v cairn.Value) []int { return must(g.Info(v)).Dims }
	same := func(v cairn.Value, want ...int) {
		t.Helper()
		if g.Err() != nil {
			t.Fatal(g.Err())
		}
		have := dims(v)
		if len(have) != len(want) {
			t.Fatal(have, want)
		}
		for i := range have {
			if have[i] != want[i] {
				t.Fatal(have, want)
			}
		}
	}
	same(g.Rmsnorm(x, cairn.None, cairn.WithEps(1e-3)), 2, 6, 8)
	same(g.Attention(x, x, x, 2, cairn.WithCausal(0), cairn.WithScale(0.5)), 2, 6, 8)
	same(g.Rope(x, 2, cairn.WithFrequencies([]float64{1, 0.25})), 2, 6, 8)
	same(g.Reshape(x, []int{-1, 8}), 12, 8)
	same(g.Transpose(x, []int{2, 0, 1}), 8, 2, 6)
	same(g.Slice(x, 1, 2, 5), 2, 3, 8)
	same(g.Concat([]cairn.Value{x, x, x}, 2), 2, 6, 24)
	same(g.ReduceSum(x, cairn.WithAxes([]int{1}), cairn.WithKeep(1)), 2, 1, 8)
	same(g.Cast(x, cairn.BF16), 2, 6, 8)
	if info := must(g.Info(g.Cast(x, cairn.BF16))); info.DType != cairn.BF16 {
		t.Error(info)
	}
	outputs := g.OpOutputs("layernorm", 3, []cairn.Value{x})
	same(outputs[0], 2, 6, 8)
	same(outputs[1], 2, 6)
	same(outputs[2], 2, 6)
}

func TestFirstFailureOfBuildingIsKept(t *testing.T) {
	made, err := cairn.NewGraph(newInstance(t))
	g := closing(t, made, err)
	x := g.Input("x", cairn.F32, 2, 3)
	w := g.Parameter("w", cairn.ParameterOptions{}, 4, 5)
	if y := g.Linear(x, w, cairn.None); y != cairn.None {
		t.Error(y)
	}
	if y := g.Gelu(x); y != cairn.None {
		t.Error("built on after a failure", y)
	}
	g.Region("never", cairn.RegionOptions{}, func() { g.Input("y", cairn.F32, 1) })
	err = g.Err()
	contains(t, err, "INVALID_ARGUMENT", "linear", "[2, 3]", "[4, 5]", "ops_test.go:")
	if frozen := g.Freeze(cairn.FreezeOptions{Outputs: []cairn.Value{x}}); frozen != err {
		t.Error(frozen)
	}
	if cleared := g.ClearErr(); cleared != err || g.Err() != nil {
		t.Error(cleared, g.Err())
	}
	if y := g.Gelu(x); y == cairn.None {
		t.Error(g.Err())
	}
	// A region that failed inside has ended: its sibling is no child.
	g.Region("r", cairn.RegionOptions{}, func() { g.Linear(x, w, cairn.None) })
	if !errors.Is(g.ClearErr(), cairn.InvalidArgument) {
		t.Error("no failure")
	}
	func() {
		defer func() { _ = recover() }()
		g.Region("s", cairn.RegionOptions{}, func() { panic("inside") })
	}()
	ok(t, g.Freeze(cairn.FreezeOptions{Outputs: []cairn.Value{g.Relu(x)}}))
	g.Relu(x)
	if err := g.Err(); !errors.Is(err, cairn.WrongState) {
		t.Error(err)
	}
}

func TestAttributesOfWrongTypes(t *testing.T) {
	made, err := cairn.NewGraph(newInstance(t))
	g := closing(t, made, err)
	x := g.Input("x", cairn.F32, 2, 3)
	g.Op("gelu", []cairn.Value{x}, cairn.Attr{Name: "approximate", Value: struct{}{}})
	contains(t, g.ClearErr(), "gelu", "approximate", "struct {}")
	g.Op("gelu", []cairn.Value{x}, cairn.Attr{Name: "approximate", Value: 1.5})
	contains(t, g.ClearErr(), "gelu", "approximate")
	g.Op("no_such_op", []cairn.Value{x})
	if err := g.ClearErr(); !errors.Is(err, cairn.NotFound) {
		t.Error(err)
	}
	g.OpOutputs("gelu", -1, []cairn.Value{x})
	contains(t, g.ClearErr(), "-1")
}
