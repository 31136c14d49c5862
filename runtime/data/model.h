// A sentencepiece model file: what it says about pieces and how text is cut into them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"

namespace cairn::data {

inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581: how pieces spell a space
inline constexpr size_t kMaxModelBytes = size_t{1} << 28;
inline constexpr int32_t kMaxVocabulary = 1 << 24;

// Values of the file format.
enum class PieceType : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};
enum class Algorithm : uint8_t { kUnigram = 1, kBpe = 2, kWord = 3, kChar = 4 };

struct Piece {
  std::string_view text;  // as spelled in the file
  float score = 0;
  PieceType type = PieceType::kNormal;
};

struct Model {
  std::vector<Piece> pieces;  // by token
  Algorithm algorithm = Algorithm::kUnigram;
  bool byte_fallback = false;
  bool whitespace_suffix = false;  // spaces stand behind words, not in front
  std::string_view unknown_surface = " \xE2\x81\x87 ";
  std::string_view charsmap;  // what a normaliser replaces
  bool add_dummy_prefix = true, remove_extra_whitespaces = true, escape_whitespaces = true;
  bool denormalizes = false;  // decoded text is changed by rules of its own
};

// Views into `file`, which must outlive the model. kCorruptFile naming `where`: not such a file, or one that
// contradicts itself (an empty piece, text that is no UTF-8, no unknown piece, a byte twice), or without all bytes where
// it must be `lossless` or has byte fallback; kUnsupported: cut into words or characters. What is not in Model is checked
// for its form and skipped.
Model parse_model(std::string_view file, const std::string& where, bool lossless = true);

// The byte that a piece like "<0x4F>" stands for, or -1.
int byte_of(std::string_view piece);
std::string byte_piece(int byte);

// What train_bpe() writes: the unknown piece, 256 bytes, then `pieces` with scores 0, -1, -2 ...
std::string write_bpe_model(const std::vector<std::string>& pieces);

}  // namespace cairn::data
