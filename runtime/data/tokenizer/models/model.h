// How words become tokens.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/data/tokenizer/models/tokens.h"
#include "runtime/data/tokenizer/models/word_cache.h"

namespace cairn::tokenizer {

// A token and the part of the text that it stands for. Where a model leaves characters out, those behind them stand for too early
// parts, as in PyPI's tokenizers.
struct Piece {
  int32_t id;
  uint32_t begin, end;
};

// Memory that a model works in; kept from word to word, and of one thread.
struct Scratch {
  WordCache cache;
  std::vector<int32_t> ids;
  std::vector<uint32_t> sizes, ranks, merged;
  struct Symbol {
    int32_t id;
    int32_t previous, next;  // -1: none
    uint32_t begin, size;    // size 0: merged into its left neighbour
    bool fixed = false;      // is merged with nothing
  };
  std::vector<Symbol> symbols;
  struct Merge {
    uint64_t order;  // the least first
    int32_t left, id;
    uint32_t size;
    bool operator<(const Merge& other) const {
      return order > other.order || (order == other.order && left > other.left);
    }
  };
  std::vector<Merge> heap;
  struct Best {
    double score = 0;
    int32_t id = -1;
    uint32_t begin = UINT32_MAX;
  };
  std::vector<Best> best;
  std::vector<std::pair<uint32_t, uint32_t>> path;
  std::string text;
};

class Model {
 public:
  virtual ~Model() = default;
  // Appends the tokens of a word, which is not empty; `base` is where it stands in the text.
  virtual void cut(std::string_view word, uint32_t base, Scratch& scratch, std::vector<Piece>& out) const = 0;
  const Tokens& tokens() const { return tokens_; }
  // The bytes that a token of a byte-level vocabulary stands for, or null where it is none.
  virtual const std::string_view* bytes_of(int32_t) const { return nullptr; }

 protected:
  Tokens tokens_;
};

struct BpeSettings {
  struct Merge {
    std::string_view left, right;
    uint32_t rank;  // the least is made first
  };
  std::vector<Merge> merges;
  std::string unknown, prefix, suffix;  // names; "": none
  bool has_unknown = false, fuse_unknown = false, byte_fallback = false, whole_words = false;
  bool byte_level = false;  // tokens spell bytes by ByteLevel's alphabet, and words are bytes
};
// kCorruptFile: a merge of tokens, or to one, that is not there; the same merge twice; an empty token in one.
std::unique_ptr<Model> bpe_model(Tokens tokens, const BpeSettings& settings);

struct WordPieceSettings {
  std::string unknown, prefix;
  uint64_t most_characters = 100;
};
std::unique_ptr<Model> wordpiece_model(Tokens tokens, const WordPieceSettings& settings);
std::unique_ptr<Model> wordlevel_model(Tokens tokens, const std::string& unknown);

struct UnigramSettings {
  std::vector<double> scores;  // by token
  int32_t unknown = -1;
  bool byte_fallback = false;
};
std::unique_ptr<Model> unigram_model(Tokens tokens, UnigramSettings settings);

// ByteLevel's alphabet: the character that stands for a byte, and the byte of a character (-1: none).
char32_t character_of_byte(uint8_t byte);
int byte_of_character(char32_t code);
// The bytes that a text in that alphabet spells; false: other characters are in it.
bool spelled_bytes(std::string_view text, std::string& out);

}  // namespace cairn::tokenizer
