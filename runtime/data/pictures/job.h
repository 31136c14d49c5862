// One micro-batch under way: rows that threads take one by one.
#pragma once
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "runtime/data/pictures/pictures.h"

namespace cairn::data {

struct PictureJob {
  uint64_t number = 0, epoch = 0, first = 0;  // first: place of its first row in the epoch's order
  int64_t rows = 0, real = 0;                 // those that hold pictures
  bool masks = false;
  std::vector<float> pixels;
  std::vector<int32_t> labels, mask;
  std::vector<uint64_t> items;
  int64_t taken = 0, done = 0;  // of the real rows; under the lock of the jobs
  int64_t failed = -1;          // the first row that did
  std::optional<Error> error;   // of that row
};

// Makes rows: what is to be done with an item, and with one that cannot be read.
class PictureRows {
 public:
  explicit PictureRows(const PictureOptions& options);

  const PictureSource& source() const { return *source_; }
  const PictureOptions& options() const { return options_; }
  uint64_t count() const { return count_; }
  uint64_t bad() const;
  void begin(PictureJob& job, uint64_t number, int64_t rows, bool masks) const;
  void make(PictureJob& job, int64_t row) const;  // throws Error
  // Copies a job that is done, and mixes it.
  void finish(const PictureJob& job, const PictureBatch& out) const;

 private:
  uint64_t item(uint64_t epoch, uint64_t place) const;
  void read(PictureJob& job, int64_t row, uint64_t item) const;

  PictureOptions options_;
  std::unique_ptr<PictureSource> source_;
  uint64_t all_ = 0, first_ = 0,
           count_ = 0;  // of the items, in the order that parts them, those of this part
  size_t numbers_ = 0;  // of a picture
  mutable std::mutex lock_;
  mutable std::set<uint64_t> bad_;
};

// mixup (Zhang et al., 2018) and cutmix (Yun et al., 2019), as torchvision's: each row with the one before it.
void mix(const PictureOptions& options, const PictureJob& job, const PictureBatch& out);

}  // namespace cairn::data
