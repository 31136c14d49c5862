// One file, whose picture has no class and no text.
#include "runtime/data/pictures/sources/numbered.h"

namespace cairn::data {
namespace {

class OneFile final : public PictureSource {
 public:
  explicit OneFile(const std::filesystem::path& path) : file_(path) {}
  uint64_t count() const override { return 1; }
  const std::vector<std::string>& classes() const override { return no_classes_; }
  std::string name(uint64_t) const override { return cat("'", file_.path().string(), "'"); }
  int32_t label(uint64_t) const override { return kNoClass; }
  void read(uint64_t item, RawPicture& raw) const override {
    raw.coded = coded_of(file_, 0, file_.size(), name(item));
  }

 private:
  InputFile file_;
  std::vector<std::string> no_classes_;
};

}  // namespace

std::unique_ptr<PictureSource> open_file(const std::filesystem::path& path, bool test) {
  if (test) no_test_part("one file has no part", path);
  return std::make_unique<OneFile>(path);
}

}  // namespace cairn::data
