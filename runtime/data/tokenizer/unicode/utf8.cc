#include "runtime/data/tokenizer/unicode/utf8.h"

#include <simdjson.h>

#include "runtime/base/text/utf8.h"

namespace cairn::tokenizer {
namespace {

// Bytes of the longest part at the head of the text that may begin a character; at least 1.
size_t broken_size(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t head = byte(0);
  const size_t wanted = head >= 0xF0 && head < 0xF5   ? 4
                        : head >= 0xE0 && head < 0xF0 ? 3
                        : head >= 0xC2 && head < 0xE0 ? 2
                                                      : 1;
  size_t size = 1;
  while (size < wanted && size < text.size()) {
    const uint8_t least = size > 1 ? 0x80 : head == 0xE0 ? 0xA0 : head == 0xF0 ? 0x90 : 0x80;
    const uint8_t most = size > 1 ? 0xBF : head == 0xED ? 0x9F : head == 0xF4 ? 0x8F : 0xBF;
    if (byte(size) < least || byte(size) > most) break;
    ++size;
  }
  return size;
}

}  // namespace

void append_rune(std::string& out, char32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

size_t count_runes(std::string_view text) {
  size_t count = 0;
  for (const char c : text) count += (static_cast<uint8_t>(c) & 0xC0) != 0x80;
  return count;
}

int32_t only_rune(std::string_view text) {
  return text.empty() || rune_size(text[0]) != text.size() ? -1
                                                           : static_cast<int32_t>(rune_at(text.data()).code);
}

bool is_well_formed(std::string_view text) { return simdjson::validate_utf8(text.data(), text.size()); }

size_t unit_size(std::string_view text) {
  const size_t good = utf8_size(text.substr(0, 4));
  return good > 0 ? good : broken_size(text.substr(0, 4));
}

size_t unit_size_before(std::string_view text, size_t at) {
  for (size_t size = 4; size > 1; --size)
    if (size <= at && unit_size(text.substr(at - size, size)) == size) return size;
  return 1;
}

std::string repaired(std::string_view text, std::vector<Span>* spans) {
  std::string out;
  out.reserve(text.size() + 16);
  for (size_t at = 0; at < text.size();) {
    const size_t good = utf8_size(text.substr(at, 4));
    const size_t size = unit_size(text.substr(at));
    out += good > 0 ? text.substr(at, size) : kReplacementCharacter;
    if (spans != nullptr)
      spans->resize(out.size(), Span{static_cast<uint32_t>(at), static_cast<uint32_t>(at + size)});
    at += size;
  }
  return out;
}

}  // namespace cairn::tokenizer
