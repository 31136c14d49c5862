#include "runtime/data/pictures/sources/numbered.h"

#include <algorithm>
#include <array>

namespace cairn::data {

bool named_as_picture(std::string_view name) {
  static constexpr std::array<std::string_view, 4> kEndings = {".png", ".jpg", ".jpeg", ".webp"};
  return std::any_of(kEndings.begin(), kEndings.end(), [&](std::string_view ending) {
    return name.size() > ending.size() &&
           std::equal(ending.begin(), ending.end(), name.end() - static_cast<std::ptrdiff_t>(ending.size()),
                      [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b); });
  });
}

std::vector<std::byte> coded_of(const InputFile& file, uint64_t offset, uint64_t bytes,
                                const std::string& name) {
  require(bytes <= kMostCodedBytes, Code::kCorruptFile, name, ": ", bytes, " bytes; pictures of up to ",
          kMostCodedBytes, " bytes are read");
  require(bytes > 0, Code::kCorruptFile, name, ": an empty file is no picture");
  std::vector<std::byte> coded(bytes);
  file.read(offset, coded.data(), bytes);
  return coded;
}

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return {};
  const FileContent content(path, uint64_t{1} << 20);
  std::string_view text(reinterpret_cast<const char*>(content.bytes().data()), content.bytes().size());
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (!line.empty()) lines.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::vector<std::string> numbered_classes(uint64_t count) {
  std::vector<std::string> classes;
  for (uint64_t i = 0; i < count; ++i) classes.push_back(std::to_string(i));
  return classes;
}

void no_test_part(std::string_view what, const std::filesystem::path& path) {
  fail(Code::kNotFound, "'", path.string(), "': ", what,
       " to evaluate with; hold out a share of the data instead");
}

}  // namespace cairn::data
