// CIFAR's binary files: records of one or two labels and 32 x 32 pictures, a plane for each colour.
#include <algorithm>

#include "runtime/data/pictures/sources/numbered.h"

namespace cairn::data {
namespace {

constexpr int kCifarSide = 32;
constexpr uint64_t kCifarPlane = kCifarSide * kCifarSide;

struct CifarForm {
  const char *kind, *folder, *names;  // as the archive unpacks
  std::vector<std::string> train, test;
  uint64_t label_bytes;  // the last of which counts
  uint32_t classes;
};

class Cifar final : public PictureSource {
 public:
  Cifar(const CifarForm& form, std::filesystem::path folder, bool test)
      : record_(form.label_bytes + kColours * kCifarPlane), labels_at_(form.label_bytes) {
    if (std::filesystem::exists(folder / form.folder)) folder /= form.folder;
    for (const std::string& name : test ? form.test : form.train) add(form, folder / name);
    classes_ = lines_of(folder / form.names);
    if (classes_.size() != form.classes) classes_ = numbered_classes(form.classes);
  }
  uint64_t count() const override { return labels_.size(); }
  const std::vector<std::string>& classes() const override { return classes_; }
  std::string name(uint64_t item) const override {
    const auto [file, record] = place(item);
    return cat("'", files_[file]->path().string(), "', picture ", record);
  }
  int32_t label(uint64_t item) const override { return labels_[item]; }
  void read(uint64_t item, RawPicture& raw) const override {
    const auto [file, record] = place(item);
    std::vector<uint8_t> planes(kColours * kCifarPlane);
    files_[file]->read(record * record_ + labels_at_, planes.data(), planes.size());
    raw.picture = Picture(kCifarSide, kCifarSide);
    for (size_t i = 0; i < kCifarPlane; ++i)
      for (size_t c = 0; c < kColours; ++c) raw.picture.rgb[i * kColours + c] = planes[c * kCifarPlane + i];
  }

 private:
  void add(const CifarForm& form, const std::filesystem::path& path) {
    auto file = std::make_unique<InputFile>(path);
    const uint64_t size = file->size();
    require(size > 0 && size % record_ == 0, Code::kCorruptFile, "'", path.string(), "' has ", size,
            " bytes; a file of ", form.kind, " holds records of ", record_, " bytes");
    for (uint64_t record = 0; record < size / record_; ++record) {
      uint8_t label;
      file->read(record * record_ + labels_at_ - 1, &label, 1);
      require(label < form.classes, Code::kCorruptFile, "'", path.string(), "', picture ", record,
              ": its label is ", static_cast<int>(label), "; ", form.kind, " has ", form.classes, " classes");
      labels_.push_back(label);
    }
    files_.push_back(std::move(file));
    begins_.push_back(labels_.size());
  }
  std::pair<size_t, uint64_t> place(uint64_t item) const {
    const size_t file =
        static_cast<size_t>(std::upper_bound(begins_.begin(), begins_.end(), item) - begins_.begin());
    return {file, item - (file == 0 ? 0 : begins_[file - 1])};
  }
  uint64_t record_, labels_at_;
  std::vector<std::unique_ptr<InputFile>> files_;
  std::vector<uint64_t> begins_;  // of the file after each
  std::vector<uint8_t> labels_;
  std::vector<std::string> classes_;
};

}  // namespace

std::unique_ptr<PictureSource> open_cifar10(const std::filesystem::path& path, bool test) {
  static const CifarForm form = {
      "CIFAR-10",
      "cifar-10-batches-bin",
      "batches.meta.txt",
      {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"},
      {"test_batch.bin"},
      1,
      10};
  return std::make_unique<Cifar>(form, path, test);
}

std::unique_ptr<PictureSource> open_cifar100(const std::filesystem::path& path, bool test) {
  static const CifarForm form = {
      "CIFAR-100", "cifar-100-binary", "fine_label_names.txt", {"train.bin"}, {"test.bin"}, 2, 100};
  return std::make_unique<Cifar>(form, path, test);
}

}  // namespace cairn::data
