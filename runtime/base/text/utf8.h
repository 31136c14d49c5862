// UTF-8, strictly: what JSON and safetensors readers take, and nothing else.
#pragma once
#include <cstddef>
#include <string_view>

namespace cairn {

// Bytes of the character at the head of a text that is not empty; 0 if they are not UTF-8 (overlong forms and
// surrogates are not).
inline size_t utf8_size(std::string_view text) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char head = byte(0);
  if (head < 0x80) return 1;
  const size_t size = head >= 0xf0 && head < 0xf5 ? 4 : head >= 0xe0 ? 3 : head >= 0xc2 ? 2 : 0;
  if (head >= 0xf5 || size == 0 || size > text.size()) return 0;
  for (size_t k = 1; k < size; ++k)
    if ((byte(k) & 0xc0) != 0x80) return 0;
  const bool bad = (head == 0xe0 && byte(1) < 0xa0) || (head == 0xed && byte(1) >= 0xa0) ||
                   (head == 0xf0 && byte(1) < 0x90) || (head == 0xf4 && byte(1) >= 0x90);
  return bad ? 0 : size;
}

inline bool is_utf8(std::string_view text) {
  for (size_t size = 0; !text.empty(); text.remove_prefix(size))
    if ((size = utf8_size(text)) == 0) return false;
  return true;
}

inline constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";

}  // namespace cairn
