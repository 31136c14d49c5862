// A folder for each class, with pictures in it; or train/ and val/ (or test/) with such folders.
#include <algorithm>

#include "runtime/data/pictures/sources/numbered.h"

namespace cairn::data {
namespace {

namespace fs = std::filesystem;

template <class Iterator, class Keep>
std::vector<std::string> sorted_paths(const fs::path& folder, const Keep& keep) {
  std::vector<std::string> paths;
  std::error_code error;
  for (Iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (keep(*at)) paths.push_back(at->path().string());
  require(!error, error == std::errc::no_such_file_or_directory ? Code::kNotFound : Code::kIo, "'",
          folder.string(), "': ", error.message());
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<std::string> class_folders(const fs::path& folder) {
  auto found = sorted_paths<fs::directory_iterator>(folder, [](const fs::directory_entry& entry) {
    return entry.is_directory() && entry.path().filename().string()[0] != '.';
  });
  require(!found.empty(), Code::kCorruptFile, "'", folder.string(),
          "' has no folders; wanted: a folder of pictures for each class");
  return found;
}

class Folder final : public PictureSource {
 public:
  Folder(const fs::path& root, bool test) {
    const bool parted = fs::is_directory(root / "train");
    const fs::path trained = parted ? root / "train" : root;
    for (const std::string& path : class_folders(trained))
      classes_.push_back(fs::path(path).filename().string());
    require(classes_.size() <= kMostClasses, Code::kUnsupported, "'", trained.string(), "' has ",
            classes_.size(), " classes; up to ", kMostClasses, " are known");
    add_all(test ? test_part(root, parted) : trained);
  }
  uint64_t count() const override { return labels_.size(); }
  const std::vector<std::string>& classes() const override { return classes_; }
  std::string name(uint64_t item) const override { return cat("'", path(item), "'"); }
  int32_t label(uint64_t item) const override { return labels_[item]; }
  void read(uint64_t item, RawPicture& raw) const override {
    const InputFile file(path(item));
    raw.coded = coded_of(file, 0, file.size(), name(item));
  }

 private:
  static fs::path test_part(const fs::path& root, bool parted) {
    for (const char* part : {"val", "test"})
      if (parted && fs::is_directory(root / part)) return root / part;
    no_test_part("it has no folder train/ next to a folder val/ or test/", root);
  }
  void add_all(const fs::path& part) {
    for (const std::string& path : class_folders(part)) {
      const std::string name = fs::path(path).filename().string();
      const auto found = std::lower_bound(classes_.begin(), classes_.end(), name);
      require(found != classes_.end() && *found == name, Code::kCorruptFile, "'", path,
              "': the data to train with have no folder '", name, "'");
      const auto files =
          sorted_paths<fs::recursive_directory_iterator>(path, [](const fs::directory_entry& entry) {
            return named_as_picture(entry.path().filename().string()) && entry.is_regular_file();
          });
      require(!files.empty(), Code::kCorruptFile, "class folder '", path,
              "' is empty: it has no .png, .jpg, .jpeg or .webp file; fill it, or remove it");
      for (const std::string& file : files) {
        paths_ += file;
        ends_.push_back(paths_.size());
        labels_.push_back(static_cast<int32_t>(found - classes_.begin()));
      }
    }
  }
  std::string path(uint64_t item) const {
    const uint64_t begin = item == 0 ? 0 : ends_[item - 1];
    return paths_.substr(begin, ends_[item] - begin);
  }
  std::vector<std::string> classes_;
  std::string paths_;  // one behind the other: of millions of files
  std::vector<uint64_t> ends_;
  std::vector<int32_t> labels_;
};

}  // namespace

std::unique_ptr<PictureSource> open_folder(const std::filesystem::path& path, bool test) {
  return std::make_unique<Folder>(path, test);
}

}  // namespace cairn::data
