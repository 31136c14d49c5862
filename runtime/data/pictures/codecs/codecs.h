// Files of pictures: what they are is told by their first bytes. Names are for messages.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/pictures/picture.h"

namespace cairn::data {

using Coded = std::span<const std::byte>;

// One kind of file. kUnsupported: it is left out of this build.
struct Codec {
  std::string_view name;  // "PNG"
  bool (*is)(Coded);
  PictureSize (*size)(Coded, std::string_view name);  // from the header alone; checked
  // RGB; transparency is dropped, as Pillow's convert("RGB") does. shrink: 1, 2, 4 or 8, honoured by JPEG alone: each side divided, rounded up.
  Picture (*decode)(Coded, std::string_view name, int shrink);
};
extern const Codec kPng, kJpeg, kWebp;

// The codec of a file. kCorruptFile: none knows it.
const Codec& codec_of(Coded coded, std::string_view name);

// What a .gz file holds, at most `limit` bytes. kCorruptFile.
std::vector<std::byte> gunzip(Coded coded, std::string_view name, uint64_t limit);

// [[noreturn]] for the stand-ins of what is left out.
[[noreturn]] inline void codec_left_out(std::string_view name, std::string_view what,
                                        std::string_view option) {
  fail(Code::kUnsupported, name, ": ", what, ": this libcairn was built with ", option,
       "=OFF; build it with -D", option, "=ON");
}

}  // namespace cairn::data
