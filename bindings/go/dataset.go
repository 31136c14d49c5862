package cairn

// #include "shim.h"
import "C"

import "unsafe"

// Dataset gives micro-batches of tokens. Several goroutines may use it at once.
type Dataset struct {
	object
	info DatasetInfo
}

// DatasetInfo is what a dataset holds.
type DatasetInfo struct {
	Tokens, Windows    uint64 // windows of one epoch
	Vocabulary, Length int
}

func (d *Dataset) it() *object {
	if d == nil {
		return absent("dataset", "OpenDataset")
	}
	return &d.object
}

func (d *Dataset) c() *C.cairn_dataset_t { return (*C.cairn_dataset_t)(d.raw) }

// OpenDataset reads windows of length + 1 tokens from a token file. Errors: NotFound, IO, CorruptFile.
func OpenDataset(instance *Instance, tokenPath string, length int) (*Dataset, error) {
	if err := checkTexts("path", tokenPath); err != nil {
		return nil, err
	}
	return makeDataset(instance, 0, length, func(raw **C.cairn_dataset_t, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_dataset_open(instance.c(), cstring(tokenPath), C.uint32_t(length), raw, e)
	})
}

// RandomDataset draws tokens from the seed, for benchmarks.
func RandomDataset(instance *Instance, seed uint64, vocabulary, length int) (*Dataset, error) {
	return makeDataset(instance, vocabulary, length, func(raw **C.cairn_dataset_t, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_dataset_random(instance.c(), C.uint64_t(seed), C.uint32_t(vocabulary), C.uint32_t(length), raw, e)
	})
}

type datasetCall func(**C.cairn_dataset_t, *C.cairn_error_t) C.cairn_status_t

func makeDataset(instance *Instance, vocabulary, length int, call datasetCall) (*Dataset, error) {
	if err := checkCount("vocabulary", vocabulary); err != nil {
		return nil, err
	}
	if err := checkCount("length", length); err != nil {
		return nil, err
	}
	made := &Dataset{}
	err := do(func(e *C.cairn_error_t) C.cairn_status_t {
		var raw *C.cairn_dataset_t
		status := call(&raw, e)
		if status != C.CAIRN_STATUS_OK {
			return status
		}
		made.init("dataset", unsafe.Pointer(raw), releaseDataset, nil, &instance.object)
		info := C.cairn_go_dataset_info()
		status = C.cairn_dataset_info(raw, &info, e)
		made.info = DatasetInfo{uint64(info.tokens), uint64(info.windows), int(info.vocabulary), int(info.length)}
		return status
	}, instance.it())
	if err != nil {
		_ = made.close()
		return nil, err
	}
	return collected(made, (*Dataset).Close), nil
}

func releaseDataset(raw unsafe.Pointer) { C.cairn_dataset_release((*C.cairn_dataset_t)(raw)) }

// Close releases the dataset.
func (d *Dataset) Close() error { return d.it().close() }

// Info tells what the dataset holds.
func (d *Dataset) Info() (DatasetInfo, error) {
	var info DatasetInfo
	err := do(func(*C.cairn_error_t) C.cairn_status_t {
		info = d.info
		return C.CAIRN_STATUS_OK
	}, d.it())
	return info, err
}

// Batch fills inputs and targets, batch times Length numbers each, with micro-batch number index since the start of training;
// targets are the next tokens. It is a pure function of seed and index: resuming costs nothing. The last micro-batch of an
// epoch may have fewer rows; the rest has target -100, which losses ignore.
func (d *Dataset) Batch(seed, index uint64, batch int, inputs, targets []int32) (rows int, err error) {
	if err := checkCount("batch", batch); err != nil {
		return 0, err
	}
	if d != nil {
		if wanted := uint64(batch) * uint64(d.info.Length); uint64(len(inputs)) != wanted || uint64(len(targets)) != wanted {
			return 0, invalid("inputs has %d numbers and targets has %d; %d rows of length %d need %d each", len(inputs),
				len(targets), batch, d.info.Length, wanted)
		}
	}
	var out C.uint32_t
	in, to := bytesOf("", inputs), bytesOf("", targets)
	err = do(func(e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_dataset_batch(d.c(), C.uint64_t(seed), C.uint64_t(index), C.uint32_t(batch), (*C.int32_t)(in.first),
			(*C.int32_t)(to.first), &out, e)
	}, d.it())
	return int(out), err
}
