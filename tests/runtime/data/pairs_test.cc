// Learning merges against a slow and obvious one that counts everything anew for each merge.
#include "runtime/data/pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "runtime/data/utf8.h"

namespace cairn::data {
namespace {

using Words = std::map<std::vector<std::string>, int64_t>;

// Words have no two equal neighbours, so that a pair never overlaps itself.
std::vector<std::string> learn_slowly(Words words, size_t merges) {
  std::vector<std::string> pieces;
  std::map<std::pair<std::string, std::string>, int64_t> given_up;
  while (pieces.size() < merges) {
    std::map<std::pair<std::string, std::string>, int64_t> counts;
    for (const auto& [word, count] : words)
      for (size_t i = 1; i < word.size(); ++i)
        if (may_be_piece(word[i - 1] + word[i])) counts[{word[i - 1], word[i]}] += count;
    std::pair<std::string, std::string> best;
    int64_t most = 0;
    for (const auto& [pair, count] : counts) {
      if (given_up.contains(pair)) continue;
      const std::string text = pair.first + pair.second, best_text = best.first + best.second;
      const bool better = count != most                     ? count > most
                          : text.size() != best_text.size() ? text.size() < best_text.size()
                                                            : text < best_text;
      if (best.first.empty() || better) {
        best = pair;
        most = count;
      }
    }
    if (best.first.empty()) break;
    const std::string text = best.first + best.second;
    if (std::ranges::find(pieces, text) != pieces.end()) {
      given_up[best] = most;
      continue;
    }
    pieces.push_back(text);
    Words merged;
    for (const auto& [word, count] : words) {
      std::vector<std::string> symbols;
      for (const std::string& symbol : word)
        if (!symbols.empty() && symbols.back() == best.first && symbol == best.second)
          symbols.back() = text;
        else
          symbols.push_back(symbol);
      merged[symbols] += count;
    }
    words = std::move(merged);
  }
  return pieces;
}

TEST(Pairs, LearnsWhatCountingAnewLearns) {
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    Words words;
    Pairs pairs;
    for (int w = 0; w < 20; ++w) {
      // Each character once: then no pair overlaps itself.
      std::string letters = "abcdefgh";
      std::shuffle(letters.begin(), letters.end(), random);
      letters.resize(2 + random() % 6);
      std::vector<std::string> symbols;
      for (char c : letters) symbols.emplace_back(1, c);
      const int64_t count = 1 + random() % 4;
      words[symbols] += count;
    }
    for (const auto& [symbols, count] : words) {
      std::string word;
      for (const std::string& s : symbols) word += s;
      pairs.add_word(word, count);
    }
    const std::vector<std::string> slow = learn_slowly(words, 30), fast = pairs.learn(30);
    // Pairs that no longer occur are learned last, to fill a vocabulary; the slow one knows none of them.
    ASSERT_LE(slow.size(), fast.size());
    for (size_t i = 0; i < slow.size(); ++i)
      ASSERT_EQ(fast[i], slow[i]) << "round " << round << " piece " << i;
  }
}

TEST(Pairs, ARunOfOneCharacterIsCountedInTwos) {
  Pairs pairs;
  pairs.add_word("aaaa", 3);  // six
  pairs.add_word("bc", 5);
  EXPECT_EQ(pairs.learn(3), (std::vector<std::string>{"aa", "bc", "aaaa"}));
}

TEST(Pairs, PiecesAreOfOneScriptAndBeginWithTheSpace) {
  for (const char* yes : {"ab", "\xE2\x96\x81", "\xE2\x96\x81the", "12", "caf\xC3\xA9", "e\xCC\x81t",
                          "\xE3\x82\xAB\xE3\x81\xAA\xE6\xBC\xA2\xE3\x83\xBC", "...", "0123456789012345"})
    EXPECT_TRUE(may_be_piece(yes)) << yes;
  for (const char* no : {"a1", "a.", "a\xE2\x96\x81", "\xE2\x96\x81\xE2\x96\x81", "a\xD0\xB1",
                         "\xE6\xBC\xA2"
                         "a",
                         "01234567890123456"})
    EXPECT_FALSE(may_be_piece(no)) << no;
}

}  // namespace
}  // namespace cairn::data
