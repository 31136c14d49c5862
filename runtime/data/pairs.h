// Learning byte pairs: words as sequences of symbols, counts of the pairs of neighbours, and the most
// frequent of them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace cairn::data {

// Whether learning may join characters into `text` (spelled with U+2581 for spaces): at most 16 characters, a
// space only at its head, and one script, where kana count as Han and marks take the script before them.
bool may_be_piece(std::string_view text);

// Counts are exact at any time: a merge changes those of the neighbours it touches, and the heap of
// candidates is brought up to date where its top is found to be stale. Same words, same merges, in whatever
// order they came.
class Pairs {
 public:
  // A word of plain text, spelled with U+2581, that occurs `count` times.
  void add_word(std::string_view word, int64_t count);
  // After all words: the pieces that `merges` merges make, in order. The most frequent pair is next; of
  // several the one with the fewest characters; of those the first by its bytes. Fewer if there are no more
  // pairs.
  std::vector<std::string> learn(size_t merges);

 private:
  struct Symbol {
    std::string text;
    uint32_t characters;
  };
  struct Place {
    uint32_t symbol, word;
    int32_t previous, next;  // places in the same word; -1: none
  };
  struct Pair {
    uint32_t left, right;  // symbols
    std::string text;
    uint32_t characters;
    int64_t count = 0;
    std::vector<uint32_t> places;  // of left symbols, ascending; some are out of date
    bool recount = false;          // two equal symbols, and a place may have gone
  };
  struct Candidate {
    int64_t count;
    uint32_t pair;
  };
  static constexpr uint32_t kMerged =
      UINT32_MAX;  // the symbol of a place that its left neighbour has taken in
  static constexpr uint32_t kNotJoined = UINT32_MAX;

  uint32_t symbol_of(std::string_view character);
  uint32_t pair_of(uint32_t left, uint32_t right);  // kNotJoined: may not be a piece
  void join(int32_t left);                          // counts the pair at a place
  void part(int32_t left);                          // and no longer
  bool is_at(const Pair& pair, uint32_t place) const;
  void recount(Pair& pair);
  void merge(uint32_t pair);
  bool worse(const Candidate& a, const Candidate& b) const;
  void push(uint32_t pair);

  std::vector<Symbol> symbols_;
  std::unordered_map<std::string, uint32_t> characters_;
  std::vector<Place> places_;
  std::vector<int64_t> counts_;  // of words
  std::vector<Pair> pairs_;
  std::unordered_map<uint64_t, uint32_t> pair_ids_;
  std::vector<uint32_t> fresh_;  // pairs that are not on the heap yet
  std::vector<Candidate> heap_;
};

}  // namespace cairn::data
