// What characters are to the parts of a tokenizer: Unicode's properties, each in the version that PyPI's tokenizers has them in.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace cairn::tokenizer {

// Bits of a character.
enum : uint16_t {
  kLetter = 1,         // \p{L} of Oniguruma
  kNumber = 2,         // \p{N} of Oniguruma
  kMark = 4,           // \p{M} of Oniguruma
  kSpace = 8,          // White_Space
  kUpperLike = 16,     // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] of Oniguruma
  kLowerLike = 32,     // [\p{Ll}\p{Lm}\p{Lo}\p{M}] of Oniguruma
  kNumeric = 64,       // Rust's is_numeric
  kWord = 128,         // \w of Rust's expressions
  kPunctuation = 256,  // ASCII's, and Unicode's categories P*
  kControl = 512,      // Cc, Cf, Cn, Co
  kCombining = 1024,   // marks that StripAccents removes
  kNonspacing = 2048,  // marks that BertNormalizer removes
  kPlain = 4096,       // is what it is in NFC, whatever stands before it
};

class Classes {
 public:
  // The one table, made when it is first asked for.
  static const Classes& get();

  uint16_t of(char32_t code) const { return blocks_[(index_[code >> 8] << 8) | (code & 0xFF)]; }
  bool is(char32_t code, uint16_t bits) const { return (of(code) & bits) != 0; }
  const uint16_t* ascii() const { return blocks_.data(); }  // the bits of 0..255

 private:
  Classes();

  std::array<uint16_t, 0x1100> index_{};
  std::vector<uint16_t> blocks_;
};

// Rust's to_lowercase: appends to `out`.
int lowercase(char32_t code, char32_t out[2]);

}  // namespace cairn::tokenizer
