// Model files: what is read, what is refused, and that nothing in them is believed.
#include "runtime/data/model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/data/subword.h"
#include "runtime/data/wire.h"
#include "tests/runtime/io/scratch.h"

namespace cairn::data {
namespace {

constexpr uint32_t kPieces = 1, kTrainer = 2, kNormalizer = 3;

std::string piece(std::string_view text, float score, PieceType type) {
  WireWriter writer;
  return writer.bytes(1, text).real(2, score).varint(3, static_cast<uint64_t>(type)).message();
}

// A model file from what a test varies.
struct Sample {
  uint64_t algorithm = 2;
  bool byte_fallback = true;
  int bytes = 256;
  std::vector<std::string> pieces = {};  // after the unknown one and the bytes
  std::string normalizer = {};

  std::string file() const {
    WireWriter out, trainer;
    out.bytes(kPieces, piece("<unk>", 0, PieceType::kUnknown));
    for (int byte = 0; byte < bytes; ++byte) out.bytes(kPieces, piece(byte_piece(byte), 0, PieceType::kByte));
    for (const std::string& p : pieces) out.bytes(kPieces, p);
    trainer.varint(3, algorithm).varint(35, byte_fallback);
    return out.bytes(kTrainer, trainer.message()).bytes(kNormalizer, normalizer).message();
  }
};

std::vector<int32_t> tokens(const Sample& sample, std::string_view text) {
  const auto tokenizer = subword_tokenizer(sample.file(), "sample");
  const auto ids = tokenizer->encode(text);
  EXPECT_EQ(tokenizer->decode(ids), text);
  return ids;
}

test::Failure refusal(const std::string& file) {
  return test::failure([&] { subword_tokenizer(file, "sample"); });
}

std::string normal(std::string_view text, float score) { return piece(text, score, PieceType::kNormal); }
constexpr int32_t kFirst = 257;  // token of the first piece of a sample

TEST(Model, WhatContradictsItselfIsRefused) {
  const struct {
    Sample sample;
    Code code;
    const char* says;
  } cases[] = {
      {{.bytes = 255}, Code::kCorruptFile, "no piece for byte 255"},
      {{.byte_fallback = false}, Code::kCorruptFile, "needs byte fallback"},
      {{.algorithm = 3}, Code::kUnsupported, "of type word"},
      {{.algorithm = 4}, Code::kUnsupported, "of type char"},
      {{.algorithm = 5}, Code::kCorruptFile, "model type 5"},
      {{.pieces = {normal("a", 0), normal("a", -1)}}, Code::kCorruptFile, "pieces 257 and 258 are the same"},
      {{.pieces = {normal("", 0)}}, Code::kCorruptFile, "piece 257 is empty"},
      {{.pieces = {normal("\xFF", 0)}}, Code::kCorruptFile, "piece 257 is not UTF-8"},
      {{.pieces = {normal("a", NAN)}}, Code::kCorruptFile, "piece 257 has the score"},
      {{.pieces = {piece("a", 0, static_cast<PieceType>(7))}}, Code::kCorruptFile, "has type 7"},
      {{.pieces = {piece("<0x41>", 0, PieceType::kByte)}}, Code::kCorruptFile, "byte 65 for the second time"},
      {{.pieces = {piece("<0x4x>", 0, PieceType::kByte)}}, Code::kCorruptFile, "not spelled"},
      {{.pieces = {piece("<u>", 0, PieceType::kUnknown)}}, Code::kCorruptFile, "2 pieces are 'unknown'"},
  };
  for (const auto& c : cases) {
    const auto failure = refusal(c.sample.file());
    EXPECT_EQ(failure.code, c.code) << c.says;
    EXPECT_NE(failure.message.find(c.says), std::string::npos) << failure.message;
    EXPECT_EQ(failure.message.find("sample"), 0u) << failure.message;
  }
  EXPECT_EQ(refusal(Sample{}.file()).code, Code::kOk);
}

TEST(Model, BytesThatAreNoProtobufAreRefused) {
  const std::string good = Sample{}.file();
  for (const std::string& bad : {
           std::string("\x0A", 1),  // no length
           std::string("\x0A\x05"
                       "ab",
                       4),                                                     // longer than the file
           std::string("\x02\x00", 2),                                         // field 0
           good + "\x0B",                                                      // a group
           good + "\x0F",                                                      // wire type 7
           good + "\x88",                                                      // cut off in a number
           good + std::string("\xF8\x01") + std::string(10, '\xFF') + "\x01",  // a number of 11 bytes
           good + std::string("\xF8\x01") + std::string(9, '\xFF') + "\x02",   // 2^65
           good + std::string("\x0D\x01\x02\x03\x04"),                         // pieces as a float
           good + std::string("\x12\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F"),     // a length of 2^63
       }) {
    const auto failure = refusal(bad);
    EXPECT_EQ(failure.code, Code::kCorruptFile);
    EXPECT_FALSE(failure.message.empty());
  }
  // A file cut short is refused, except between the two fields at the end: the normaliser's is empty.
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_EQ(refusal(good.substr(0, size)).code, size == good.size() - 2 ? Code::kOk : Code::kCorruptFile)
        << "the first " << size << " bytes";
}

TEST(Model, UnknownFieldsAreSkipped) {
  Sample sample{.pieces = {normal("a", 0), normal("b", -1), normal("ab", -2)}};
  WireWriter more;
  more.varint(200, 5).real(201, 1).bytes(202, "anything");
  EXPECT_EQ(subword_tokenizer(sample.file() + more.message(), "sample")->encode("ab"),
            std::vector<int32_t>{kFirst + 2});
}

// A precompiled_charsmap was once handed to a library that read outside of it: it is not interpreted at all.
TEST(Model, NothingIsNormalised) {
  Sample sample{.pieces = {normal("\xE2\x96\x81", 0), normal("a", -1),
                           normal("\xE2\x96\x81"
                                  "a",
                                  -2)}};
  const auto expected = tokens(sample, "a a");
  EXPECT_EQ(expected, (std::vector<int32_t>{kFirst + 1, kFirst + 2}));
  for (const std::string& charsmap :
       {std::string("\x02\x00\x00\x00"
                    "aa",
                    6),
        std::string(4, '\xFF'), std::string("\x00", 1), std::string(5000, '\x80')}) {
    WireWriter normalizer;
    normalizer.bytes(1, "nmt_nfkc").bytes(2, charsmap).varint(3, 1).varint(4, 1);
    sample.normalizer = normalizer.message();
    EXPECT_EQ(tokens(sample, "a a"), expected);
    EXPECT_EQ(tokens(sample, "  \xEF\xBC\xA1  ").size(), 2u + 3u + 2u);
  }
}

TEST(Model, MergesGoByScoreThenFromTheLeft) {
  const Sample sample{
      .pieces = {normal("a", -9), normal("b", -9), normal("aa", -1), normal("ab", -1), normal("aab", -5)}};
  EXPECT_EQ(tokens(sample, "aaab"), (std::vector<int32_t>{kFirst + 2, kFirst + 3}));
  EXPECT_EQ(tokens(sample, "aab"), (std::vector<int32_t>{kFirst + 4}));
}

TEST(Model, UserDefinedPiecesAreTakenWholeAndUnusedOnesTakenApart) {
  Sample sample{.pieces = {normal("a", -1), normal("b", -1), piece("ab", 0, PieceType::kUserDefined),
                           piece("ba", -1, PieceType::kUnused), normal("bab", -1),
                           piece("c", 0, PieceType::kUnused)}};
  EXPECT_EQ(tokens(sample, "abab"), (std::vector<int32_t>{kFirst + 2, kFirst + 2}));
  EXPECT_EQ(tokens(sample, "ba"), (std::vector<int32_t>{kFirst + 1, kFirst}));
  EXPECT_EQ(tokens(sample, "c"), (std::vector<int32_t>{'c' + 1}));
  sample.algorithm = 1;
  EXPECT_EQ(tokens(sample, "abab"), (std::vector<int32_t>{kFirst + 2, kFirst + 2}));
  EXPECT_EQ(tokens(sample, "c"), (std::vector<int32_t>{'c' + 1}));
}

TEST(Model, UnigramTakesTheHighestSum) {
  const Sample sample{.algorithm = 1,
                      .pieces = {normal("a", -3), normal("b", -3), normal("ab", -5), normal("aba", -9)}};
  EXPECT_EQ(tokens(sample, "aba"), (std::vector<int32_t>{kFirst + 2, kFirst}));  // -8, against -9
}

// Pieces may be as long and as many as they like: the time stays near n log n, the memory a multiple of the
// file's.
TEST(Model, LongPiecesCostNoMoreThanTheirBytes) {
  for (const uint64_t algorithm : {1u, 2u}) {
    Sample sample{.algorithm = algorithm};
    for (int n = 1; n < 600; ++n)
      sample.pieces.push_back(normal(std::string(n, 'a'), static_cast<float>(-n)));
    sample.pieces.push_back(normal(std::string(1 << 20, 'b'), 0));
    EXPECT_FALSE(tokens(sample, std::string(20000, 'a')).empty());
    EXPECT_EQ(tokens(sample, std::string(5000, 'b')).size(), 5000u);
  }
}

}  // namespace
}  // namespace cairn::data
