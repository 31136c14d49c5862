package cairn

// #include "shim.h"
import "C"

import "unsafe"

// Template makes the text of a conversation as a model was trained on it. Several goroutines may use it at once.
type Template struct{ object }

func (t *Template) it() *object {
	if t == nil {
		return absent("template", "NewTemplate")
	}
	return &t.object
}

func (t *Template) c() *C.cairn_template_t { return (*C.cairn_template_t)(t.raw) }

// NewTemplate reads a template of Jinja, as Hugging Face's Transformers runs it. name: what errors call it. Errors: CorruptFile,
// Unsupported (a tag, filter or test that is not known).
func NewTemplate(source, name string) (*Template, error) {
	if err := checkTexts("text", name); err != nil {
		return nil, err
	}
	data := bytesOf("", []byte(source))
	var raw *C.cairn_template_t
	err := capture(func(e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_template_create((*C.char)(data.first), C.size_t(data.bytes), cstring(name), &raw, e)
	}, nil)
	if err != nil {
		return nil, err
	}
	made := &Template{}
	made.init("template", unsafe.Pointer(raw), releaseTemplate, nil)
	return collected(made, (*Template).Close), nil
}

func releaseTemplate(raw unsafe.Pointer) { C.cairn_template_release((*C.cairn_template_t)(raw)) }

// Close releases the template.
func (t *Template) Close() error { return t.it().close() }

// Render makes the text of a JSON object: messages, tools, add_generation_prompt and so on. Errors: InvalidArgument (also what the
// template raises), Unsupported (more steps or bytes than are allowed).
func (t *Template) Render(values string) (string, error) {
	data := bytesOf("", []byte(values))
	text, err := textOf(func(out **C.cairn_text_t, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_template_render(t.c(), (*C.char)(data.first), C.size_t(data.bytes), out, e)
	}, t.it())
	return string(text), err
}
