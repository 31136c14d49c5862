// A picture of red, green and blue bytes, row by row, and what is refused before it takes memory.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"

namespace cairn::data {

inline constexpr uint64_t kMostPictureSide = 16384;
inline constexpr uint64_t kMostPictureBytes = uint64_t{1} << 28;  // decoded
inline constexpr int kColours = 3;

struct PictureSize {
  int width = 0, height = 0;
};

struct Picture {
  int width = 0, height = 0;
  std::vector<uint8_t> rgb;

  Picture() = default;
  Picture(int w, int h)
      : width(w), height(h), rgb(static_cast<size_t>(w) * static_cast<size_t>(h) * kColours) {}
  uint8_t* row(int y) { return rgb.data() + static_cast<size_t>(y) * static_cast<size_t>(width) * kColours; }
  const uint8_t* row(int y) const { return const_cast<Picture*>(this)->row(y); }
  uint8_t* at(int x, int y) { return row(y) + static_cast<size_t>(x) * kColours; }
  const uint8_t* at(int x, int y) const { return row(y) + static_cast<size_t>(x) * kColours; }
};

// The size that a file's header claims. kCorruptFile: none; kUnsupported: more than may be decoded.
inline PictureSize checked_size(uint64_t width, uint64_t height, std::string_view name) {
  require(width > 0 && height > 0, Code::kCorruptFile, name, ": a picture of ", width, " x ", height,
          " pixels");
  require(width <= kMostPictureSide && height <= kMostPictureSide &&
              width * height * kColours <= kMostPictureBytes,
          Code::kUnsupported, name, ": its header claims ", width, " x ", height,
          " pixels; pictures of up to ", kMostPictureSide, " pixels a side and ", kMostPictureBytes,
          " bytes decoded are read");
  return {static_cast<int>(width), static_cast<int>(height)};
}

}  // namespace cairn::data
