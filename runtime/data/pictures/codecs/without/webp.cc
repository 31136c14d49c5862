// Stands in for WebP files where CAIRN_WEBP is off.
#include "runtime/data/pictures/codecs/begins.h"

namespace cairn::data {
namespace {

PictureSize no_webp_size(Coded, std::string_view name) { codec_left_out(name, "a WebP file", "CAIRN_WEBP"); }
Picture no_webp_decode(Coded, std::string_view name, int) {
  codec_left_out(name, "a WebP file", "CAIRN_WEBP");
}

}  // namespace

const Codec kWebp = {"WebP", begins_as_webp, no_webp_size, no_webp_decode};

}  // namespace cairn::data
