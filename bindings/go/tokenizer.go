package cairn

// #include "shim.h"
import "C"

import "unsafe"

// Tokenizer cuts text into tokens, numbers from 0 to Vocabulary() - 1. Several goroutines may use it at once.
type Tokenizer struct{ object }

func (t *Tokenizer) it() *object {
	if t == nil {
		return absent("tokenizer", "OpenTokenizer")
	}
	return &t.object
}

func (t *Tokenizer) c() *C.cairn_tokenizer_t { return (*C.cairn_tokenizer_t)(t.raw) }

// OpenTokenizer opens "bytes" (path "") or "bpe", the sentencepiece model at path. Errors: NotFound, CorruptFile, Unsupported.
func OpenTokenizer(instance *Instance, kind, path string) (*Tokenizer, error) {
	if err := checkTexts("text", kind, path); err != nil {
		return nil, err
	}
	made := &Tokenizer{}
	err := do(func(e *C.cairn_error_t) C.cairn_status_t {
		var raw *C.cairn_tokenizer_t
		status := C.cairn_tokenizer_open(instance.c(), cstring(kind), optional(path), &raw, e)
		if status == C.CAIRN_STATUS_OK {
			made.init("tokenizer", unsafe.Pointer(raw), releaseTokenizer, nil, &instance.object)
		}
		return status
	}, instance.it())
	if err != nil {
		return nil, err
	}
	return collected(made, (*Tokenizer).Close), nil
}

func releaseTokenizer(raw unsafe.Pointer) { C.cairn_tokenizer_release((*C.cairn_tokenizer_t)(raw)) }

// TrainTokenizer trains a byte-pair vocabulary on a text file and writes the model. Errors: IO.
func TrainTokenizer(instance *Instance, textPath string, vocabulary int, modelPath string) error {
	if err := checkTexts("path", textPath, modelPath); err != nil {
		return err
	}
	if err := checkCount("vocabulary", vocabulary); err != nil {
		return err
	}
	return do(func(e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_tokenizer_train(instance.c(), cstring(textPath), C.uint32_t(vocabulary), cstring(modelPath), e)
	}, instance.it())
}

// Close releases the tokenizer.
func (t *Tokenizer) Close() error { return t.it().close() }

// Vocabulary is how many different tokens there are.
func (t *Tokenizer) Vocabulary() (int, error) {
	count := 0
	err := do(func(*C.cairn_error_t) C.cairn_status_t {
		count = int(C.cairn_tokenizer_vocabulary(t.c()))
		return C.CAIRN_STATUS_OK
	}, t.it())
	return count, err
}

// Encode cuts a text, of any bytes, into tokens.
func (t *Tokenizer) Encode(text string) ([]int32, error) {
	data := bytesOf("", []byte(text))
	found, err := textOf(func(out **C.cairn_text_t, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_tokenizer_encode(t.c(), (*C.char)(data.first), C.size_t(data.bytes), out, e)
	}, t.it())
	if err != nil || len(found) == 0 {
		return nil, err
	}
	tokens := make([]int32, len(found)/4)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&tokens[0])), 4*len(tokens)), found)
	return tokens, nil
}

// Decode puts tokens together to a text.
func (t *Tokenizer) Decode(tokens []int32) (string, error) {
	data := bytesOf("", tokens)
	text, err := textOf(func(out **C.cairn_text_t, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_tokenizer_decode(t.c(), (*C.int32_t)(data.first), C.size_t(len(tokens)), out, e)
	}, t.it())
	return string(text), err
}

// WriteTokens writes the token file of a text file, durably; OpenDataset reads it. Errors: IO, NotFound.
func (t *Tokenizer) WriteTokens(textPath, tokenPath string) error {
	if err := checkTexts("path", textPath, tokenPath); err != nil {
		return err
	}
	return do(func(e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_tokenizer_write(t.c(), cstring(textPath), cstring(tokenPath), e)
	}, t.it())
}
