#include <webp/decode.h>

#include "runtime/data/pictures/codecs/begins.h"

namespace cairn::data {
namespace {

const uint8_t* webp_bytes(Coded coded) { return reinterpret_cast<const uint8_t*>(coded.data()); }

PictureSize webp_size(Coded coded, std::string_view name) {
  WebPBitstreamFeatures features;
  require(WebPGetFeatures(webp_bytes(coded), coded.size(), &features) == VP8_STATUS_OK, Code::kCorruptFile,
          name, ": no valid WebP file");
  require(features.has_animation == 0, Code::kUnsupported, name,
          ": a moving WebP picture; wanted: a still one");
  return checked_size(static_cast<uint64_t>(features.width), static_cast<uint64_t>(features.height), name);
}

Picture webp_decode(Coded coded, std::string_view name, int) {
  const PictureSize size = webp_size(coded, name);
  Picture picture(size.width, size.height);
  require(WebPDecodeRGBInto(webp_bytes(coded), coded.size(), picture.rgb.data(), picture.rgb.size(),
                            size.width * kColours) != nullptr,
          Code::kCorruptFile, name, ": no valid WebP file: it is truncated or changed");
  return picture;
}

}  // namespace

const Codec kWebp = {"WebP", begins_as_webp, webp_size, webp_decode};

}  // namespace cairn::data
