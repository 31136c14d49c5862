package cairn_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What of the header has no counterpart in Go, and why.
var leftOut = map[string]string{
	"cairn_error_retain": "an error object stays inside one call",
	"cairn_error_status": "the call returned it",
	"cairn_text_retain":  "texts are copied at once",
	"cairn_stepper_save": "cairn_stepper_save_as with no option set",
	"struct_size":        "set by the _INIT macros",
	"reserved":           "of no meaning",
	"reserved2":          "of no meaning",
	"beta1":              "a hyper-parameter by name: Hypers",
	"beta2":              "a hyper-parameter by name: Hypers",
	"eps":                "a hyper-parameter by name: Hypers",
	"weight_decay":       "a hyper-parameter by name: Hypers",
	"schedule":           "a schedule by name: Schedules",
	"failure_words":      "an op's error itself is the cause of the call's, not its words alone",
	"release_user":       "objects of Go keep the ops that they may call",
}

func header(t *testing.T) string {
	t.Helper()
	folder := must(exec.Command("pkg-config", "--variable=includedir", "cairn").Output())
	text := string(must(os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "cairn", "cairn.h"))))
	return regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAllString(text, "")
}

// sources are the files of the package that contain what a pattern says, without tests, as one text.
func sources(t *testing.T, pattern string) string {
	t.Helper()
	var all strings.Builder
	for _, kind := range []string{"*.go", "*.h", "*.c"} {
		for _, name := range must(filepath.Glob(kind)) {
			text := must(os.ReadFile(name))
			if !strings.HasSuffix(name, "_test.go") && regexp.MustCompile(pattern).Match(text) {
				all.Write(text)
			}
		}
	}
	return all.String()
}

func TestEveryFunctionOfTheHeaderIsReached(t *testing.T) {
	code := sources(t, "")
	functions := regexp.MustCompile(`(?s)CAIRN_API[^;]*?\b(cairn_[a-z0-9_]+)\(`).FindAllStringSubmatch(header(t), -1)
	if len(functions) < 100 {
		t.Fatalf("%d functions", len(functions))
	}
	for _, match := range functions {
		name := match[1]
		retains := strings.HasSuffix(name, "_retain") && name != "cairn_session_retain" // objects of Go count for themselves
		if leftOut[name] == "" && !retains && !regexp.MustCompile(`\b`+name+`\(`).MatchString(code) {
			t.Errorf("%s is in no file of the package: bind it, or say in leftOut why not", name)
		}
	}
}

func TestEveryFieldOfTheHeaderIsReached(t *testing.T) {
	structs := regexp.MustCompile(`(?s)typedef struct \w+ \{(.*?)\} cairn_(\w+)_t;`).FindAllStringSubmatch(header(t), -1)
	if len(structs) < 25 {
		t.Fatalf("%d structs", len(structs))
	}
	callback := regexp.MustCompile(`\(\*(\w+)\)\([^)]*\)`)
	field := regexp.MustCompile(`(\w+)(?:\[\w+\])?\s*[,;]`)
	for _, match := range structs {
		code := sources(t, `\bcairn_(go_`+match[2]+`\(|`+match[2]+`_t\b)`) // not those of a struct that has a field of that name, too
		for _, name := range field.FindAllStringSubmatch(callback.ReplaceAllString(match[1], "$1"), -1) {
			word := name[1]
			if leftOut[word] == "" && !regexp.MustCompile(`\.`+word+`\b`).MatchString(code) && !positional[match[2]] {
				t.Errorf("%s.%s is in no file of the package: bind it, or say in leftOut why not", match[2], word)
			}
		}
	}
}

// Structs that shim.h fills by position.
var positional = map[string]bool{"tensor_desc": true}
