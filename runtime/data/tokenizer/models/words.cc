// Words from the longest pieces, and words that are tokens.
#include "runtime/data/tokenizer/models/model.h"
#include "runtime/data/tokenizer/unicode/utf8.h"

namespace cairn::tokenizer {
namespace {

class WordPiece final : public Model {
 public:
  WordPiece(Tokens tokens, const WordPieceSettings& settings)
      : unknown_name_(settings.unknown), most_characters_(settings.most_characters) {
    tokens_ = std::move(tokens);
    unknown_ = tokens_.find(unknown_name_);
    for (int32_t id = 0; id < tokens_.size(); ++id)
      if (tokens_.has(id)) trie_.add(tokens_.text(id), id);
    continues_ = trie_.follow(settings.prefix, behind_prefix_);
  }

  void cut(std::string_view word, uint32_t base, Scratch&, std::vector<Piece>& out) const override {
    const size_t before = out.size();
    bool known = word.size() <= most_characters_ || count_runes(word) <= most_characters_;
    for (size_t at = 0; known && at < word.size();) {
      int32_t id = -1;
      const size_t size =
          at == 0 || continues_ ? trie_.longest(word.substr(at), id, at == 0 ? 0 : behind_prefix_) : 0;
      known = size > 0;
      out.push_back({id, base + static_cast<uint32_t>(at), base + static_cast<uint32_t>(at + size)});
      at += size;
    }
    if (known) return;
    out.resize(before);
    require(unknown_ >= 0, Code::kInvalidArgument, "the token for what is unknown, '", unknown_name_,
            "', is not in the vocabulary");
    out.push_back({unknown_, base, base + static_cast<uint32_t>(word.size())});
  }

 private:
  std::string unknown_name_;
  uint64_t most_characters_;
  int32_t unknown_ = -1;
  Trie trie_;
  uint32_t behind_prefix_ = 0;
  bool continues_ = false;  // whether any token has the prefix
};

class WordLevel final : public Model {
 public:
  WordLevel(Tokens tokens, const std::string& unknown) : unknown_name_(unknown) {
    tokens_ = std::move(tokens);
    unknown_ = tokens_.find(unknown);
  }
  void cut(std::string_view word, uint32_t base, Scratch&, std::vector<Piece>& out) const override {
    const int32_t found = tokens_.find(word), id = found >= 0 ? found : unknown_;
    require(id >= 0, Code::kInvalidArgument, "the token for what is unknown, '", unknown_name_,
            "', is not in the vocabulary");
    out.push_back({id, base, base + static_cast<uint32_t>(word.size())});
  }

 private:
  std::string unknown_name_;
  int32_t unknown_ = -1;
};

}  // namespace

std::unique_ptr<Model> wordpiece_model(Tokens tokens, const WordPieceSettings& settings) {
  return std::make_unique<WordPiece>(std::move(tokens), settings);
}
std::unique_ptr<Model> wordlevel_model(Tokens tokens, const std::string& unknown) {
  return std::make_unique<WordLevel>(std::move(tokens), unknown);
}

}  // namespace cairn::tokenizer
