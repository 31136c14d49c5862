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

// OpenTokenizer opens "bytes" (path ""), "bpe", the sentencepiece model at path, or "pretrained", that of a published model,
// whose directory or one of whose files path is. Errors: NotFound, CorruptFile, Unsupported.
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
	return numbersOf[int32](found), err
}

// Offset is the part of a text that a token stands for, in bytes.
type Offset struct{ Begin, End uint32 }

// numbersOf is what the bytes of a text are.
func numbersOf[T int32 | Offset](data []byte) []T {
	var one T
	size := int(unsafe.Sizeof(one))
	if len(data) < size {
		return nil
	}
	found := make([]T, len(data)/size)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&found[0])), size*len(found)), data)
	return found
}

// EncodeWithOffsets cuts a text into tokens, with those that the tokenizer puts around a text where special is true, and says
// what part of the text each stands for.
func (t *Tokenizer) EncodeWithOffsets(text string, special bool) ([]int32, []Offset, error) {
	data := bytesOf("", []byte(text))
	flags := C.uint32_t(0)
	if special {
		flags = C.CAIRN_ENCODE_SPECIAL
	}
	var places []byte
	found, err := textOf(func(out **C.cairn_text_t, e *C.cairn_error_t) C.cairn_status_t {
		var offsets *C.cairn_text_t
		status := C.cairn_tokenizer_encode_with(t.c(), (*C.char)(data.first), C.size_t(data.bytes), flags, out, &offsets, e)
		if status == C.CAIRN_STATUS_OK {
			places = C.GoBytes(unsafe.Pointer(C.cairn_text_data(offsets)), C.int(C.cairn_text_size(offsets)))
			C.cairn_text_release(offsets)
		}
		return status
	}, t.it())
	return numbersOf[int32](found), numbersOf[Offset](places), err
}

// Decode puts tokens together to a text.
func (t *Tokenizer) Decode(tokens []int32) (string, error) {
	data := bytesOf("", tokens)
	text, err := textOf(func(out **C.cairn_text_t, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_tokenizer_decode(t.c(), (*C.int32_t)(data.first), C.size_t(len(tokens)), out, e)
	}, t.it())
	return string(text), err
}

// DecodeText puts tokens together to a text that is UTF-8, without special tokens where skipSpecial is true.
func (t *Tokenizer) DecodeText(tokens []int32, skipSpecial bool) (string, error) {
	data := bytesOf("", tokens)
	flags := C.uint32_t(0)
	if skipSpecial {
		flags = C.CAIRN_DECODE_SKIP_SPECIAL
	}
	text, err := textOf(func(out **C.cairn_text_t, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_tokenizer_decode_with(t.c(), (*C.int32_t)(data.first), C.size_t(len(tokens)), flags, out, e)
	}, t.it())
	return string(text), err
}

// Token is a token as the vocabulary spells it.
func (t *Tokenizer) Token(id int32) (string, error) {
	text, err := textOf(func(out **C.cairn_text_t, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_tokenizer_token(t.c(), C.int32_t(id), out, e)
	}, t.it())
	return string(text), err
}

// Find is the number of a token that the vocabulary spells so. Errors: NotFound.
func (t *Tokenizer) Find(token string) (int32, error) {
	data := bytesOf("", []byte(token))
	var id C.int32_t
	err := do(func(e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_tokenizer_find(t.c(), (*C.char)(data.first), C.size_t(data.bytes), &id, e)
	}, t.it())
	return int32(id), err
}

// Save writes the file that opens the tokenizer again, durably; of a GGUF file the tokenizer.json that says the same. Errors: IO.
func (t *Tokenizer) Save(path string) error {
	if err := checkTexts("path", path); err != nil {
		return err
	}
	return do(func(e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_tokenizer_save(t.c(), cstring(path), e)
	}, t.it())
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
