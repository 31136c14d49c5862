#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/data/data.h"
#include "runtime/data/pictures/codecs/codecs.h"
#include "runtime/data/pictures/job.h"

namespace cairn::data {
namespace {

constexpr uint64_t kSplitSeed = 20260;  // what is held out is the same whatever seed a run has
constexpr int kReplacements = 64;       // bad pictures in a row, after which there is no replacing

bool of_the_file(Code code) {
  return code == Code::kCorruptFile || code == Code::kUnsupported || code == Code::kNotFound ||
         code == Code::kIo;
}

}  // namespace

PictureRows::PictureRows(const PictureOptions& options) : options_(options) {
  const Augment& a = options_.augment;
  require(
      a.width >= 1 && a.height >= 1 && static_cast<uint64_t>(std::max(a.width, a.height)) <= kMostPictureSide,
      Code::kInvalidArgument, "pictures of ", a.width, " x ", a.height, "; wanted: 1 to ", kMostPictureSide,
      " pixels a side");
  SourceOptions& from = options_.source;
  from.width = a.width;
  from.height = a.height;
  const bool test = from.test;
  if (options_.held_out > 0) from.test = false;  // it is a part of the data to train with
  source_ = open_source(from);
  require((options_.mixup == 0 && options_.cutmix == 0) || !source_->classes().empty(),
          Code::kInvalidArgument, "mixup and cutmix mix classes, of which ", from.data, " has none");
  all_ = source_->count();
  const auto held = static_cast<uint64_t>(std::floor(static_cast<double>(all_) * options_.held_out + 0.5));
  if (options_.held_out > 0 && test) first_ = all_ - held;
  count_ = options_.held_out > 0 ? (test ? held : all_ - held) : all_;
  if (options_.most > 0) count_ = std::min(count_, options_.most);
  require(count_ > 0, Code::kInvalidArgument, from.data, ": ", all_, " pictures leave none to ",
          test ? "evaluate" : "train", " with");
  numbers_ = static_cast<size_t>(a.width) * static_cast<size_t>(a.height) * static_cast<size_t>(a.channels);
}

uint64_t PictureRows::bad() const {
  const std::lock_guard lock(lock_);
  return bad_.size();
}

uint64_t PictureRows::item(uint64_t epoch, uint64_t place) const {
  if (options_.shuffle)
    place = static_cast<uint64_t>(
        permute(options_.source.seed, epoch, static_cast<int64_t>(place), static_cast<int64_t>(count_)));
  if (options_.held_out == 0) return place;
  return static_cast<uint64_t>(
      permute(kSplitSeed, 0, static_cast<int64_t>(first_ + place), static_cast<int64_t>(all_)));
}

void PictureRows::begin(PictureJob& job, uint64_t number, int64_t rows, bool masks) const {
  const auto size = static_cast<uint64_t>(rows);
  const uint64_t batches = (count_ + size - 1) / size;
  job.number = number;
  job.epoch = options_.shuffle ? number / batches : 0;
  job.first = number % batches * size;
  job.rows = rows;
  job.real = static_cast<int64_t>(std::min(size, count_ - job.first));
  job.masks = masks;
  job.pixels.assign(static_cast<size_t>(rows) * numbers_, 0.0f);
  job.labels.assign(static_cast<size_t>(rows), kNoClass);
  job.items.assign(static_cast<size_t>(rows), 0);
  const Augment& a = options_.augment;
  job.mask.assign(
      masks ? static_cast<size_t>(rows) * static_cast<size_t>(a.width) * static_cast<size_t>(a.height) : 0,
      kNoClass);
  job.taken = job.done = 0;
  job.failed = -1;
  job.error.reset();
}

void PictureRows::read(PictureJob& job, int64_t row, uint64_t item) const {
  const Augment& augment = options_.augment;
  thread_local RawPicture raw;
  raw.coded.clear();
  source_->read(item, raw);
  Draws draws(options_.source.seed, Purpose::kAugment, job.epoch, item);
  float* to = job.pixels.data() + static_cast<size_t>(row) * numbers_;
  if (raw.coded.empty()) {
    const PictureSize size = {raw.picture.width, raw.picture.height};
    const Taken taken = take(augment, size, draws);
    apply(augment, taken, size, raw.picture, draws, to);
  } else {
    const std::string name = source_->name(item);
    const Codec& codec = codec_of(raw.coded, name);
    const PictureSize size = codec.size(raw.coded, name);
    const Taken taken = take(augment, size, draws);
    apply(augment, taken, size, codec.decode(raw.coded, name, shrink_of(taken)), draws, to);
  }
  raw = {};
  if (job.masks) {
    const size_t pixels = static_cast<size_t>(augment.width) * static_cast<size_t>(augment.height);
    source_->mask(item, job.mask.data() + static_cast<size_t>(row) * pixels);
  }
  job.labels[static_cast<size_t>(row)] = source_->label(item);
  job.items[static_cast<size_t>(row)] = item;
}

void PictureRows::make(PictureJob& job, int64_t row) const {
  uint64_t place = job.first + static_cast<uint64_t>(row);
  for (int attempt = 0;; ++attempt) {
    const uint64_t number = item(job.epoch, place);
    try {
      return read(job, row, number);
    } catch (const Error& error) {
      if (options_.bad == BadPicture::kError || !of_the_file(error.code())) throw;
      {
        const std::lock_guard lock(lock_);
        bad_.insert(number);
      }
      if (options_.bad == BadPicture::kSkip) {
        std::fill_n(job.pixels.data() + static_cast<size_t>(row) * numbers_, numbers_, 0.0f);
        job.items[static_cast<size_t>(row)] = number;
        return;
      }
      if (attempt == kReplacements) throw;
    }
    place = (place + 1) % count_;
  }
}

void PictureRows::finish(const PictureJob& job, const PictureBatch& out) const {
  const auto rows = static_cast<size_t>(job.rows);
  if (out.pixels != nullptr) std::memcpy(out.pixels, job.pixels.data(), job.pixels.size() * sizeof(float));
  if (out.labels != nullptr) std::copy_n(job.labels.data(), rows, out.labels);
  if (out.items != nullptr) std::copy_n(job.items.data(), rows, out.items);
  if (out.masks != nullptr) std::copy_n(job.mask.data(), job.mask.size(), out.masks);
  if (out.others != nullptr) std::copy_n(job.labels.data(), rows, out.others);
  if (out.shares != nullptr) std::fill_n(out.shares, rows, 1.0f);
  if (options_.mixup > 0 || options_.cutmix > 0) mix(options_, job, out);
}

}  // namespace cairn::data
