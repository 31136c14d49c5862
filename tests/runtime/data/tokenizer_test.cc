#include <gtest/gtest.h>
#include <unistd.h>

#include <random>

#include "runtime/base/os/file.h"
#include "runtime/data/data.h"
#include "tests/runtime/io/scratch.h"

namespace cairn::data {
namespace {

std::string english(int lines) {
  static const char* const kWords[] = {"the",   "river",  "runs", "down",  "from",  "mountain",
                                       "and",   "stones", "mark", "way",   "back,", "for",
                                       "those", "who",    "walk", "there."};
  std::mt19937 random(7);
  std::string text;
  for (int i = 0; i < lines; ++i) {
    for (int w = 0; w < 12; ++w) text += std::string(w ? " " : "") + kWords[random() % 16];
    text += '\n';
  }
  return text;
}

const Tokenizer& bpe() {
  static const test::Scratch scratch;
  static const auto tokenizer = train_bpe(scratch.put("text", english(200)), 320);
  return *tokenizer;
}

const std::string_view kHard[] = {
    "",
    " ",
    "    ",
    "\n",
    "\n\n\n a \n",
    "\tif x:\n\t\treturn  1  ",
    "trailing \n leading",
    "\xE2\x96\x81 is the mark\xE2\x96\x81of sentencepiece \xE2\x81\x87 \xE2\x96\x85",
    "<s></s><unk><0x41> <pad>",
    "na\xC3\xAFve \xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E \xF0\x9F\x98\x80 e\xCC\x81 \xEF\xBC\xA1 \xEF\xBF\xBD "
    "\xEF\xBB\xBF.",
    "bad \xFF\xFE \xC3 \xE2\x96 \xED\xA0\x80 \xF5\x80\x80\x80 \xC0\x80 utf-8 \x80",
    "\r\n\v\f\x7F\x1B[0m",
};

TEST(Tokenizer, BytesGiveBackEveryByte) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  const auto tokens = bytes_tokenizer()->encode(all);
  EXPECT_EQ(tokens.size(), 256u);
  EXPECT_EQ(tokens[255], 255);
  EXPECT_EQ(bytes_tokenizer()->decode(tokens), all);
}

TEST(Tokenizer, BpeGivesBackHardText) {
  for (std::string_view text : kHard) EXPECT_EQ(bpe().decode(bpe().encode(text)), text);
  const std::string zero("a\0b\0\0c", 6);
  EXPECT_EQ(bpe().decode(bpe().encode(zero)), zero);
}

TEST(Tokenizer, BpeGivesBackRandomBytesAndText) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    const int length = static_cast<int>(random() % 200);
    for (int i = 0; i < length; ++i) {
      if (round % 2)
        text += static_cast<char>(random() % 256);
      else
        text += std::string(kHard[random() % std::size(kHard)].substr(0, random() % 9)) + " \n"[random() % 2];
    }
    ASSERT_EQ(bpe().decode(bpe().encode(text)), text);
  }
}

TEST(Tokenizer, BpeGivesBackLongLines) {
  std::string text(20000, ' ');
  for (size_t i = 0; i + 3 < text.size(); i += 3) text.replace(i, 3, "\xE6\x97\xA5");
  EXPECT_EQ(bpe().decode(bpe().encode(text)), text);
  EXPECT_EQ(bpe().decode(bpe().encode(std::string(9000, 'a'))), std::string(9000, 'a'));
}

TEST(Tokenizer, BpeCompressesWhatItLearned) {
  const std::string text = english(20);
  EXPECT_LT(bpe().encode(text).size() * 2, text.size());
  EXPECT_EQ(bpe().vocabulary(), 320);
  EXPECT_EQ(bpe().kind(), "bpe");
}

TEST(Tokenizer, BpeTrainingIsDeterministicAndSaved) {
  const test::Scratch scratch;
  const auto text = scratch.put("text", english(200));
  train_bpe(text, 310)->save(scratch / "a.model");
  train_bpe(text, 310)->save(scratch / "b.model");
  EXPECT_TRUE(test::slurp(scratch / "a.model") == test::slurp(scratch / "b.model"));
  const auto loaded = load_bpe(scratch / "a.model");
  EXPECT_EQ(loaded->vocabulary(), 310);
  EXPECT_EQ(loaded->decode(loaded->encode("stones mark the way")), "stones mark the way");
}

TEST(Tokenizer, BpeIsQuiet) {
  const test::Scratch scratch;
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const auto text = scratch.put("text", english(50));
  train_bpe(text, 300)->save(scratch / "model");
  load_bpe(scratch / "model");
  EXPECT_THROW(train_bpe(text, 100000), Error);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Tokenizer, BadVocabularyNamesTheLimit) {
  const test::Scratch scratch;
  const auto text = scratch.put("text", "one small text, one small text\n");
  const auto large = test::failure([&] { train_bpe(text, 5000); });
  EXPECT_EQ(large.code, Code::kInvalidArgument);
  const auto at = large.message.find("the largest possible is ");
  ASSERT_NE(at, std::string::npos) << large.message;
  const int largest = std::stoi(large.message.substr(at + 24));
  EXPECT_EQ(train_bpe(text, largest)->vocabulary(), largest);
  EXPECT_THROW(train_bpe(text, largest + 1), Error);

  const auto small = test::failure([&] { train_bpe(text, 200); });
  EXPECT_EQ(small.code, Code::kInvalidArgument);
  const auto from = small.message.find("the smallest possible is ");
  ASSERT_NE(from, std::string::npos) << small.message;
  const int smallest = std::stoi(small.message.substr(from + 25));
  EXPECT_EQ(train_bpe(text, smallest)->vocabulary(), smallest);
  EXPECT_THROW(train_bpe(text, smallest - 1), Error);
}

TEST(Tokenizer, BadInputIsAnError) {
  const test::Scratch scratch;
  EXPECT_EQ(test::failure([&] { train_bpe(scratch / "none", 300); }).code, Code::kNotFound);
  EXPECT_EQ(test::failure([&] { train_bpe(scratch.put("empty", ""), 300); }).code, Code::kInvalidArgument);
  EXPECT_EQ(test::failure([&] { train_bpe(scratch.path(), 300); }).code, Code::kInvalidArgument);
  EXPECT_EQ(test::failure([&] { train_bpe(scratch.put("newlines", "\n\n\n"), 300); }).code,
            Code::kInvalidArgument);
  EXPECT_EQ(test::failure([&] { load_bpe(scratch / "none"); }).code, Code::kNotFound);
  EXPECT_EQ(test::failure([&] { load_bpe(scratch.put("empty", "")); }).code, Code::kCorruptFile);
  EXPECT_EQ(test::failure([&] { load_bpe(scratch.put("foreign", "hello, this is no model")); }).code,
            Code::kCorruptFile);
  const auto bytes = bytes_tokenizer();
  for (const Tokenizer* tokenizer : {&bpe(), static_cast<const Tokenizer*>(bytes.get())})
    for (int32_t token : {-1, tokenizer->vocabulary()}) {
      const int32_t tokens[] = {1, token};
      const auto bad = test::failure([&] { tokenizer->decode(tokens); });
      EXPECT_EQ(bad.code, Code::kInvalidArgument);
      EXPECT_NE(bad.message.find("position 1"), std::string::npos) << bad.message;
    }
}

// Whatever a damaged model does, it is an error or a tokenizer that loses nothing.
TEST(Tokenizer, DamagedModelsNeverCrash) {
  const test::Scratch scratch;
  bpe().save(scratch / "model");
  const std::string model = test::slurp(scratch / "model");
  std::mt19937 random(11);
  int errors = 0;
  for (int round = 0; round < 400; ++round) {
    std::string damaged = model;
    if (round % 4 == 0)
      damaged.resize(random() % model.size());
    else
      damaged[random() % model.size()] ^= static_cast<char>(1u << random() % 8);
    scratch.put("damaged", damaged);
    const auto result = test::failure([&] {
      const auto tokenizer = load_bpe(scratch / "damaged");
      ASSERT_EQ(tokenizer->decode(tokenizer->encode("the way back \n")), "the way back \n");
    });
    if (result.code != Code::kOk) {
      EXPECT_EQ(result.code, Code::kCorruptFile) << result.message;
      ++errors;
    }
  }
  EXPECT_GT(errors, 0);
}

}  // namespace
}  // namespace cairn::data
