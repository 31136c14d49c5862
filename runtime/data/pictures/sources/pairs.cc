// Pictures and texts by lines of JSON: {"image": path, "text": ...}, paths relative to the file's folder; label is a class's number.
#include <algorithm>

#include "runtime/data/pictures/sources/numbered.h"
#include "runtime/data/pictures/sources/said.h"

namespace cairn::data {
namespace {

constexpr uint64_t kMostPairsBytes = uint64_t{1} << 32;

class Pairs final : public PictureSource {
 public:
  explicit Pairs(const std::filesystem::path& path) : folder_(path.parent_path()) {
    const FileContent content(path, kMostPairsBytes);
    std::string_view left(reinterpret_cast<const char*>(content.bytes().data()), content.bytes().size());
    int32_t most = -1;
    for (uint64_t line = 1; !left.empty(); ++line) {
      const size_t end = std::min(left.find('\n'), left.size());
      const std::string_view row = left.substr(0, end);
      left.remove_prefix(std::min(end + 1, left.size()));
      if (row.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      const std::string where = cat("'", path.string(), "', line ", line);
      const Said said = read_said(row, where);
      require(said.image.has_value() && !said.image->empty(), Code::kCorruptFile, where, " has no 'image'");
      rows_.push_back(
          {*said.image, said.text.value_or(""), said.label ? checked_label(*said.label, where) : kNoClass});
      texts_ = texts_ && said.text.has_value();
      most = std::max(most, rows_.back().label);
      require(most < 0 || rows_.back().label >= 0, Code::kCorruptFile, where,
              " has no 'label', and others have");
    }
    require(!rows_.empty(), Code::kCorruptFile, "'", path.string(), "' has no lines");
    classes_ = numbered_classes(static_cast<uint64_t>(most + 1));
  }
  uint64_t count() const override { return rows_.size(); }
  const std::vector<std::string>& classes() const override { return classes_; }
  bool texts() const override { return texts_; }
  std::string name(uint64_t item) const override {
    return cat("'", (folder_ / rows_[item].image).string(), "'");
  }
  int32_t label(uint64_t item) const override { return rows_[item].label; }
  std::string text(uint64_t item) const override { return rows_[item].text; }
  void read(uint64_t item, RawPicture& raw) const override {
    const InputFile file(folder_ / rows_[item].image);
    raw.coded = coded_of(file, 0, file.size(), name(item));
  }

 private:
  struct Row {
    std::string image, text;
    int32_t label;
  };
  std::filesystem::path folder_;
  std::vector<Row> rows_;
  std::vector<std::string> classes_;
  bool texts_ = true;
};

}  // namespace

std::unique_ptr<PictureSource> open_pairs(const std::filesystem::path& path, bool test) {
  if (test) no_test_part("a list of pairs has no part", path);
  return std::make_unique<Pairs>(path);
}

}  // namespace cairn::data
