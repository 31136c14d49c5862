#include "runtime/data/model.h"

#include <array>
#include <cmath>

#include "runtime/data/utf8.h"
#include "runtime/data/wire.h"

namespace cairn::data {
namespace {

// Field numbers of sentencepiece_model.proto.
namespace field {
enum ModelProto : uint32_t { kPieces = 1, kTrainerSpec = 2, kNormalizerSpec = 3, kDenormalizerSpec = 5 };
enum SentencePiece : uint32_t { kPiece = 1, kScore = 2, kType = 3 };
enum TrainerSpec : uint32_t {
  kModelType = 3,
  kVocabSize = 4,
  kCharacterCoverage = 10,
  kNumThreads = 16,
  kMaxSentenceLength = 18,
  kTreatWhitespaceAsSuffix = 24,
  kHardVocabLimit = 33,
  kByteFallback = 35,
  kBosId = 41,
  kEosId = 42,
  kPadId = 43,
  kUnkSurface = 44,
};
enum NormalizerSpec : uint32_t {
  kName = 1,
  kPrecompiledCharsmap = 2,
  kAddDummyPrefix = 3,
  kRemoveExtraWhitespaces = 4,
  kEscapeWhitespaces = 5,
};
}  // namespace field

Piece parse_piece(WireReader reader, size_t id, const std::string& where) {
  Piece piece;
  while (reader.next()) switch (reader.field()) {
      case field::kPiece:
        piece.text = reader.bytes();
        break;
      case field::kScore:
        piece.score = reader.real();
        break;
      case field::kType: {
        const uint64_t type = reader.varint();
        require(type >= 1 && type <= 6, Code::kCorruptFile, where, ": piece ", id, " has type ", type,
                "; types are 1..6");
        piece.type = static_cast<PieceType>(type);
        break;
      }
      default:
        break;
    }
  require(!piece.text.empty(), Code::kCorruptFile, where, ": piece ", id, " is empty");
  require(std::isfinite(piece.score), Code::kCorruptFile, where, ": piece ", id, " has the score ",
          piece.score);
  require(is_utf8(piece.text), Code::kCorruptFile, where, ": piece ", id, " is not UTF-8");
  return piece;
}

void parse_trainer(WireReader reader, Model& model, const std::string& where) {
  while (reader.next()) switch (reader.field()) {
      case field::kModelType: {
        const uint64_t type = reader.varint();
        require(type >= 1 && type <= 4, Code::kCorruptFile, where, ": model type ", type, "; types are 1..4");
        model.algorithm = static_cast<Algorithm>(type);
        break;
      }
      case field::kByteFallback:
        model.byte_fallback = reader.boolean();
        break;
      case field::kTreatWhitespaceAsSuffix:
        model.whitespace_suffix = reader.boolean();
        break;
      case field::kUnkSurface:
        model.unknown_surface = reader.bytes();
        break;
      default:
        break;
    }
}

void parse_normalizer(WireReader reader, Model& model) {
  while (reader.next()) switch (reader.field()) {
      case field::kName:
        reader.bytes();
        break;
      case field::kPrecompiledCharsmap:
        model.charsmap = reader.bytes();
        break;
      case field::kAddDummyPrefix:
        model.add_dummy_prefix = reader.boolean();
        break;
      case field::kRemoveExtraWhitespaces:
        model.remove_extra_whitespaces = reader.boolean();
        break;
      case field::kEscapeWhitespaces:
        model.escape_whitespaces = reader.boolean();
        break;
      default:
        break;
    }
}

void check(const Model& model, const std::string& where, bool lossless) {
  require(!model.pieces.empty(), Code::kCorruptFile, where, ": not a sentencepiece model: it has no pieces");
  require(model.algorithm == Algorithm::kBpe || model.algorithm == Algorithm::kUnigram, Code::kUnsupported,
          where, ": a sentencepiece model of type ", model.algorithm == Algorithm::kWord ? "word" : "char",
          "; supported are bpe and unigram: train it again with --model_type=bpe");
  int64_t unknown = 0;
  std::array<bool, 256> byte_seen{};
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const Piece& piece = model.pieces[id];
    unknown += piece.type == PieceType::kUnknown;
    if (piece.type != PieceType::kByte) continue;
    const int byte = byte_of(piece.text);
    require(byte >= 0, Code::kCorruptFile, where, ": piece ", id,
            " is a byte, but not spelled <0x00>..<0xFF>");
    require(!byte_seen[byte], Code::kCorruptFile, where, ": piece ", id, " is byte ", byte,
            " for the second time");
    byte_seen[byte] = true;
  }
  require(unknown == 1, Code::kCorruptFile, where, ": ", unknown, " pieces are 'unknown'; it must be one");
  for (int byte = 0; byte < 256 && (lossless || model.byte_fallback); ++byte)
    require(model.byte_fallback && byte_seen[byte], Code::kCorruptFile, where,
            ": the model has no piece for byte ", byte,
            "; it needs byte fallback to be lossless: train it again with --byte_fallback=true");
}

}  // namespace

int byte_of(std::string_view piece) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return -1;
  const int high = digit(piece[3]), low = digit(piece[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

std::string byte_piece(int byte) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  return {'<', '0', 'x', kDigits[byte / 16], kDigits[byte % 16], '>'};
}

Model parse_model(std::string_view file, const std::string& where, bool lossless) {
  require(!file.empty(), Code::kCorruptFile, where, " is empty");
  require(file.size() <= kMaxModelBytes, Code::kCorruptFile, where, ": ", file.size(),
          " bytes are too many for a tokenizer; the most is ", kMaxModelBytes);
  Model model;
  WireReader reader(file, 0, where);
  while (reader.next()) switch (reader.field()) {
      case field::kPieces:
        require(model.pieces.size() < static_cast<size_t>(kMaxVocabulary), Code::kCorruptFile, where,
                ": more than ", kMaxVocabulary, " pieces");
        model.pieces.push_back(parse_piece(reader.message(), model.pieces.size(), where));
        break;
      case field::kTrainerSpec:
        parse_trainer(reader.message(), model, where);
        break;
      case field::kNormalizerSpec:
        parse_normalizer(reader.message(), model);
        break;
      case field::kDenormalizerSpec: {
        Model rules;
        parse_normalizer(reader.message(), rules);
        model.denormalizes = !rules.charsmap.empty();
        break;
      }
      default:
        break;
    }
  check(model, where, lossless);
  return model;
}

std::string write_bpe_model(const std::vector<std::string>& pieces) {
  WireWriter file;
  const auto add = [&](std::string_view text, float score, PieceType type) {
    WireWriter piece;
    piece.bytes(field::kPiece, text).real(field::kScore, score);
    if (type != PieceType::kNormal) piece.varint(field::kType, static_cast<uint64_t>(type));
    file.bytes(field::kPieces, piece.message());
  };
  add("<unk>", 0, PieceType::kUnknown);
  for (int byte = 0; byte < 256; ++byte) add(byte_piece(byte), 0, PieceType::kByte);
  for (size_t i = 0; i < pieces.size(); ++i) add(pieces[i], -static_cast<float>(i), PieceType::kNormal);
  WireWriter trainer, normalizer;
  trainer.varint(field::kModelType, static_cast<uint64_t>(Algorithm::kBpe))
      .varint(field::kVocabSize, 257 + pieces.size())
      .real(field::kCharacterCoverage, 1)
      .varint(field::kNumThreads, 1)
      .varint(field::kMaxSentenceLength, 8 * kPieceBytes)
      .varint(field::kHardVocabLimit, 0)
      .varint(field::kByteFallback, 1);
  for (uint32_t id : {field::kBosId, field::kEosId, field::kPadId}) trainer.signed_varint(id, -1);
  normalizer.bytes(field::kName, "identity")
      .bytes(field::kPrecompiledCharsmap, "")
      .varint(field::kAddDummyPrefix, 0)
      .varint(field::kRemoveExtraWhitespaces, 0);
  file.bytes(field::kTrainerSpec, trainer.message()).bytes(field::kNormalizerSpec, normalizer.message());
  return file.message();
}

}  // namespace cairn::data
