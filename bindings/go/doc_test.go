package cairn_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"strings"
	"testing"
)

// Whoever reads `go doc` finds a sentence on everything, which begins with the name of what it is about.
func TestEveryExportedNameIsDocumented(t *testing.T) {
	files := token.NewFileSet()
	packages, err := parser.ParseDir(files, ".", func(info fs.FileInfo) bool {
		return !strings.HasSuffix(info.Name(), "_test.go")
	}, parser.ParseComments)
	ok(t, err)
	all := doc.New(packages["cairn"], "cairn", 0)
	count := 0
	named := func(name, text string) {
		count++
		if !strings.HasPrefix(text, name+" ") {
			t.Errorf("%s: %q", name, text)
		}
	}
	functions := append([]*doc.Func{}, all.Funcs...)
	groups := append([]*doc.Value{}, append(all.Consts, all.Vars...)...)
	for _, kind := range all.Types {
		named(kind.Name, kind.Doc)
		functions = append(append(functions, kind.Funcs...), kind.Methods...)
		groups = append(append(groups, kind.Consts...), kind.Vars...)
	}
	for _, function := range functions {
		if ast.IsExported(function.Name) {
			named(function.Name, function.Doc)
		}
	}
	for _, group := range groups {
		if group.Doc == "" {
			t.Errorf("%v: no comment", group.Names)
		}
	}
	if all.Doc == "" || count < 150 {
		t.Errorf("%d names; the package says %q", count, all.Doc)
	}
}
