// What sentencepiece itself does, recorded by golden/make.py: the same tokens, the same pieces.
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "runtime/data/data.h"
#include "runtime/data/model.h"
#include "tests/runtime/io/scratch.h"

namespace cairn::data {
namespace {
namespace fs = std::filesystem;

const fs::path kGolden = fs::path(CAIRN_SOURCE_DIR) / "tests/runtime/data/golden";

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

TEST(Golden, TextIsCutAsSentencepieceCutsIt) {
  std::map<std::string, std::unique_ptr<Tokenizer>> tokenizers;
  std::istringstream cases(test::slurp(kGolden / "cases.txt"));
  int count = 0;
  for (std::string line; std::getline(cases, line); ++count) {
    std::istringstream fields(line);
    std::string name, hex;
    fields >> name >> hex;
    std::vector<int32_t> expected;
    for (int32_t token; fields >> token;) expected.push_back(token);
    auto& tokenizer = tokenizers[name];
    if (tokenizer == nullptr) tokenizer = load_bpe(kGolden / (name + ".model"));
    const std::string text = from_hex(hex);
    EXPECT_EQ(tokenizer->encode(text), expected) << name << ": " << text;
    EXPECT_EQ(tokenizer->decode(expected), text);
  }
  EXPECT_EQ(count, 3 * 144 + 315);
}

TEST(Golden, TrainingLearnsThePiecesOfSentencepiece) {
  const test::Scratch scratch;
  train_bpe(kGolden / "text.txt", 520)->save(scratch / "model");
  const std::string ours = test::slurp(scratch / "model"), theirs = test::slurp(kGolden / "trained.model");
  const Model a = parse_model(ours, "ours"), b = parse_model(theirs, "theirs");
  ASSERT_EQ(a.pieces.size(), b.pieces.size());
  for (size_t i = 0; i < a.pieces.size(); ++i) {
    EXPECT_EQ(a.pieces[i].text, b.pieces[i].text) << i;
    EXPECT_EQ(a.pieces[i].score, b.pieces[i].score) << i;
    EXPECT_EQ(a.pieces[i].type, b.pieces[i].type) << i;
  }
}

// To the byte what the first release wrote, so that a text trains to the same model for ever.
TEST(Golden, TrainingWritesTheFileOfTheFirstRelease) {
  const test::Scratch scratch;
  train_bpe(scratch.put("text", "the way back\n  is marked by stones\n"), 280)->save(scratch / "model");
  EXPECT_TRUE(test::slurp(scratch / "model") ==
              test::slurp(fs::path(CAIRN_SOURCE_DIR) / "tests/compat/1.0/tokenizer.model"));
}

}  // namespace
}  // namespace cairn::data
