// Files of pictures, and the kinds of data that hold them.
#include <filesystem>

#include "runtime/data/pictures/codecs/codecs.h"
#include "runtime/data/pictures/source.h"
#include "tests/fuzz/families.h"
#include "tests/fuzz/tools.h"
#include "tests/runtime/data/pictures/encode.h"
#include "tests/runtime/data/pictures/sample.h"

namespace cairn::fuzz {
namespace {

// Opens data and reads all that they promise.
void read_all(const std::string& data) {
  expect_declared(
      [&] {
        data::SourceOptions options;
        options.data = data;
        const auto source = data::open_source(options);
        data::RawPicture raw;
        for (uint64_t item = 0; item < std::min<uint64_t>(source->count(), 64); ++item) {
          if (source->label(item) >= static_cast<int32_t>(source->classes().size()))
            throw std::logic_error("a label without a class");
          source->text(item);
          source->read(item, raw);
        }
      },
      {Code::kCorruptFile, Code::kUnsupported, Code::kNotFound});
}

}  // namespace

void picture(std::span<const std::byte> input) {
  expect_declared(
      [&] {
        const data::Codec& codec = data::codec_of(input, "input");
        const data::PictureSize size = codec.size(input, "input");
        if (static_cast<int64_t>(size.width) * size.height > 1 << 20)
          return;  // it would be allowed, and slow
        for (const int shrink : {1, 8}) {
          const data::Picture made = codec.decode(input, "input", shrink);
          if (made.rgb.size() !=
              static_cast<size_t>(made.width) * static_cast<size_t>(made.height) * data::kColours)
            throw std::logic_error("another size");
        }
      },
      {Code::kCorruptFile, Code::kUnsupported});
}

// Input: a byte that says which file it is, images or labels, plain or packed; that file.
void mnist(std::span<const std::byte> input) {
  static const test::Scratch scratch;
  static const std::string images = test::idx_of({2, 3, 3}, std::string(18, 'x')),
                           labels = test::idx_of({2}, "\1\2");
  const std::string given = text(input);
  const int which = given.empty() ? 0 : given[0] & 3;
  for (const auto& entry : std::filesystem::directory_iterator(scratch.path()))
    std::filesystem::remove(entry.path());
  const std::string file = given.empty() ? given : given.substr(1), ending = which >= 2 ? ".gz" : "";
  scratch.put("train-images-idx3-ubyte" + (which % 2 == 0 ? ending : ""), which % 2 == 0 ? file : images);
  scratch.put("train-labels-idx1-ubyte" + (which % 2 == 1 ? ending : ""), which % 2 == 1 ? file : labels);
  read_all("mnist:" + scratch.path().string());
}

void cifar(std::span<const std::byte> input) {
  static const test::Scratch scratch;
  scratch.put("train.bin", text(input));
  read_all("cifar100:" + scratch.path().string());
}

void tar(std::span<const std::byte> input) {
  const MemoryFile file(input);
  read_all("tar:" + file.path());
}

void picture_pairs(std::span<const std::byte> input) {
  static const test::Scratch scratch;
  read_all("pairs:" + scratch.put("pairs.jsonl", text(input)).string());
}

std::vector<std::string> picture_seeds() {
  const data::Picture sample = test::sample_picture(21, 13);
  return {test::png_of(sample), test::jpeg_of(sample), test::webp_of(sample)};
}

std::vector<std::string> mnist_seeds() {
  const std::string images = test::idx_of({2, 3, 3}, std::string(18, 'y')),
                    labels = test::idx_of({2}, "\3\4");
  return {std::string(1, '\0') + images, "\1" + labels, "\2" + test::gzip_of(images),
          "\3" + test::gzip_of(labels)};
}

std::vector<std::string> cifar_seeds() { return {std::string(3074, '\5'), std::string(2 * 3074, '\7')}; }

std::vector<std::string> tar_seeds() {
  const std::string picture = test::png_of(test::sample_picture(5, 4));
  return {test::tar_member("a.png", picture) + test::tar_member("a.cls", "3") +
              test::tar_member("a.txt", "a text"),
          test::tar_member("x", "17 path=long.png\n", 'x') + test::tar_member("b", picture) +
              test::tar_member("long.json", R"({"label": 1, "caption": "c"})") +
              test::tar_member("L", "c.png", 'L') + test::tar_member("d", picture)};
}

std::vector<std::string> picture_pairs_seeds() {
  return {
      "{\"image\": \"pairs.jsonl\", \"text\": \"first\"}\n\n{\"text\": \"second\", \"image\": \"x.png\"}\n",
      "{\"image\": \"pairs.jsonl\", \"label\": 3}"};
}

}  // namespace cairn::fuzz
