// Byte-pair segmentation with a heap of candidate merges: O(n log n).
#include <algorithm>
#include <unordered_map>

#include "runtime/data/subword.h"
#include "runtime/data/utf8.h"

namespace cairn::data {
namespace {

// A stretch of the text; the heap refers to stretches by where they begin in the list.
struct Symbol {
  int32_t previous, next;  // -1: none
  uint32_t begin, size;    // of the text; size 0: merged into its left neighbour
  int32_t id;              // -1: no piece
  bool fixed;              // a user-defined piece: is merged with nothing
};

struct Merge {
  float score;
  int32_t left, id;
  uint32_t size;  // of both when the merge was found: if it differs by now, one of them has changed

  bool operator<(const Merge& other) const {
    return score < other.score || (score == other.score && left > other.left);
  }
};

// Whether some piece has a space after another character. If none has, no merge crosses the end of a word.
bool crosses_words(const Vocabulary& vocabulary) {
  return std::ranges::any_of(vocabulary.matchable(), [&](int32_t id) {
    const std::string_view text = vocabulary.text(id);
    const size_t begin = text.find_first_not_of(' ');
    return begin != std::string_view::npos && text.find(' ', begin) != std::string_view::npos;
  });
}

// Segments one stretch of text after the other; keeps its memory between them.
class Work {
 public:
  Work(const Vocabulary& vocabulary, const ExactIndex& index, const PrefixIndex& fixed)
      : vocabulary_(vocabulary), index_(index), fixed_(fixed) {}

  void append(std::string_view text, std::vector<int32_t>& tokens) {
    text_ = text;
    symbols_.clear();
    unmerge_.clear();
    split();
    for (size_t i = 1; i < symbols_.size(); ++i) consider(static_cast<int32_t>(i) - 1);
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end());
      const Merge best = heap_.back();
      heap_.pop_back();
      apply(best);
    }
    for (int32_t at = 0; at >= 0; at = symbols_[at].next)
      append(symbols_[at].id, text_.substr(symbols_[at].begin, symbols_[at].size), tokens);
  }

 private:
  // Into user-defined pieces and characters.
  void split() {
    for (size_t at = 0; at < text_.size(); at += symbols_.back().size) {
      size_t size = utf8_length(text_.substr(at, 4));
      int32_t id = -1;
      bool found = false;
      if (!fixed_.empty())
        fixed_.prefixes(text_.substr(at), [&](int32_t piece, size_t bytes) {
          id = piece;
          size = bytes;
          found = true;
          return false;
        });
      if (!found) id = index_.find(text_.substr(at, size));
      const auto n = static_cast<int32_t>(symbols_.size());
      symbols_.push_back({n - 1, n + 1, static_cast<uint32_t>(at), static_cast<uint32_t>(size), id, found});
    }
    symbols_.back().next = -1;
  }

  // Puts the merge of a symbol with the next one on the heap, if a piece is what it makes.
  void consider(int32_t left) {
    if (left < 0 || symbols_[left].next < 0) return;
    const Symbol &a = symbols_[left], &b = symbols_[a.next];
    if (a.fixed || b.fixed) return;
    const uint32_t size = a.size + b.size;
    const int32_t id = index_.find(text_.substr(a.begin, size));
    if (id < 0) return;
    heap_.push_back({vocabulary_.score(id), left, id, size});
    std::push_heap(heap_.begin(), heap_.end());
    if (vocabulary_.type(id) == PieceType::kUnused) unmerge_[id] = a.size;
  }

  void apply(const Merge& merge) {
    Symbol& left = symbols_[merge.left];
    if (left.size == 0 || left.next < 0) return;
    Symbol& right = symbols_[left.next];
    if (left.size + right.size != merge.size) return;
    left.size = merge.size;
    left.id = merge.id;
    right.size = 0;
    left.next = right.next;
    if (left.next >= 0) symbols_[left.next].previous = merge.left;
    consider(left.previous);
    consider(merge.left);
  }

  // The tokens of a symbol. Unused pieces help to merge, but are no tokens: they are taken apart again, and
  // one that is a single character goes by bytes.
  void append(int32_t id, std::string_view text, std::vector<int32_t>& tokens) const {
    if (id >= 0 && vocabulary_.type(id) != PieceType::kUnused) {
      tokens.push_back(id);
      return;
    }
    std::vector<std::pair<int32_t, std::string_view>> rest = {{id, text}};
    while (!rest.empty()) {
      const auto [piece, bytes] = rest.back();
      rest.pop_back();
      const auto split =
          piece >= 0 && vocabulary_.type(piece) == PieceType::kUnused ? unmerge_.find(piece) : unmerge_.end();
      if (split != unmerge_.end()) {
        const auto left = bytes.substr(0, split->second), right = bytes.substr(split->second);
        rest.emplace_back(index_.find(right), right);
        rest.emplace_back(index_.find(left), left);
      } else if (piece >= 0 && vocabulary_.type(piece) != PieceType::kUnused) {
        tokens.push_back(piece);
      } else {
        for (char byte : bytes) tokens.push_back(vocabulary_.byte_token(byte));
      }
    }
  }

  const Vocabulary& vocabulary_;
  const ExactIndex& index_;
  const PrefixIndex& fixed_;
  std::string_view text_;
  std::vector<Symbol> symbols_;
  std::vector<Merge> heap_;
  std::unordered_map<int32_t, uint32_t>
      unmerge_;  // unused piece: bytes of the left one of the pair it last came from
};

class MergeSegmenter final : public Segmenter {
 public:
  MergeSegmenter(const Vocabulary& vocabulary, const std::string& where)
      : vocabulary_(vocabulary),
        index_(vocabulary, where),
        fixed_(vocabulary, vocabulary.matchable(PieceType::kUserDefined)),
        by_words_(!crosses_words(vocabulary) && vocabulary.matchable(PieceType::kUnused).empty()) {}

  void append(std::string_view text, std::vector<int32_t>& tokens) const override {
    Work work(vocabulary_, index_, fixed_);
    while (!text.empty()) {
      const size_t size = by_words_ ? word(text) : text.size();
      work.append(text.substr(0, size), tokens);
      text.remove_prefix(size);
    }
  }

 private:
  // Bytes of the spaces and the word at the head of the text.
  static size_t word(std::string_view text) {
    const size_t begin = text.find_first_not_of(' ');
    return std::min(text.size(), begin == std::string_view::npos ? begin : text.find(' ', begin));
  }

  const Vocabulary& vocabulary_;
  ExactIndex index_;
  PrefixIndex fixed_;
  bool by_words_;  // the last unmerging of an unused piece counts in all of the text, so then it is not cut
};

}  // namespace

std::unique_ptr<Segmenter> merge_segmenter(const Vocabulary& vocabulary, const std::string& where) {
  return std::make_unique<MergeSegmenter>(vocabulary, where);
}

}  // namespace cairn::data
