// Cuts text into what is matched against pieces and what goes byte by byte.
#pragma once
#include <cstdint>
#include <string_view>

namespace cairn::data {

// Bytes of the well-formed UTF-8 character at the head of `text` (Unicode 15, table 3-7: no overlong forms,
// no surrogates, at most U+10FFFF); 0 if there is none.
inline size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (text.empty()) return 0;
  const uint8_t b = byte(0);
  if (b < 0x80) return 1;
  const size_t length = b >= 0xC2 && b <= 0xDF   ? 2
                        : b >= 0xE0 && b <= 0xEF ? 3
                        : b >= 0xF0 && b <= 0xF4 ? 4
                                                 : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  if (b == 0xE0 && byte(1) < 0xA0) return 0;
  if (b == 0xED && byte(1) > 0x9F) return 0;
  if (b == 0xF0 && byte(1) < 0x90) return 0;
  if (b == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

inline bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

// The code point of a well-formed character of `length` bytes.
inline char32_t code_point(std::string_view character, size_t length) {
  constexpr uint8_t kFirstBits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  char32_t code = static_cast<uint8_t>(character[0]) & kFirstBits[length];
  for (size_t i = 1; i < length; ++i) code = code << 6 | (static_cast<uint8_t>(character[i]) & 0x3F);
  return code;
}

// Characters that sentencepiece's trainer keeps for itself, so that pieces have them only where a user wants it: control
// characters (NUL ends its strings, newlines end its sentences, the tab marks boundaries), U+2581 (its mark for a space),
// U+2047, U+2585 and U+FFFD. Their numbers, in a mask of 64 bits; -1: none of them.
inline int reserved(std::string_view character) {
  const auto first = static_cast<uint8_t>(character[0]);
  if (first < 0x20) return first;
  if (first < 0xE2) return character == "\x7F" ? 32 : -1;
  return character == "\xE2\x96\x81"   ? 33
         : character == "\xE2\x81\x87" ? 34
         : character == "\xE2\x96\x85" ? 35
         : character == "\xEF\xBF\xBD" ? 36
                                       : -1;
}
inline constexpr uint64_t kSpaceMarkBit = uint64_t{1} << 33, kNewlineBit = uint64_t{1} << '\n';

// Longest text cut into pieces at once. A cut is part of the encoding: same text, same cuts.
inline constexpr size_t kPieceBytes = 4096;

// Calls plain(text) and raw(bytes) in order; together they are the text. What is plain is well-formed, has of the
// reserved characters those in the mask `kept` alone, and at most kPieceBytes bytes. It is cut after newlines, too.
template <class Plain, class Raw>
void split_text(std::string_view text, uint64_t kept, const Plain& plain, const Raw& raw) {
  size_t begin = 0, at = 0;
  const auto flush = [&] {
    if (begin < at) plain(text.substr(begin, at - begin));
    begin = at;
  };
  while (at < text.size()) {
    const size_t length = utf8_length(text.substr(at, 4));
    const int number = length == 0 ? -1 : reserved(text.substr(at, length));
    if (length == 0 || (number >= 0 && (kept >> number & 1) == 0)) {
      flush();
      const size_t bytes = length == 0 ? 1 : length;
      raw(text.substr(at, bytes));
      at = begin = at + bytes;
      continue;
    }
    if (at + length - begin > kPieceBytes) flush();
    at += length;
    if (number == '\n' && at < text.size() && text[at] != '\n') flush();
  }
  flush();
}

}  // namespace cairn::data
