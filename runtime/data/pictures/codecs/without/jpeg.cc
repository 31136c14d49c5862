// Stands in for JPEG files where CAIRN_JPEG is off.
#include "runtime/data/pictures/codecs/begins.h"

namespace cairn::data {
namespace {

PictureSize no_jpeg_size(Coded, std::string_view name) { codec_left_out(name, "a JPEG file", "CAIRN_JPEG"); }
Picture no_jpeg_decode(Coded, std::string_view name, int) {
  codec_left_out(name, "a JPEG file", "CAIRN_JPEG");
}

}  // namespace

const Codec kJpeg = {"JPEG", begins_as_jpeg, no_jpeg_size, no_jpeg_decode};

}  // namespace cairn::data
