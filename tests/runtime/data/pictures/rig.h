// Folders with pictures in them, and micro-batches of them.
#pragma once
#include "runtime/data/pictures/pictures.h"
#include "tests/runtime/data/pictures/encode.h"
#include "tests/runtime/data/pictures/sample.h"

namespace cairn::test {

inline data::PictureOptions picture_options(const std::string& data, int side = 16) {
  data::PictureOptions options;
  options.source.data = data;
  options.source.seed = 7;
  options.source.samples = 50;
  options.augment.width = options.augment.height = side;
  options.shuffle = true;
  return options;
}

struct MadeBatch {
  std::vector<float> pixels, shares;
  std::vector<int32_t> labels, others, masks;
  std::vector<uint64_t> items;
  int64_t rows = 0;
  bool operator==(const MadeBatch&) const = default;
};

inline MadeBatch batch_of(data::Pictures& pictures, uint64_t number, int64_t rows, int side = 16,
                          bool masks = false) {
  const auto count = static_cast<size_t>(rows), pixels = static_cast<size_t>(side * side);
  MadeBatch made{std::vector<float>(count * pixels * 3),
                 std::vector<float>(count),
                 std::vector<int32_t>(count),
                 std::vector<int32_t>(count),
                 std::vector<int32_t>(masks ? count * pixels : 0),
                 std::vector<uint64_t>(count),
                 0};
  made.rows = pictures.batch(number, rows,
                             {made.pixels.data(), made.labels.data(), made.others.data(), made.shares.data(),
                              made.items.data(), masks ? made.masks.data() : nullptr});
  return made;
}

// A folder of two classes, "a" with three PNG files and "b" with a JPEG and a WebP file.
inline void fill_folder(const Scratch& scratch, const std::string& part = "") {
  std::filesystem::create_directories(scratch / (part + "a"));
  std::filesystem::create_directories(scratch / (part + "b"));
  for (int i = 0; i < 3; ++i) scratch.put(cat(part, "a/", i, ".png"), png_of(sample_picture(20 + i, 30)));
  scratch.put(part + "b/0.JPG", jpeg_of(sample_picture(64, 48)));
  scratch.put(part + "b/1.webp", webp_of(sample_picture(33, 21)));
}

}  // namespace cairn::test
