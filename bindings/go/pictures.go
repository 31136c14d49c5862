package cairn

// #include "shim.h"
import "C"

import "unsafe"

// Crop is how a picture becomes the size that is asked for.
type Crop uint32

// The middle; a random part, resized; the middle moved, with black pixels around it.
const (
	CropCentre        Crop = C.CAIRN_CROP_CENTRE
	CropRandomResized Crop = C.CAIRN_CROP_RANDOM_RESIZED
	CropPadded        Crop = C.CAIRN_CROP_PADDED
)

// BadPicture is what becomes of a picture that cannot be read.
type BadPicture uint32

// An error; a black row with label -100; the next picture in its place.
const (
	BadPictureError   BadPicture = C.CAIRN_PICTURES_ERROR
	BadPictureSkip    BadPicture = C.CAIRN_PICTURES_SKIP
	BadPictureReplace BadPicture = C.CAIRN_PICTURES_REPLACE
)

// PictureOptions are what is read, and what is done to it, as cairn_pictures_options_t says.
type PictureOptions struct {
	Data                                  string // "drawings", "folder:DIR", "mnist:DIR" and so on
	Test                                  bool   // the part to evaluate with
	Width, Height, Channels               int    // channels: 3 (0, too), or 1: grey
	HeldOut                               float64
	Most, Seed                            uint64
	Classes                               int // of drawings
	Shuffle                               bool
	Workers, Ahead                        int
	Bad                                   BadPicture
	Crop                                  Crop
	Bicubic                               bool
	Padding                               int
	Resize                                float64
	Scale, Ratio                          [2]float64
	Flip                                  float64
	Brightness, Contrast, Saturation, Hue float64
	RandAugment, Magnitude                int
	Mixup, Cutmix                         float64
	Mean, Deviation                       [3]float32
}

// PictureInfo is what pictures are.
type PictureInfo struct {
	Count, Bad uint64 // of an epoch; different ones that could not be read so far
	Classes    int    // 0: the data say none
	Texts      bool   // each picture has a text
}

// PictureBatch is where a micro-batch goes; what is nil is not wanted.
type PictureBatch struct {
	Pixels []float32 // [batch, height, width, channels]
	Labels []int32   // [batch]; -100: the row holds no picture of a known class
	Others []int32   // [batch]: the class of what is mixed in
	Shares []float32 // [batch]: how much of the row is of its own class
	Items  []uint64  // [batch]: numbers for Text
	Masks  []int32   // [batch, height, width]
}

// Pictures gives micro-batches of pictures, decoded and augmented on threads of the library.
type Pictures struct {
	object
	pixels, numbers uint64
}

func (p *Pictures) it() *object {
	if p == nil {
		return absent("pictures", "OpenPictures")
	}
	return &p.object
}

func (p *Pictures) c() *C.cairn_pictures_t { return (*C.cairn_pictures_t)(p.raw) }

// OpenPictures opens pictures. Errors: NotFound (also: there is no part to evaluate with), CorruptFile, Unsupported, IO.
func OpenPictures(instance *Instance, options PictureOptions) (*Pictures, error) {
	for _, row := range []struct {
		name  string
		count int
	}{{"width", options.Width}, {"height", options.Height}, {"channels", options.Channels}, {"classes", options.Classes},
		{"workers", options.Workers}, {"ahead", options.Ahead}, {"padding", options.Padding},
		{"randaugment", options.RandAugment}, {"magnitude", options.Magnitude}} {
		if err := checkCount(row.name, row.count); err != nil {
			return nil, err
		}
	}
	a := &arena{}
	defer a.free()
	raw := picturesOf(a, options)
	if a.err != nil {
		return nil, a.err
	}
	made := &Pictures{pixels: uint64(options.Width) * uint64(options.Height)}
	made.numbers = 3 * made.pixels
	if options.Channels == 1 {
		made.numbers = made.pixels
	}
	err := do(func(e *C.cairn_error_t) C.cairn_status_t {
		var handle *C.cairn_pictures_t
		status := C.cairn_pictures_open(instance.c(), &raw, &handle, e)
		if status == C.CAIRN_STATUS_OK {
			made.init("pictures", unsafe.Pointer(handle), releasePictures, newOrder(), &instance.object)
		}
		return status
	}, instance.it())
	if err != nil {
		return nil, err
	}
	return collected(made, (*Pictures).Close), nil
}

func picturesOf(a *arena, options PictureOptions) C.cairn_pictures_options_t {
	raw := C.cairn_go_pictures_options()
	raw.data, raw.test = a.text(options.Data), flag(options.Test)
	raw.width, raw.height, raw.channels = C.uint32_t(options.Width), C.uint32_t(options.Height), C.uint32_t(options.Channels)
	raw.held_out, raw.most, raw.seed = C.double(options.HeldOut), C.uint64_t(options.Most), C.uint64_t(options.Seed)
	raw.classes, raw.shuffle = C.uint32_t(options.Classes), flag(options.Shuffle)
	raw.workers, raw.ahead, raw.bad = C.uint32_t(options.Workers), C.uint32_t(options.Ahead), C.uint32_t(options.Bad)
	raw.crop, raw.bicubic, raw.padding = C.uint32_t(options.Crop), flag(options.Bicubic), C.uint32_t(options.Padding)
	raw.resize, raw.flip = C.double(options.Resize), C.double(options.Flip)
	for i := range options.Scale {
		raw.scale[i], raw.ratio[i] = C.double(options.Scale[i]), C.double(options.Ratio[i])
	}
	raw.brightness, raw.contrast = C.double(options.Brightness), C.double(options.Contrast)
	raw.saturation, raw.hue = C.double(options.Saturation), C.double(options.Hue)
	raw.randaugment, raw.magnitude = C.uint32_t(options.RandAugment), C.uint32_t(options.Magnitude)
	raw.mixup, raw.cutmix = C.double(options.Mixup), C.double(options.Cutmix)
	for i := range options.Mean {
		raw.mean[i], raw.deviation[i] = C.float(options.Mean[i]), C.float(options.Deviation[i])
	}
	return raw
}

func releasePictures(raw unsafe.Pointer) { C.cairn_pictures_release((*C.cairn_pictures_t)(raw)) }

// Close ends the threads and releases the pictures.
func (p *Pictures) Close() error { return p.it().close() }

// Info tells what the pictures are.
func (p *Pictures) Info() (PictureInfo, error) {
	info := C.cairn_go_pictures_info()
	err := do(func(e *C.cairn_error_t) C.cairn_status_t { return C.cairn_pictures_info(p.c(), &info, e) }, p.it())
	return PictureInfo{uint64(info.count), uint64(info.bad), int(info.classes), info.texts != 0}, err
}

// Class is the name of a class. Errors: NotFound.
func (p *Pictures) Class(number int) (string, error) {
	if err := checkCount("class", number); err != nil {
		return "", err
	}
	text, err := textOf(func(out **C.cairn_text_t, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_pictures_class(p.c(), C.uint32_t(number), out, e)
	}, p.it())
	return string(text), err
}

// Content is a digest of which pictures there are: of their names, classes and texts, not of their pixels.
func (p *Pictures) Content() (string, error) {
	text, err := textOf(func(out **C.cairn_text_t, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_pictures_content(p.c(), out, e)
	}, p.it())
	return string(text), err
}

// Text is that of a picture, by the number that a micro-batch gave it. Errors: NotFound.
func (p *Pictures) Text(item uint64) (string, error) {
	text, err := textOf(func(out **C.cairn_text_t, e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_pictures_text(p.c(), C.uint64_t(item), out, e)
	}, p.it())
	return string(text), err
}

// Batch makes micro-batch number index since the start of training: a pure function of the options and the index. Returns the
// rows that hold pictures.
func (p *Pictures) Batch(index uint64, batch int, to PictureBatch) (rows int, err error) {
	if err := checkCount("batch", batch); err != nil {
		return 0, err
	}
	if p != nil {
		count := uint64(batch)
		for _, row := range []struct {
			name         string
			room, wanted uint64
		}{{"Pixels", uint64(len(to.Pixels)), count * p.numbers}, {"Labels", uint64(len(to.Labels)), count},
			{"Others", uint64(len(to.Others)), count}, {"Shares", uint64(len(to.Shares)), count},
			{"Items", uint64(len(to.Items)), count}, {"Masks", uint64(len(to.Masks)), count * p.pixels}} {
			if row.room > 0 && row.room < row.wanted {
				return 0, invalid("%s has %d numbers; %d are needed", row.name, row.room, row.wanted)
			}
		}
	}
	var out C.uint32_t
	err = do(func(e *C.cairn_error_t) C.cairn_status_t {
		return C.cairn_go_pictures_read(p.c(), C.uint64_t(index), C.uint32_t(batch), (*C.float)(firstOf(to.Pixels)),
			(*C.int32_t)(firstOf(to.Labels)), (*C.int32_t)(firstOf(to.Others)), (*C.float)(firstOf(to.Shares)),
			(*C.uint64_t)(firstOf(to.Items)), (*C.int32_t)(firstOf(to.Masks)), &out, e)
	}, p.it())
	return int(out), err
}

// firstOf is where the numbers lie; nil: there are none.
func firstOf[T any](numbers []T) unsafe.Pointer {
	if len(numbers) == 0 {
		return nil
	}
	return unsafe.Pointer(&numbers[0])
}
