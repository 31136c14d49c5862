// The picture that make_golden.py draws, too, files of pictures, and folders of them.
#pragma once
#include <gtest/gtest.h>

#include <span>
#include <sstream>
#include <string>

#include "runtime/data/pictures/picture.h"
#include "tests/runtime/io/scratch.h"

namespace cairn::test {

inline data::Picture sample_picture(int width = 41, int height = 31) {
  data::Picture picture(width, height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < data::kColours; ++c) {
        const int noise = (x * 7919 + y * 104729 + c * 1299709 + x * y * 31) % 61,
                  block = (x / 9 + y / 7 + c) % 3 * 60;
        picture.at(x, y)[c] = static_cast<uint8_t>(block + x + noise);
      }
  return picture;
}

// A file of the folder golden, which holds pictures below each other.
inline data::Picture golden_picture(const std::string& name) {
  const std::string file =
      slurp(std::string(CAIRN_SOURCE_DIR) + "/tests/runtime/data/pictures/golden/" + name + ".ppm");
  std::istringstream in(file);
  std::string magic;
  int width = 0, height = 0, most = 0;
  in >> magic >> width >> height >> most;
  in.get();
  data::Picture picture(width, height);
  in.read(reinterpret_cast<char*>(picture.rgb.data()), static_cast<std::streamsize>(picture.rgb.size()));
  EXPECT_TRUE(in) << name;
  return picture;
}

// How many bytes of a part of the golden picture differ by more than `by`; the part begins at row `top`.
inline size_t differing(const data::Picture& made, const data::Picture& golden, int top, int by = 0) {
  EXPECT_EQ(made.width, golden.width);
  EXPECT_LE(top + made.height, golden.height);
  size_t count = 0;
  const uint8_t* wanted = golden.row(top);
  for (const uint8_t byte : made.rgb) count += std::abs(byte - *wanted++) > by;
  return count;
}

inline std::span<const std::byte> bytes_of_text(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace cairn::test
