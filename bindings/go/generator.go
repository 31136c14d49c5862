package cairn

// #include "shim.h"
import "C"

import (
	"context"
	"unsafe"
)

// Sampling is how the next token is drawn from logits; the steps in this order. NewSampling changes nothing.
type Sampling struct {
	RepetitionPenalty float64 // above 0: logits of tokens that were there are divided by it, or multiplied below 0
	Temperature       float64 // logits are divided by it; 0: the largest logit, always
	TopK              uint32  // among so many of the largest; 0: all
	TopP              float64 // above 0, to 1: among the fewest of the likeliest that have this probability together
	MinP              float64 // 0 to 1: none that is less likely than this share of the likeliest
	Seed              uint64
}

// NewSampling draws by probability.
func NewSampling() Sampling { return Sampling{RepetitionPenalty: 1, Temperature: 1, TopP: 1} }

func (s Sampling) c() C.cairn_sampling_t {
	given := C.cairn_go_sampling()
	given.repetition_penalty = C.double(s.RepetitionPenalty)
	given.temperature = C.double(s.Temperature)
	given.top_k = C.uint32_t(s.TopK)
	given.top_p = C.double(s.TopP)
	given.min_p = C.double(s.MinP)
	given.seed = C.uint64_t(s.Seed)
	return given
}

// Draw draws a token from logits that the caller has, as a generator does. seen: the text so far. Errors: NonFinite (logits).
func (s Sampling) Draw(logits []float32, seen []int32) (int32, error) {
	from, text := bytesOf("", logits), bytesOf("", seen)
	var token C.int32_t
	err := capture(func(e *C.cairn_error_t) C.cairn_status_t {
		given := s.c()
		return C.cairn_sampling_draw(&given, (*C.float)(from.first), C.size_t(len(logits)), (*C.int32_t)(text.first),
			C.size_t(len(seen)), &token, e)
	}, nil)
	return int32(token), err
}

// Generator makes texts, several at once, whose keys and values are kept in caches of a store. It counts as its sessions: a call
// waits until the one before is done.
type Generator struct {
	object
	info GeneratorInfo
}

// GeneratorInfo is what a generator has, and has done.
type GeneratorInfo struct {
	Samples, Vocabulary           uint64
	Capacity                      uint64 // tokens of a sample's cache; 0: it keeps the last ones, and has no end
	CacheBytes                    uint64 // of all samples
	PrefillTokens, DecodeTokens   uint64 // of prompts; read after that
	PrefillSeconds, DecodeSeconds float64
}

func (g *Generator) it() *object {
	if g == nil {
		return absent("generator", "NewGenerator")
	}
	return &g.object
}

func (g *Generator) c() *C.cairn_generator_t { return (*C.cairn_generator_t)(g.raw) }

// NewGenerator takes sessions of one store: a program for one token of each sample, and others that read prompts. vocabulary:
// tokens to draw from, where there are more logits; 0: all. Errors: WrongState (sessions of several stores).
func NewGenerator(sessions []*Session, vocabulary int) (*Generator, error) {
	if len(sessions) == 0 {
		return nil, invalid("no session was given; a generator needs one at least")
	}
	if err := checkCount("vocabulary", vocabulary); err != nil {
		return nil, err
	}
	var objects []*object
	for _, session := range sessions {
		objects = append(objects, session.it())
	}
	made := &Generator{}
	err := with(context.Background(), func() error {
		a := &arena{}
		defer a.free()
		raw := list[*C.cairn_session_t](a, len(sessions))
		for i, session := range sessions {
			raw[i] = session.c()
		}
		var out *C.cairn_generator_t
		err := capture(func(e *C.cairn_error_t) C.cairn_status_t {
			return C.cairn_generator_create(&raw[0], C.size_t(len(raw)), C.uint32_t(vocabulary), &out, e)
		}, hooksOf(objects))
		if err != nil {
			return err
		}
		made.init("generator", unsafe.Pointer(out), releaseGenerator, objects[0].order, objects...)
		return nil
	}, objects...)
	if err != nil {
		return nil, err
	}
	collected(made, (*Generator).Close)
	made.info, err = made.Info()
	return made, err
}

func releaseGenerator(raw unsafe.Pointer) { C.cairn_generator_release((*C.cairn_generator_t)(raw)) }

// Close releases the generator.
func (g *Generator) Close() error { return g.it().close() }

// Begin lets a sample begin with a prompt, instead of what it had. What it gets depends on the prompt, the sampling and the
// parameters alone.
func (g *Generator) Begin(sample int, prompt []int32, sampling Sampling) error {
	if err := checkCount("sample", sample); err != nil {
		return err
	}
	tokens := bytesOf("", prompt)
	return do(func(e *C.cairn_error_t) C.cairn_status_t {
		given := sampling.c()
		return C.cairn_generator_begin(g.c(), C.uint32_t(sample), (*C.int32_t)(tokens.first), C.size_t(len(prompt)), &given, e)
	}, g.it())
}

// Extend is Begin for a text that begins as what the sample has: what both begin with is not read again.
func (g *Generator) Extend(sample int, text []int32, sampling Sampling) error {
	if err := checkCount("sample", sample); err != nil {
		return err
	}
	tokens := bytesOf("", text)
	return do(func(e *C.cairn_error_t) C.cairn_status_t {
		given := sampling.c()
		return C.cairn_generator_extend(g.c(), C.uint32_t(sample), (*C.int32_t)(tokens.first), C.size_t(len(text)), &given, e)
	}, g.it())
}

// End lets a sample make no more tokens.
func (g *Generator) End(sample int) error {
	if err := checkCount("sample", sample); err != nil {
		return err
	}
	return do(func(e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_generator_end(g.c(), C.uint32_t(sample), e)
	}, g.it())
}

// Next gives the next token of each sample that began, -1 of others. Errors: NonFinite (logits), those of Session.Run.
func (g *Generator) Next() ([]int32, error) {
	var tokens []int32
	if g != nil {
		tokens = make([]int32, g.info.Samples)
	}
	out := bytesOf("", tokens)
	err := do(func(e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_generator_next(g.c(), (*C.int32_t)(out.first), C.size_t(len(tokens)), e)
	}, g.it())
	if err != nil {
		return nil, err
	}
	return tokens, nil
}

// Logits gives the logits that a sample's last token was drawn from. Errors: WrongState (no token yet).
func (g *Generator) Logits(sample int) ([]float32, error) {
	if err := checkCount("sample", sample); err != nil {
		return nil, err
	}
	var logits []float32
	if g != nil {
		logits = make([]float32, g.info.Vocabulary)
	}
	out := bytesOf("", logits)
	err := do(func(e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_generator_logits(g.c(), C.uint32_t(sample), (*C.float)(out.first), C.size_t(len(logits)), e)
	}, g.it())
	if err != nil {
		return nil, err
	}
	return logits, nil
}

// Info tells what the generator has, and has done.
func (g *Generator) Info() (GeneratorInfo, error) {
	var info GeneratorInfo
	err := do(func(e *C.cairn_error_t) C.cairn_status_t {
		raw := C.cairn_go_generator_info()
		status := C.cairn_generator_info(g.c(), &raw, e)
		info = GeneratorInfo{uint64(raw.samples), uint64(raw.vocabulary), uint64(raw.capacity), uint64(raw.cache_bytes),
			uint64(raw.prefill_tokens), uint64(raw.decode_tokens), float64(raw.prefill_seconds), float64(raw.decode_seconds)}
		return status
	}, g.it())
	return info, err
}
