package cairn

// #include "shim.h"
import "C"

import "unsafe"

// ModelOptions is what a model is opened with. The zero value: on the CPU, as its files have it, without a budget.
type ModelOptions struct {
	Settings    []string // "key=value", as `cairn train` takes them: "lora=8"
	Device      string   // "": cpu
	Amp         string   // off, bf16, fp16
	Format      string   // of frozen weights
	BudgetBytes uint64   // of the device, for training and texts together
	Seed        uint64
	Steps       uint64 // in all, where a schedule asks for that
	Threads     int
	Accumulate  int // micro-batches of a step
	Context     int // most tokens of a prompt and its answer
}

// ModelInfo is what a model has.
type ModelInfo struct {
	Parameters, TrainableParameters uint64    // numbers in them
	PlannedBytes                    [3]uint64 // the peak of device, host and disk, to the byte
	Seq, Batch, Vocabulary          uint64
}

// ModelReport is what steps did.
type ModelReport struct {
	Loss    float64 // of the last step
	Seconds float64 // of these steps
	Step    uint64  // steps so far
	Tokens  uint64  // of these steps
}

// Model is a model that is trained and asked for texts; what `cairn train` does with a directory, by the same code. A call waits
// until the one before is done.
type Model struct{ object }

func (m *Model) it() *object {
	if m == nil {
		return absent("model", "OpenModel")
	}
	return &m.object
}

func (m *Model) c() *C.cairn_model_t { return (*C.cairn_model_t)(m.raw) }

// OpenModel opens a directory as Transformers writes it. Errors: OverBudget, NotFound, CorruptFile, IO, Unsupported (the library of
// the command is not installed).
func OpenModel(instance *Instance, path string, options ModelOptions) (*Model, error) {
	texts := append([]string{path, options.Device, options.Amp, options.Format}, options.Settings...)
	if err := checkTexts("an option", texts...); err != nil {
		return nil, err
	}
	for name, value := range map[string]int{"threads": options.Threads, "accumulate": options.Accumulate,
		"context": options.Context} {
		if err := checkCount(name, value); err != nil {
			return nil, err
		}
	}
	made := &Model{}
	err := do(func(e *C.cairn_error_t) C.cairn_status_t {
		a := &arena{}
		defer a.free()
		settings := list[*C.char](a, len(options.Settings))
		for i, setting := range options.Settings {
			settings[i] = a.text(setting)
		}
		given := C.cairn_go_model_options()
		given.settings, given.setting_count = first(settings), C.size_t(len(settings))
		given.device, given.amp, given.format = a.word(options.Device), a.word(options.Amp), a.word(options.Format)
		given.budget_bytes, given.seed, given.steps = C.uint64_t(options.BudgetBytes), C.uint64_t(options.Seed), C.uint64_t(options.Steps)
		given.threads, given.accumulate = C.uint32_t(options.Threads), C.uint32_t(options.Accumulate)
		given.context = C.uint32_t(options.Context)
		var raw *C.cairn_model_t
		status := C.cairn_model_open(instance.c(), a.text(path), &given, &raw, e)
		if status == C.CAIRN_STATUS_OK {
			made.init("model", unsafe.Pointer(raw), releaseModel, newOrder(), &instance.object)
		}
		return status
	}, instance.it())
	if err != nil {
		return nil, err
	}
	return collected(made, (*Model).Close), nil
}

func releaseModel(raw unsafe.Pointer) { C.cairn_model_release((*C.cairn_model_t)(raw)) }

// Close releases the model.
func (m *Model) Close() error { return m.it().close() }

// Info tells what the model has.
func (m *Model) Info() (ModelInfo, error) {
	info := C.cairn_go_model_info()
	err := do(func(e *C.cairn_error_t) C.cairn_status_t { return C.cairn_model_describe(m.c(), &info, e) }, m.it())
	made := ModelInfo{Parameters: uint64(info.parameters), TrainableParameters: uint64(info.trainable_parameters),
		Seq: uint64(info.seq), Batch: uint64(info.batch), Vocabulary: uint64(info.vocabulary)}
	for i := range made.PlannedBytes {
		made.PlannedBytes[i] = uint64(info.planned_bytes[i])
	}
	return made, err
}

// Add adds a row to train with: the answer is what is learned.
func (m *Model) Add(prompt, answer string) error {
	if err := checkTexts("a text", prompt, answer); err != nil {
		return err
	}
	return do(func(e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_model_add(m.c(), cstring(prompt), cstring(answer), e)
	}, m.it())
}

// AddRow adds any row of instruction data, a JSON object.
func (m *Model) AddRow(json string) error {
	if err := checkTexts("the row", json); err != nil {
		return err
	}
	return do(func(e *C.cairn_error_t) C.cairn_status_t { return C.cairn_model_add_row(m.c(), cstring(json), e) }, m.it())
}

// Train trains so many steps. Errors: NonFinite, those of Session.Run.
func (m *Model) Train(steps uint64) (ModelReport, error) {
	report := C.cairn_go_model_report()
	err := do(func(e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_model_train(m.c(), C.uint64_t(steps), &report, e)
	}, m.it())
	return ModelReport{float64(report.loss), float64(report.seconds), uint64(report.step), uint64(report.tokens)}, err
}

// Generate gives the answer to a prompt, of at most so many tokens; 0: 512. Errors: NonFinite.
func (m *Model) Generate(prompt string, tokens int, sampling Sampling) (string, error) {
	if err := checkTexts("the prompt", prompt); err != nil {
		return "", err
	}
	if err := checkCount("tokens", tokens); err != nil {
		return "", err
	}
	made, err := textOf(func(out **C.cairn_text_t, e *C.cairn_error_t) C.cairn_status_t {
		given := sampling.c()
		return C.cairn_model_generate(m.c(), cstring(prompt), C.uint32_t(tokens), &given, out, e)
	}, m.it())
	return string(made), err
}

// Save writes a checkpoint below the directory. Errors: IO.
func (m *Model) Save(directory string) error {
	if err := checkTexts("path", directory); err != nil {
		return err
	}
	return do(func(e *C.cairn_error_t) C.cairn_status_t { return C.cairn_model_save(m.c(), cstring(directory), e) }, m.it())
}

// Export writes what `cairn export --to` does: hf, adapter, ... Errors: IO.
func (m *Model) Export(path, form string) error {
	if err := checkTexts("path", path, form); err != nil {
		return err
	}
	return do(func(e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_model_export(m.c(), cstring(path), cstring(form), e)
	}, m.it())
}
