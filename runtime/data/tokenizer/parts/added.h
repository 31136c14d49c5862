// Tokens beside the vocabulary, which are found in the text before it is cut.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/data/tokenizer/models/tokens.h"
#include "runtime/data/tokenizer/parts/part.h"

namespace cairn::tokenizer {

struct AddedToken {
  std::string content;
  bool single_word = false, lstrip = false, rstrip = false, normalized = true, special = false;
};

class AddedTokens {
 public:
  // Numbers are those of the vocabulary, where it has the token, and go on behind it. normalizer may be null.
  void add(const std::vector<AddedToken>& tokens, const Tokens& vocabulary, const Normalizer* normalizer);

  // Makes tokens of what is found: of those that are looked for before the text is normalized, or after.
  void extract(Document& document, bool normalized) const;
  int32_t find(std::string_view content) const;
  // What a token stands for when it is decoded; null: it is none of these.
  const std::string* text(int32_t id) const;
  const std::string* content(int32_t id) const;
  bool is_special(std::string_view text) const { return specials_.contains(std::string(text)); }
  int32_t size() const { return size_; }  // the highest number and 1

 private:
  struct Row {
    AddedToken token;
    std::string normal;  // as it is after the normalizer
  };
  void cut(const Document& document, const Part& part, const Trie& trie, std::vector<Part>& out) const;

  std::unordered_map<int32_t, Row> rows_;
  std::unordered_map<std::string, int32_t> numbers_;
  std::unordered_set<std::string> specials_;
  Trie plain_, normalized_;
  int32_t size_ = 0;
};

}  // namespace cairn::tokenizer
