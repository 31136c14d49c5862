// How files of pictures begin; also of those whose codec is left out, so that messages name it.
#pragma once
#include <cstring>

#include "runtime/data/pictures/codecs/codecs.h"

namespace cairn::data {

inline bool begins_with(Coded coded, std::string_view magic, size_t at = 0) {
  return coded.size() >= at + magic.size() && std::memcmp(coded.data() + at, magic.data(), magic.size()) == 0;
}
inline bool begins_as_png(Coded coded) { return begins_with(coded, "\x89PNG\r\n\x1a\n"); }
inline bool begins_as_jpeg(Coded coded) { return begins_with(coded, "\xFF\xD8\xFF"); }
inline bool begins_as_webp(Coded coded) {
  return begins_with(coded, "RIFF") && begins_with(coded, "WEBP", 8);
}

}  // namespace cairn::data
