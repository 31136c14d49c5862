// Micro-batches of pictures, decoded and augmented on worker threads, some ahead of those asked for. A micro-batch is a pure
// function of the options and its number, whatever the number of workers: resuming needs no state.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/data/pictures/augment/augment.h"
#include "runtime/data/pictures/source.h"

namespace cairn::data {

// What becomes of a picture that cannot be read.
enum class BadPicture : uint32_t {
  kError = 0,
  kSkip = 1,     // its row is black and of kNoClass
  kReplace = 2,  // its row is the next picture of the order
};

struct PictureOptions {
  SourceOptions source;
  double held_out = 0;  // this share of the items, drawn by their number, is the part to evaluate with
  uint64_t most = 0;    // items at most; 0: all
  Augment augment;
  double mixup = 0, cutmix = 0;  // of Beta(x, x); 0: none. With both, either by half
  bool shuffle = false;          // an order for each epoch; without, all epochs are alike
  int workers = 1;               // threads; 0: whoever asks does it
  int ahead = 1;                 // micro-batches
  BadPicture bad = BadPicture::kError;
};

// Where a micro-batch goes; null: not wanted.
struct PictureBatch {
  float* pixels = nullptr;    // [batch, height, width, channels]
  int32_t* labels = nullptr;  // [batch]
  int32_t* others = nullptr;  // [batch]: of the picture that is mixed in; that of the row without one
  float* shares = nullptr;    // [batch]: of the row's own label
  uint64_t* items = nullptr;  // [batch]: for text()
  int32_t* masks = nullptr;   // [batch, height, width]
};

class Pictures {
 public:
  // kNotFound: there is no part to evaluate with. kCorruptFile, kUnsupported, kIo; kInvalidArgument.
  static std::unique_ptr<Pictures> open(const PictureOptions& options);
  virtual ~Pictures() = default;

  virtual uint64_t count() const = 0;  // of an epoch
  virtual const PictureSource& source() const = 0;
  virtual uint64_t bad() const = 0;  // different pictures that could not be read so far
  // Micro-batch `number` since the start of training. Returns the rows that hold pictures; the others are black and of kNoClass.
  virtual int64_t batch(uint64_t number, int64_t rows, const PictureBatch& out) = 0;
};

}  // namespace cairn::data
