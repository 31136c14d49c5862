#include <array>

#include "runtime/data/tokenizer/models/model.h"
#include "runtime/data/tokenizer/unicode/utf8.h"

namespace cairn::tokenizer {
namespace {

constexpr int kCharacters = 0x144;  // the highest and 1

struct Alphabet {
  std::array<char32_t, 256> characters{};
  std::array<int16_t, kCharacters> bytes{};
};

constexpr Alphabet make() {
  Alphabet made;
  made.bytes.fill(-1);
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool itself = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    made.characters[byte] = itself ? static_cast<char32_t>(byte) : next++;
    made.bytes[made.characters[byte]] = static_cast<int16_t>(byte);
  }
  return made;
}
constexpr Alphabet kAlphabet = make();

}  // namespace

char32_t character_of_byte(uint8_t byte) { return kAlphabet.characters[byte]; }
int byte_of_character(char32_t code) { return code < kCharacters ? kAlphabet.bytes[code] : -1; }

bool spelled_bytes(std::string_view text, std::string& out) {
  out.clear();
  for (size_t at = 0; at < text.size();) {
    const Rune rune = rune_at(text.data() + at);
    const int byte = byte_of_character(rune.code);
    if (byte < 0) return false;
    out += static_cast<char>(byte);
    at += rune.size;
  }
  return true;
}

}  // namespace cairn::tokenizer
