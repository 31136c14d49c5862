package opgen

import (
	"strings"
	"testing"
)

func TestMethodsByTheFormOfAnOp(t *testing.T) {
	source, err := Generate([]Op{
		{Name: "two_words", Inputs: []Operand{{"x", false}, {"b", true}}, Attributes: []Attribute{{"eps", "real", false}}},
		{Name: "join", Inputs: []Operand{{"x0", false}, {"x1", true}}, Attributes: []Attribute{{"axis", "integer", true}}},
		{Name: "turn", Inputs: []Operand{{"x", false}}, Attributes: []Attribute{{"perm", "list", true}, {"dtype", "word", false}}},
		{Name: "sort", Inputs: []Operand{{"bins", false}}, Attributes: []Attribute{{"bins", "integer", true}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"func (g *Graph) Sort(bins Value, binsAttr int) Value {",
		`return g.Op("sort", []Value{bins}, Attr{"bins", binsAttr})`,
		"func (g *Graph) TwoWords(x, b Value, attrs ...Attr) Value {",
		`return g.Op("two_words", []Value{x, b}, attrs...)`,
		"func (g *Graph) Join(x []Value, axis int) Value {",
		`return g.Op("join", x, Attr{"axis", axis})`,
		"func (g *Graph) Turn(x Value, perm []int, attrs ...Attr) Value {",
		`return g.Op("turn", []Value{x}, append([]Attr{{"perm", perm}}, attrs...)...)`,
		"func WithDtype(value DType) Attr",
		"func WithEps(value float64) Attr",
	} {
		if !strings.Contains(string(source), line) {
			t.Errorf("%s\nis not in\n%s", line, source)
		}
	}
}

func TestTablesThatHaveNoMethods(t *testing.T) {
	x := []Operand{{"x", false}}
	for what, ops := range map[string][]Op{
		"unknown type": {{Name: "a", Inputs: x, Attributes: []Attribute{{"b", "matrix", true}}}},
		"two types": {{Name: "a", Inputs: x, Attributes: []Attribute{{"b", "real", false}}},
			{Name: "c", Inputs: x, Attributes: []Attribute{{"b", "word", false}}}},
	} {
		if source, err := Generate(ops); err == nil {
			t.Errorf("%s: %s", what, source)
		}
	}
}
