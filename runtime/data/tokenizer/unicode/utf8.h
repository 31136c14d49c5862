// Characters of text that is well-formed UTF-8, and the text that stands for bytes that are not.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::tokenizer {

// Where something comes from: bytes begin..end of the text that was given.
struct Span {
  uint32_t begin = 0, end = 0;
  bool operator==(const Span&) const = default;
};

// Bytes of the character that begins with this byte.
inline uint32_t rune_size(char first) {
  const auto b = static_cast<uint8_t>(first);
  return b < 0x80 ? 1 : b < 0xE0 ? 2 : b < 0xF0 ? 3 : 4;
}

struct Rune {
  char32_t code;
  uint32_t size;
};

inline Rune rune_at(const char* at) {
  const auto* b = reinterpret_cast<const uint8_t*>(at);
  if (b[0] < 0x80) return {b[0], 1};
  if (b[0] < 0xE0) return {(b[0] & 0x1Fu) << 6 | (b[1] & 0x3Fu), 2};
  if (b[0] < 0xF0) return {(b[0] & 0x0Fu) << 12 | (b[1] & 0x3Fu) << 6 | (b[2] & 0x3Fu), 3};
  return {(b[0] & 0x07u) << 18 | (b[1] & 0x3Fu) << 12 | (b[2] & 0x3Fu) << 6 | (b[3] & 0x3Fu), 4};
}

inline Rune rune_before(const char* begin, const char* at) {
  const char* head = at - 1;
  while (head > begin && (static_cast<uint8_t>(*head) & 0xC0) == 0x80) --head;
  return rune_at(head);
}

void append_rune(std::string& out, char32_t code);
size_t count_runes(std::string_view text);
// The character that is the whole text, or -1: none or several.
int32_t only_rune(std::string_view text);

bool is_well_formed(std::string_view text);
// Bytes of the character at the head of text that may be broken, or of what U+FFFD stands for there; and of the one before `at`.
size_t unit_size(std::string_view text);
size_t unit_size_before(std::string_view text, size_t at);
// The text with U+FFFD for every longest part that may begin a character and does not, as Python's errors="replace" and Rust's
// from_utf8_lossy have it. spans, unless null: where each byte of the result comes from, characters as one.
std::string repaired(std::string_view text, std::vector<Span>* spans);

}  // namespace cairn::tokenizer
