// Stands in for PNG files where CAIRN_PNG is off.
#include "runtime/data/pictures/codecs/begins.h"

namespace cairn::data {
namespace {

PictureSize no_png_size(Coded, std::string_view name) { codec_left_out(name, "a PNG file", "CAIRN_PNG"); }
Picture no_png_decode(Coded, std::string_view name, int) { codec_left_out(name, "a PNG file", "CAIRN_PNG"); }

}  // namespace

const Codec kPng = {"PNG", begins_as_png, no_png_size, no_png_decode};

}  // namespace cairn::data
