#include "runtime/data/pictures/codecs/codecs.h"

namespace cairn::data {

const Codec& codec_of(Coded coded, std::string_view name) {
  for (const Codec* codec : {&kJpeg, &kPng, &kWebp})
    if (codec->is(coded)) return *codec;
  fail(Code::kCorruptFile, name, ": not a picture: ", coded.size(),
       " bytes that do not begin as PNG, JPEG or WebP; wanted: one of these");
}

}  // namespace cairn::data
