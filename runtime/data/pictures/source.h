// Where pictures come from: items by number, each with a picture and, where the data say so, a class and a text.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "runtime/data/pictures/picture.h"

namespace cairn::data {

// An item's picture: coded, as a file has it, or decoded.
struct RawPicture {
  std::vector<std::byte> coded;  // empty: `picture` counts
  Picture picture;
};

inline constexpr int32_t kNoClass = -100;  // what losses ignore

// Read by any number of threads.
class PictureSource {
 public:
  virtual ~PictureSource() = default;
  virtual uint64_t count() const = 0;
  virtual const std::vector<std::string>& classes() const = 0;  // empty: items have none
  virtual bool texts() const { return false; }
  virtual std::string name(uint64_t item) const = 0;  // for messages
  virtual int32_t label(uint64_t item) const = 0;
  virtual std::string text(uint64_t) const { return {}; }
  virtual void read(uint64_t item, RawPicture& raw) const = 0;
  // The class of each pixel, 0 where nothing is drawn. kUnsupported: the data have no masks.
  virtual void mask(uint64_t item, int32_t* pixels) const;
};

struct SourceOptions {
  std::string data;   // KIND:PATH, or drawings
  bool test = false;  // the part to evaluate with. kNotFound: the data have none
  uint64_t seed = 0;
  uint64_t samples = 0;       // of drawings
  uint32_t classes = 0;       // of drawings; 0: all
  int width = 0, height = 0;  // of drawings
};

std::unique_ptr<PictureSource> open_source(const SourceOptions& options);

// XXH3-128, in hexadecimal, over the names, classes and texts of all items, but not over their pictures, and "-" with their
// count: whether a source has the pictures that it had.
std::string content_of(const PictureSource& source);

inline constexpr uint32_t kDrawnShapes = 10;
std::unique_ptr<PictureSource> drawings(const SourceOptions& options);
using OpenPictures = std::unique_ptr<PictureSource>(const std::filesystem::path& path, bool test);
OpenPictures open_mnist, open_cifar10, open_cifar100, open_folder, open_tar, open_pairs, open_file;

}  // namespace cairn::data
