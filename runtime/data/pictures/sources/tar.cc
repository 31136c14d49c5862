// Shards as webdataset writes them: members next to each other with one stem are a sample, a picture with .cls (its class's number),
// .txt (its text) or .json (label, text).
#include <algorithm>

#include "runtime/data/pictures/sources/archive.h"
#include "runtime/data/pictures/sources/numbered.h"
#include "runtime/data/pictures/sources/said.h"

namespace cairn::data {
namespace {

constexpr uint64_t kMostTextBytes = uint64_t{1} << 20;

struct Sample {
  std::string stem;
  size_t shard = 0;
  TarMember picture;
  int32_t label = kNoClass;
  std::string text;
};

class Tar final : public PictureSource {
 public:
  explicit Tar(const std::string& paths) {
    for (size_t at = 0; at <= paths.size();) {
      const size_t end = std::min(paths.find(',', at), paths.size());
      add(paths.substr(at, end - at));
      at = end + 1;
    }
    require(!samples_.empty(), Code::kCorruptFile, "'", paths,
            "': no member is a .png, .jpg, .jpeg or .webp file");
    int32_t most = -1;
    for (const Sample& sample : samples_) {
      most = std::max(most, sample.label);
      texts_ = texts_ && !sample.text.empty();
    }
    for (const Sample& sample : samples_)
      require(most < 0 || sample.label >= 0, Code::kCorruptFile, sample_name(sample),
              " has no class (.cls, or label in .json), and others have");
    classes_ = numbered_classes(static_cast<uint64_t>(most + 1));
  }
  uint64_t count() const override { return samples_.size(); }
  const std::vector<std::string>& classes() const override { return classes_; }
  bool texts() const override { return texts_; }
  std::string name(uint64_t item) const override { return sample_name(samples_[item]); }
  int32_t label(uint64_t item) const override { return samples_[item].label; }
  std::string text(uint64_t item) const override { return samples_[item].text; }
  void read(uint64_t item, RawPicture& raw) const override {
    const Sample& sample = samples_[item];
    raw.coded = coded_of(*shards_[sample.shard], sample.picture.offset, sample.picture.size, name(item));
  }

 private:
  std::string sample_name(const Sample& sample) const {
    return cat("'", shards_[sample.shard]->path().string(), "', member '", sample.picture.name, "'");
  }
  void add(const std::string& path) {
    shards_.push_back(std::make_unique<InputFile>(path));
    const InputFile& file = *shards_.back();
    Sample sample;
    const auto end = [&] {
      if (!sample.picture.name.empty()) samples_.push_back(sample);
      sample = {};
      sample.shard = shards_.size() - 1;
    };
    end();
    each_member(file, [&](const TarMember& member) {
      const size_t slash = member.name.rfind('/'), base = slash == std::string::npos ? 0 : slash + 1;
      const size_t dot = std::min(member.name.find('.', base), member.name.size());
      if (dot == base) return;  // a hidden file
      if (member.name.substr(0, dot) != sample.stem) end();
      sample.stem = member.name.substr(0, dot);
      const std::string ending = member.name.substr(dot),
                        where = cat("'", path, "', member '", member.name, "'");
      if (named_as_picture(member.name)) {
        require(sample.picture.name.empty(), Code::kCorruptFile, where, ": its sample has the picture '",
                sample.picture.name, "', too");
        sample.picture = member;
      } else if (ending == ".cls" || ending == ".txt" || ending == ".json") {
        require(member.size <= kMostTextBytes, Code::kCorruptFile, where, ": ", member.size, " bytes; up to ",
                kMostTextBytes, " are read");
        std::string text(member.size, '\0');
        file.read(member.offset, text.data(), text.size());
        if (ending == ".cls") {
          sample.label = label_of_text(text, where);
        } else if (ending == ".txt") {
          sample.text = text;
        } else {
          const Said said = read_said(text, where);
          if (said.label) sample.label = checked_label(*said.label, where);
          if (said.text) sample.text = *said.text;
        }
      }
    });
    end();
  }
  std::vector<std::unique_ptr<InputFile>> shards_;
  std::vector<Sample> samples_;
  std::vector<std::string> classes_;
  bool texts_ = true;
};

}  // namespace

std::unique_ptr<PictureSource> open_tar(const std::filesystem::path& path, bool test) {
  if (test) no_test_part("shards have no part", path);
  return std::make_unique<Tar>(path.string());
}

}  // namespace cairn::data
