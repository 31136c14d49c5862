#include <spng.h>

#include <algorithm>
#include <memory>

#include "runtime/data/pictures/codecs/begins.h"

namespace cairn::data {
namespace {

constexpr uint64_t kPngChunkBytes = uint64_t{1} << 24;  // of a chunk that is no picture

struct PngReader {
  std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> context{spng_ctx_new(0), spng_ctx_free};
  std::string_view name;
  spng_ihdr header;

  PngReader(Coded coded, std::string_view of) : name(of) {
    require(context != nullptr, Code::kOutOfMemory, name,
            ": the system gave no memory for a bookkeeping object");
    check(spng_set_png_buffer(context.get(), coded.data(), coded.size()));
    check(spng_set_image_limits(context.get(), kMostPictureSide, kMostPictureSide));
    check(spng_set_chunk_limits(context.get(), kPngChunkBytes, kPngChunkBytes));
    // The header's bytes are looked at first, so that a refusal names what they claim.
    if (coded.size() >= 24) checked_size(number(coded, 16), number(coded, 20), name);
    check(spng_get_ihdr(context.get(), &header));
  }
  static uint64_t number(Coded coded, size_t at) {
    uint64_t value = 0;
    for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint64_t>(coded[at + i]);
    return value;
  }
  void check(int result) const {
    if (result == SPNG_EMEM) fail(Code::kOutOfMemory, name, ": no memory to decode it");
    require(result == 0, Code::kCorruptFile, name, ": no valid PNG file: ", spng_strerror(result));
  }
  PictureSize size() const { return checked_size(header.width, header.height, name); }
};

PictureSize png_size(Coded coded, std::string_view name) { return PngReader(coded, name).size(); }

Picture png_decode(Coded coded, std::string_view name, int) {
  PngReader reader(coded, name);
  const PictureSize size = reader.size();
  Picture picture(size.width, size.height);
  size_t bytes = 0;
  reader.check(spng_decoded_image_size(reader.context.get(), SPNG_FMT_RGB8, &bytes));
  require(bytes == picture.rgb.size(), Code::kCorruptFile, name,
          ": no valid PNG file: its size is not its header's");
  reader.check(spng_decode_image(reader.context.get(), picture.rgb.data(), bytes, SPNG_FMT_RGB8, 0));
  return picture;
}

}  // namespace

const Codec kPng = {"PNG", begins_as_png, png_size, png_decode};

}  // namespace cairn::data
