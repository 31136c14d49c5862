// Package opgen writes the methods of a graph that add ops, from the library's table of ops.
package opgen

import (
	"bytes"
	"fmt"
	"go/format"
	"sort"
	"strings"
)

// Operand is an input or output.
type Operand struct {
	Name     string `json:"name"`
	Optional bool   `json:"optional"`
}

// Attribute is what an op takes beside operands.
type Attribute struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Required bool   `json:"required"`
}

// Op is a row of `cairn ops --json`.
type Op struct {
	Name        string      `json:"name"`
	Inputs      []Operand   `json:"inputs"`
	Outputs     []Operand   `json:"outputs"`
	Attributes  []Attribute `json:"attributes"`
	Description string      `json:"description"`
}

var types = map[string]string{"integer": "int", "real": "float64", "word": "string", "list": "[]int",
	"reals": "[]float64"}

// goType is the type of an attribute's value in Go.
func (a Attribute) goType() (string, error) {
	if a.Name == "dtype" {
		return "DType", nil
	}
	if found := types[a.Type]; found != "" {
		return found, nil
	}
	return "", fmt.Errorf("attribute %s has the type %q, which has none in Go", a.Name, a.Type)
}

// camel is a name of C in Go's manner: kv_heads, KvHeads.
func camel(name string) string {
	var made strings.Builder
	for _, part := range strings.Split(name, "_") {
		made.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return made.String()
}

// series tells whether operands are x0, x1, ...: any number of the same.
func series(inputs []Operand) bool {
	for i, input := range inputs {
		if input.Name != fmt.Sprintf("x%d", i) {
			return false
		}
	}
	return len(inputs) > 1
}

// comment breaks a text into lines of a comment.
func comment(out *bytes.Buffer, text string) {
	line := "//"
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > 120 {
			fmt.Fprintln(out, line)
			line = "//"
		}
		line += " " + word
	}
	fmt.Fprintln(out, line)
}

// later are operands that came to an op when programs called its function: they stay out of it, and Graph.Op takes them.
var later = map[string]bool{
	"linear_cross_entropy.class_weights": true, "cross_entropy.class_weights": true, "rope.positions": true,
	"attention.sinks": true, "attention.sequences": true, "attention.lengths": true, "attention.position": true,
	"attention.distances": true, "append.count": true,
}

func writeOp(out *bytes.Buffer, op Op) error {
	var parameters, operands, attrs, optional, behind []string
	inputs := "[]Value{%s}"
	if series(op.Inputs) {
		parameters, inputs = append(parameters, "x []Value"), "x"
	} else {
		for _, input := range op.Inputs {
			if later[op.Name+"."+input.Name] {
				behind = append(behind, input.Name)
				continue
			}
			operands = append(operands, input.Name)
			if input.Optional {
				optional = append(optional, input.Name)
			}
		}
		inputs = fmt.Sprintf(inputs, strings.Join(operands, ", "))
		parameters = append(parameters, strings.Join(operands, ", ")+" Value")
	}
	var with []string
	for _, attr := range op.Attributes {
		kind, err := attr.goType()
		if err != nil {
			return fmt.Errorf("%s: %w", op.Name, err)
		}
		if !attr.Required {
			with = append(with, "With"+camel(attr.Name))
			continue
		}
		parameter := attr.Name
		for _, operand := range operands { // group_rows: experts, and how many there are
			if operand == attr.Name {
				parameter += "Attr"
			}
		}
		parameters = append(parameters, parameter+" "+kind)
		attrs = append(attrs, fmt.Sprintf("{%q, %s}", attr.Name, parameter))
	}
	rest := ""
	if len(with) > 0 {
		parameters = append(parameters, "attrs ...Attr")
		rest = ", attrs..."
		if len(attrs) > 0 {
			rest = fmt.Sprintf(", append([]Attr{%s}, attrs...)...", strings.Join(attrs, ", "))
		}
	} else if len(attrs) > 0 {
		rest = ", Attr" + strings.Join(attrs, ", Attr")
	}
	name, text := camel(op.Name), op.Description
	if len(optional) > 0 {
		text += " May be None: " + strings.Join(optional, ", ") + "."
	}
	if len(behind) > 0 {
		text += " Op takes more operands after these: " + strings.Join(behind, ", ") + "."
	}
	if len(with) > 0 {
		text += " Attributes: " + strings.Join(with, ", ") + "."
	}
	comment(out, fmt.Sprintf("%s adds %s: %s", name, op.Name, text))
	fmt.Fprintf(out, "func (g *Graph) %s(%s) Value {\nreturn g.Op(%q, %s%s)\n}\n\n", name, strings.Join(parameters, ", "),
		op.Name, inputs, rest)
	return nil
}

// writeAttributes writes a function for each attribute that may be left out; ops share those of one name.
func writeAttributes(out *bytes.Buffer, ops []Op) error {
	kinds, users := map[string]string{}, map[string][]string{}
	for _, op := range ops {
		for _, attr := range op.Attributes {
			if attr.Required {
				continue
			}
			kind, err := attr.goType()
			if err != nil {
				return err
			}
			if before, there := kinds[attr.Name]; there && before != kind {
				return fmt.Errorf("attribute %s is %s of %s and %s of others", attr.Name, kind, op.Name, before)
			}
			kinds[attr.Name] = kind
			users[attr.Name] = append(users[attr.Name], op.Name)
		}
	}
	var names []string
	for name := range kinds {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		comment(out, fmt.Sprintf("With%s sets the attribute %s of %s.", camel(name), name, strings.Join(users[name], ", ")))
		fmt.Fprintf(out, "func With%s(value %s) Attr { return Attr{%q, value} }\n\n", camel(name), kinds[name], name)
	}
	return nil
}

// Generate is the source of ops_gen.go.
func Generate(ops []Op) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString("// Code generated by internal/opgen from the library's table of ops. DO NOT EDIT.\n\npackage cairn\n\n")
	for _, op := range ops {
		if err := writeOp(&out, op); err != nil {
			return nil, err
		}
	}
	if err := writeAttributes(&out, ops); err != nil {
		return nil, err
	}
	return format.Source(out.Bytes())
}
