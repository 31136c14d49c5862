#include "runtime/data/pictures/sources/archive.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace cairn::data {
namespace {

constexpr uint64_t kTarBlock = 512, kMostPaxBytes = uint64_t{1} << 20;
using TarHeader = std::array<uint8_t, kTarBlock>;

// A text field, which ends at a NUL or where it is full.
std::string field(const TarHeader& header, size_t at, size_t size) {
  const auto* begin = reinterpret_cast<const char*>(header.data()) + at;
  return {begin, strnlen(begin, size)};
}

// Octal digits, or, with the highest bit set, GNU's base 256.
bool number_of(const TarHeader& header, size_t at, size_t size, uint64_t& value) {
  value = 0;
  if ((header[at] & 0x80u) != 0) {
    for (size_t i = size - 8; i < size; ++i) value = value << 8 | header[at + i];
    return value <= uint64_t{1} << 62;
  }
  size_t i = 0;
  while (i < size && header[at + i] == ' ') ++i;
  for (; i < size && header[at + i] != 0 && header[at + i] != ' '; ++i) {
    if (header[at + i] < '0' || header[at + i] > '7') return false;
    value = value << 3 | (header[at + i] - uint64_t{'0'});
  }
  return true;
}

bool sums_up(const TarHeader& header) {
  uint64_t said, sum = 0;
  if (!number_of(header, 148, 8, said)) return false;
  for (size_t i = 0; i < kTarBlock; ++i) sum += i >= 148 && i < 156 ? uint64_t{' '} : header[i];
  return said == sum;
}

// pax's records, "LENGTH KEY=VALUE\n": the name and the size of the member that follows.
bool read_pax(std::string_view text, std::string& name, uint64_t& size, bool& has_size) {
  while (!text.empty()) {
    size_t length = 0, digits = 0;
    for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9' && digits < 8; ++digits)
      length = length * 10 + static_cast<size_t>(text[digits] - '0');
    if (digits == 0 || length <= digits + 1 || length > text.size() || text[digits] != ' ' ||
        text[length - 1] != '\n')
      return false;
    const std::string_view record = text.substr(digits + 1, length - digits - 2);
    const size_t equals = record.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key == "path") name = value;
    if (key == "size") {
      has_size = true;
      size = 0;
      for (const char digit : value) {
        if (digit < '0' || digit > '9' || size > uint64_t{1} << 58) return false;
        size = size * 10 + static_cast<uint64_t>(digit - '0');
      }
    }
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace

void each_member(const InputFile& file, const std::function<void(const TarMember&)>& take) {
  const std::string where = cat("tar file '", file.path().string(), "'");
  std::string long_name;
  uint64_t long_size = 0;
  bool has_size = false, ended = false;
  for (uint64_t at = 0; !ended;) {
    if (at == file.size() && at > 0)
      break;  // without the blocks of zeros that end one: as some programs write them
    require(file.size() - at >= kTarBlock, Code::kCorruptFile, where, " ends after ", file.size(),
            " bytes, in the middle of a header");
    TarHeader header;
    file.read(at, header.data(), kTarBlock);
    at += kTarBlock;
    if (std::all_of(header.begin(), header.end(), [](uint8_t byte) { return byte == 0; })) {
      ended = true;
      continue;
    }
    require(sums_up(header), Code::kCorruptFile, where, ": no tar header at byte ", at - kTarBlock);
    TarMember member{field(header, 0, 100), at, 0};
    require(number_of(header, 124, 12, member.size), Code::kCorruptFile, where, ": the header at byte ",
            at - kTarBlock, " has no valid size");
    const char type = static_cast<char>(header[156]);
    const bool about_next = type == 'x' || type == 'L';
    if (std::memcmp(header.data() + 257, "ustar", 6) == 0)
      if (const std::string prefix = field(header, 345, 155); !prefix.empty())
        member.name = prefix + "/" + member.name;
    if (!about_next && has_size) member.size = long_size;
    require(member.size <= file.size() - at, Code::kCorruptFile, where, " is truncated: '", member.name,
            "' has ", member.size, " bytes, of which ", file.size() - at, " are there");
    if (about_next) {
      require(member.size <= kMostPaxBytes, Code::kCorruptFile, where, ": a name of ", member.size, " bytes");
      std::string text(member.size, '\0');
      file.read(at, text.data(), text.size());
      if (type == 'L')
        long_name = text.c_str();
      else
        require(read_pax(text, long_name, long_size, has_size), Code::kCorruptFile, where,
                ": the pax header at byte ", at - kTarBlock, " is not valid");
    } else {
      if (!long_name.empty()) member.name = long_name;
      if (type == '0' || type == '\0' || type == '7') take(member);
      long_name.clear();
      has_size = false;
    }
    at += std::min((member.size + kTarBlock - 1) / kTarBlock * kTarBlock, file.size() - at);
  }
}

}  // namespace cairn::data
