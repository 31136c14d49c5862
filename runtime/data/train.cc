// Learning a byte-pair vocabulary by the rules of sentencepiece's trainer, so that the same text gives the
// same pieces.
#include <algorithm>
#include <unordered_map>

#include "runtime/base/os/file.h"
#include "runtime/data/pairs.h"
#include "runtime/data/subword.h"
#include "runtime/data/utf8.h"

namespace cairn::data {
namespace {

constexpr size_t kFixedPieces = 257;  // unknown and one per byte

// What the text consists of: words (at most one space, at the head), and characters, with how often they
// occur.
class Census {
 public:
  void add(std::string_view plain) {
    size_t begin = 0;
    for (size_t at = 0; at < plain.size();) {
      if (const size_t length = fixed_piece(plain.substr(at)); length > 0) {
        add_word(plain.substr(begin, at - begin));
        begin = at += length;
        continue;
      }
      if (plain[at] == ' ' && at > begin) {
        add_word(plain.substr(begin, at - begin));
        begin = at;
      }
      const size_t length = utf8_length(plain.substr(at, 4));
      ++characters_[plain.substr(at, length)];
      at += length;
    }
    add_word(plain.substr(begin));
  }
  size_t characters() const { return characters_.size(); }

  std::vector<std::string> learn(size_t merges) const {
    Pairs pairs;
    for (const auto& [word, count] : words_) pairs.add_word(spelled(word), count);
    return pairs.learn(merges);
  }

  // The most frequent first, then by code point, which is the order of their bytes.
  std::vector<std::string> characters_by_count() const {
    std::vector<std::pair<int64_t, std::string>> sorted;
    for (const auto& [character, count] : characters_) sorted.emplace_back(-count, spelled(character));
    std::ranges::sort(sorted);
    std::vector<std::string> spelled_characters;
    for (auto& [count, character] : sorted) spelled_characters.push_back(std::move(character));
    return spelled_characters;
  }

 private:
  // Bytes of "<unk>" or "<0x4F>" at the head of the text, or 0: those are never learned from, since pieces of
  // these names exist.
  static size_t fixed_piece(std::string_view text) {
    constexpr std::string_view kUnknown = "<unk>";
    if (text[0] != '<') return 0;
    if (text.starts_with(kUnknown)) return kUnknown.size();
    return byte_of(text.substr(0, 6)) >= 0 ? 6 : 0;
  }
  static std::string spelled(std::string_view word) {
    return word[0] == ' ' ? std::string(kSpaceMark) + std::string(word.substr(1)) : std::string(word);
  }
  void add_word(std::string_view word) {
    if (!word.empty()) ++words_[word];
  }

  std::unordered_map<std::string_view, int64_t> words_, characters_;
};

}  // namespace

std::unique_ptr<Tokenizer> train_bpe(const std::filesystem::path& text, int32_t vocabulary) {
  const FileContent file(text);
  const std::string where = "'" + text.string() + "'";
  require(!file.bytes().empty(), Code::kInvalidArgument, "text ", where, " is empty");
  require(vocabulary <= kMaxVocabulary, Code::kInvalidArgument, "a vocabulary of ", vocabulary, " is above ",
          kMaxVocabulary);

  Census census;
  split_text(
      {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, 0,
      [&](std::string_view plain) { census.add(plain); }, [](std::string_view) {});
  require(census.characters() > 0, Code::kInvalidArgument, "text ", where,
          " has no printable characters to learn from");
  const auto smallest = static_cast<int64_t>(kFixedPieces + census.characters());
  require(vocabulary >= smallest, Code::kInvalidArgument, "a vocabulary of ", vocabulary,
          " is too small for ", where, ": it has ", census.characters(),
          " different characters; the smallest possible is ", smallest);

  const auto merges = static_cast<size_t>(vocabulary - smallest);
  std::vector<std::string> pieces = census.learn(merges);
  require(pieces.size() == merges, Code::kInvalidArgument, "a vocabulary of ", vocabulary,
          " is too large for ", where, ": the largest possible is ",
          smallest + static_cast<int64_t>(pieces.size()));
  std::ranges::move(census.characters_by_count(), std::back_inserter(pieces));
  return subword_tokenizer(write_bpe_model(pieces), where);
}

}  // namespace cairn::data
