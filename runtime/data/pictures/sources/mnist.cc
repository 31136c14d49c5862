// MNIST's IDX files, as they are or as .gz: images and labels of a part.
#include <algorithm>

#include "runtime/data/pictures/codecs/codecs.h"
#include "runtime/data/pictures/sources/numbered.h"

namespace cairn::data {
namespace {

constexpr uint64_t kMostIdxBytes = uint64_t{1} << 30;  // decompressed

// An IDX file of bytes: read where it lies, or decompressed.
class IdxFile {
 public:
  IdxFile(const std::filesystem::path& folder, const std::string& stem, size_t axes) {
    path_ = find(folder, stem);
    name_ = cat("IDX file '", path_.string(), "'");
    file_ = std::make_unique<InputFile>(path_);
    size_ = file_->size();
    if (path_.extension() == ".gz") {
      const FileContent content(*file_, kMostIdxBytes);  // as it is compressed
      unpacked_ = gunzip(content.bytes(), name_, kMostIdxBytes);
      size_ = unpacked_.size();
      file_.reset();
    }
    header_ = 4 + 4 * axes;
    require(size_ >= header_, Code::kCorruptFile, name_, " has ", size_, " bytes, fewer than its header");
    uint8_t head[16];
    read(0, head, header_);
    require(head[0] == 0 && head[1] == 0 && head[2] == 8 && head[3] == axes, Code::kCorruptFile, name_,
            ": not an IDX file of bytes with ", axes, " axes");
    uint64_t bytes = 1;
    for (size_t axis = 0; axis < axes; ++axis) {
      const uint8_t* at = head + 4 + 4 * axis;
      dims_.push_back(uint64_t{at[0]} << 24 | uint64_t{at[1]} << 16 | uint64_t{at[2]} << 8 | at[3]);
    }
    if (axes == 3) checked_size(dims_[2], dims_[1], name_);
    for (const uint64_t dim : dims_) bytes *= dim;
    require(size_ - header_ == bytes, Code::kCorruptFile, name_, " has ", size_ - header_,
            " bytes of data; its header "
            "promises ",
            bytes);
    require(dims_[0] > 0, Code::kCorruptFile, name_, ": it holds nothing");
  }
  void data(uint64_t offset, void* to, uint64_t bytes) const { read(header_ + offset, to, bytes); }
  uint64_t dim(size_t axis) const { return dims_[axis]; }
  const std::string& name() const { return name_; }

 private:
  static std::filesystem::path find(const std::filesystem::path& folder, const std::string& stem) {
    for (const std::string& name :
         {stem, std::string(stem).replace(stem.rfind('-', stem.size() - 6), 1, ".")})
      for (const char* ending : {"", ".gz"})
        if (auto path = folder / (name + ending); std::filesystem::exists(path)) return path;
    fail(Code::kNotFound, "'", (folder / stem).string(),
         "': no such file; mnist:DIR wants it there, as it is or as .gz");
  }
  void read(uint64_t offset, void* to, uint64_t bytes) const {
    if (file_)
      file_->read(offset, to, bytes);
    else
      std::copy_n(unpacked_.data() + offset, bytes, static_cast<std::byte*>(to));
  }
  std::filesystem::path path_;
  std::string name_;
  std::unique_ptr<InputFile> file_;
  std::vector<std::byte> unpacked_;
  uint64_t size_ = 0, header_ = 0;
  std::vector<uint64_t> dims_;
};

class Mnist final : public PictureSource {
 public:
  Mnist(const std::filesystem::path& folder, bool test)
      : images_(folder, cat(test ? "t10k" : "train", "-images-idx3-ubyte"), 3) {
    const IdxFile labels(folder, cat(test ? "t10k" : "train", "-labels-idx1-ubyte"), 1);
    require(labels.dim(0) == images_.dim(0), Code::kCorruptFile, labels.name(), " has ", labels.dim(0),
            " labels; ", images_.name(), " has ", images_.dim(0), " pictures");
    labels_.resize(labels.dim(0));
    labels.data(0, labels_.data(), labels_.size());
    classes_ = numbered_classes(std::max(10, *std::max_element(labels_.begin(), labels_.end()) + 1));
  }
  uint64_t count() const override { return labels_.size(); }
  const std::vector<std::string>& classes() const override { return classes_; }
  std::string name(uint64_t item) const override { return cat(images_.name(), ", picture ", item); }
  int32_t label(uint64_t item) const override { return labels_[item]; }
  void read(uint64_t item, RawPicture& raw) const override {
    raw.picture = Picture(static_cast<int>(images_.dim(2)), static_cast<int>(images_.dim(1)));
    const uint64_t bytes = images_.dim(1) * images_.dim(2);
    std::vector<uint8_t> grey(bytes);
    images_.data(item * bytes, grey.data(), bytes);
    for (size_t i = 0; i < bytes; ++i) std::fill_n(raw.picture.rgb.data() + i * kColours, kColours, grey[i]);
  }

 private:
  IdxFile images_;
  std::vector<uint8_t> labels_;
  std::vector<std::string> classes_;
};

}  // namespace

std::unique_ptr<PictureSource> open_mnist(const std::filesystem::path& path, bool test) {
  return std::make_unique<Mnist>(path, test);
}

}  // namespace cairn::data
