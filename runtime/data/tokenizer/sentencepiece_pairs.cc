#include "runtime/data/tokenizer/sentencepiece_pairs.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "runtime/data/tokenizer/unicode/utf8.h"

namespace cairn::tokenizer {
namespace {

// Orders as floats do, the highest first.
uint64_t order_of(float score) {
  const auto bits = std::bit_cast<uint32_t>(score == 0 ? 0.0f : score);
  return ~((bits >> 31) != 0 ? ~bits : bits | 1u << 31);
}

class Work {
 public:
  Work(std::string_view text, const data::Model& model, const Tokens& pieces, int32_t unknown,
       std::vector<Piece>& out)
      : text_(text), model_(model), pieces_(pieces), unknown_(unknown), out_(out) {}

  void run(const Trie& fixed) {
    auto& symbols = scratch_.symbols;
    for (uint32_t at = 0; at < text_.size(); at += symbols.back().size) {
      int32_t id;
      const auto wanted = static_cast<uint32_t>(fixed.longest(text_.substr(at), id));
      const auto n = static_cast<int32_t>(symbols.size());
      symbols.push_back({-1, n - 1, n + 1, at, wanted > 0 ? wanted : rune_size(text_[at]), wanted > 0});
    }
    if (symbols.empty()) return;
    symbols.back().next = -1;
    for (int32_t i = 0; i + 1 < static_cast<int32_t>(symbols.size()); ++i) consider(i);
    while (!scratch_.heap.empty()) {
      std::pop_heap(scratch_.heap.begin(), scratch_.heap.end());
      const Scratch::Merge top = scratch_.heap.back();
      scratch_.heap.pop_back();
      apply(top);
    }
    for (int32_t at = 0; at >= 0; at = symbols[at].next)
      append(symbols[at].begin, symbols[at].begin + symbols[at].size);
  }

 private:
  void consider(int32_t left) {
    if (left < 0 || scratch_.symbols[left].next < 0) return;
    const Scratch::Symbol &a = scratch_.symbols[left], &b = scratch_.symbols[a.next];
    if (a.fixed || b.fixed) return;
    const std::string_view text = text_.substr(a.begin, a.size + b.size);
    const int32_t id = pieces_.find(text);
    if (id < 0) return;
    scratch_.heap.push_back({order_of(model_.pieces[id].score), left, id, a.size + b.size});
    std::push_heap(scratch_.heap.begin(), scratch_.heap.end());
    if (model_.pieces[id].type == data::PieceType::kUnused) parted_[id] = a.size;
  }

  void apply(const Scratch::Merge& merge) {
    auto& symbols = scratch_.symbols;
    Scratch::Symbol& left = symbols[merge.left];
    if (left.size == 0 || left.next < 0) return;
    Scratch::Symbol& right = symbols[left.next];
    if (left.size + right.size != merge.size) return;
    left.size = merge.size;
    right.size = 0;
    left.next = right.next;
    if (left.next >= 0) symbols[left.next].previous = merge.left;
    consider(left.previous);
    consider(merge.left);
  }

  // The tokens of begin..end. Unused pieces help to merge and are no tokens: they are parted as they were last made.
  void append(uint32_t begin, uint32_t end) {
    std::vector<std::pair<uint32_t, uint32_t>> rest = {{begin, end}};
    while (!rest.empty()) {
      const auto [from, to] = rest.back();
      rest.pop_back();
      const int32_t id = pieces_.find(text_.substr(from, to - from));
      const bool unused = id >= 0 && model_.pieces[id].type == data::PieceType::kUnused;
      if (const auto parted = unused ? parted_.find(id) : parted_.end(); parted != parted_.end()) {
        rest.emplace_back(from + parted->second, to);
        rest.emplace_back(from, from + parted->second);
      } else {
        out_.push_back({id >= 0 ? id : unknown_, from, to});
      }
    }
  }

  std::string_view text_;
  const data::Model& model_;
  const Tokens& pieces_;
  int32_t unknown_;
  std::vector<Piece>& out_;
  Scratch scratch_;
  std::unordered_map<int32_t, uint32_t>
      parted_;  // unused piece: bytes of the left one of the pair it last came from
};

}  // namespace

void cut_by_scored_pairs(std::string_view text, const data::Model& model, const Tokens& pieces,
                         const Trie& fixed, int32_t unknown, std::vector<Piece>& out) {
  Work(text, model, pieces, unknown, out).run(fixed);
}

}  // namespace cairn::tokenizer
