// Byte pairs: neighbours are merged, the pair that was learned first before others, the leftmost of several.
#include <algorithm>

#include "runtime/data/tokenizer/models/model.h"
#include "runtime/data/tokenizer/models/pair_table.h"
#include "runtime/data/tokenizer/unicode/utf8.h"

namespace cairn::tokenizer {
namespace {

constexpr uint32_t kNoRank = UINT32_MAX;
constexpr size_t kShort = 48;  // symbols of a word whose best pair is looked for from left to right

class Bpe final : public Model {
 public:
  Bpe(Tokens tokens, const BpeSettings& settings)
      : prefix_(settings.prefix),
        suffix_(settings.suffix),
        unknown_name_(settings.unknown),
        has_unknown_(settings.has_unknown),
        fuse_unknown_(settings.fuse_unknown),
        byte_fallback_(settings.byte_fallback),
        whole_words_(settings.whole_words),
        byte_level_(settings.byte_level) {
    tokens_ = std::move(tokens);
    if (has_unknown_) unknown_ = tokens_.find(unknown_name_);
    find_bytes();
    read_merges(settings);
  }

  void cut(std::string_view word, uint32_t base, Scratch& scratch, std::vector<Piece>& out) const override {
    uint64_t hash = 0;
    const bool cached = word.size() <= WordCache::kMostBytes;
    if (WordCache::Found found; cached && scratch.cache.find(word, hash, found)) {
      for (uint32_t i = 0; i < found.count; base += found.sizes[i++])
        out.push_back({found.ids[i], base, base + found.sizes[i]});
      return;
    }
    const size_t before = out.size();
    const uint32_t begin = base;
    if (whole_words_)
      if (const int32_t id = whole(word); id >= 0)
        out.push_back({id, base, base + static_cast<uint32_t>(word.size())});
    if (out.size() == before) {
      split(word, scratch);
      scratch.ids.size() <= kShort ? merge_short(scratch) : merge_long(scratch);
      for (size_t i = 0; i < scratch.ids.size(); base += scratch.sizes[i++])
        out.push_back({scratch.ids[i], base, base + scratch.sizes[i]});
    }
    // With the bytes of a suffix symbols can be larger than the word.
    if (cached && (out.size() == before || out.back().end - begin <= WordCache::kMostBytes))
      scratch.cache.put(word, hash, out.data() + before, out.size() - before);
  }

  const std::string_view* bytes_of(int32_t id) const override {
    return byte_level_ && id >= 0 && id < static_cast<int32_t>(raw_.size()) && raw_[id].data() != nullptr
               ? &raw_[id]
               : nullptr;
  }

 private:
  void find_bytes() {
    for (int byte = 0; byte < 256; ++byte) {
      std::string text;
      append_rune(text, character_of_byte(static_cast<uint8_t>(byte)));
      byte_ids_[byte] = byte_level_ ? tokens_.find(text) : -1;
      static constexpr char kDigits[] = "0123456789ABCDEF";
      fallback_ids_[byte] = tokens_.find(std::string("<0x") + kDigits[byte >> 4] + kDigits[byte & 15] + ">");
    }
    if (!byte_level_) return;
    std::vector<std::pair<size_t, size_t>> places(static_cast<size_t>(tokens_.size()), {0, 0});
    std::string bytes;
    for (int32_t id = 0; id < tokens_.size(); ++id) {
      if (!tokens_.has(id) || !spelled_bytes(tokens_.text(id), bytes) || bytes.empty()) continue;
      places[id] = {raw_texts_.size(), bytes.size()};
      raw_texts_ += bytes;
    }
    raw_.resize(places.size());
    for (size_t id = 0; id < places.size(); ++id)
      if (places[id].second > 0)
        raw_[id] = std::string_view(raw_texts_).substr(places[id].first, places[id].second);
  }

  void read_merges(const BpeSettings& settings) {
    std::string text;
    for (size_t at = 0; at < settings.merges.size(); ++at) {
      const auto [left, right, rank] = settings.merges[at];
      const auto known = [&, left = left, right = right](std::string_view token, const char* what) {
        const int32_t id = tokens_.find(token);
        require(id >= 0, Code::kCorruptFile, "merge ", at, " ('", left.substr(0, 64), "' and '",
                right.substr(0, 64), "'): ", what, " '", token.substr(0, 128), "' is not in the vocabulary");
        return id;
      };
      require(!left.empty() && right.size() > prefix_.size() && right.starts_with(prefix_),
              Code::kCorruptFile, "merge ", at, " ('", left.substr(0, 64), "' and '", right.substr(0, 64),
              "') adds nothing to one of its tokens");
      text.assign(left).append(right.substr(prefix_.size()));
      const int32_t a = known(left, "its token"), b = known(right, "its token"),
                    made = known(text, "what it makes,");
      require(pairs_.insert(a, b, {rank, made}), Code::kCorruptFile, "merge ", at, " ('", left.substr(0, 64),
              "' and '", right.substr(0, 64), "') appears twice");
    }
  }

  int32_t whole(std::string_view word) const {
    if (!byte_level_) return tokens_.find(word);
    std::string text;
    for (const char byte : word) append_rune(text, character_of_byte(static_cast<uint8_t>(byte)));
    return tokens_.find(text);
  }

  int32_t unknown() const {
    require(unknown_ >= 0, Code::kInvalidArgument, "the token for what is unknown, '", unknown_name_,
            "', is not in the vocabulary");
    return unknown_;
  }

  // Into the symbols that merging begins with.
  void split(std::string_view word, Scratch& scratch) const {
    scratch.ids.clear();
    scratch.sizes.clear();
    uint32_t unknown_bytes = 0;  // of the unknown symbol that is not added yet
    const auto add = [&](int32_t id, uint32_t size) {
      scratch.ids.push_back(id);
      scratch.sizes.push_back(size);
    };
    const auto settle = [&] {
      if (unknown_bytes > 0) add(unknown(), unknown_bytes);
      unknown_bytes = 0;
    };
    for (size_t at = 0, size; at < word.size(); at += size) {
      size = byte_level_ ? 1 : rune_size(word[at]);
      std::string_view text = word.substr(at, size);
      int32_t id;
      if (byte_level_) {
        id = byte_ids_[static_cast<uint8_t>(text[0])];
      } else {
        if ((at > 0 && !prefix_.empty()) || (at + size == word.size() && !suffix_.empty())) {
          scratch.text.assign(at > 0 ? prefix_ : std::string())
              .append(text)
              .append(at + size == word.size() ? suffix_ : "");
          text = scratch.text;
        }
        id = tokens_.find(text);
      }
      if (id >= 0) {
        settle();
        add(id, static_cast<uint32_t>(size));
      } else if (byte_fallback_ && falls_back(text)) {
        for (const char byte : text) add(fallback_ids_[static_cast<uint8_t>(byte)], 1);
      } else if (has_unknown_) {
        if (!fuse_unknown_) settle();
        unknown();
        unknown_bytes += static_cast<uint32_t>(size);
      }
    }
    settle();
  }
  bool falls_back(std::string_view text) const {
    return std::ranges::all_of(text,
                               [&](char byte) { return fallback_ids_[static_cast<uint8_t>(byte)] >= 0; });
  }

  void merge_short(Scratch& s) const {
    if (s.ids.size() < 2) return;
    size_t count = s.ids.size();
    s.ranks.resize(count);
    s.merged.resize(count);
    const auto consider = [&](size_t i) {
      s.ranks[i] = kNoRank;
      if (i + 1 >= count) return;
      const PairTable::Merge merge = pairs_.find(s.ids[i], s.ids[i + 1]);
      s.ranks[i] = merge.rank;
      s.merged[i] = static_cast<uint32_t>(merge.id);
    };
    for (size_t i = 0; i < count; ++i) consider(i);
    while (count > 1) {
      const auto best = std::min_element(s.ranks.begin(), s.ranks.begin() + static_cast<ptrdiff_t>(count)) -
                        s.ranks.begin();
      if (s.ranks[best] == kNoRank) break;
      const auto i = static_cast<size_t>(best);
      s.ids[i] = static_cast<int32_t>(s.merged[i]);
      s.sizes[i] += s.sizes[i + 1];
      const auto drop = [&](auto& list) {
        std::copy(list.begin() + i + 2, list.begin() + count, list.begin() + i + 1);
      };
      drop(s.ids);
      drop(s.sizes);
      drop(s.ranks);
      drop(s.merged);
      --count;
      consider(i);
      if (i > 0) consider(i - 1);
    }
    s.ids.resize(count);
    s.sizes.resize(count);
  }

  void merge_long(Scratch& s) const {
    s.symbols.clear();
    s.heap.clear();
    const auto count = static_cast<int32_t>(s.ids.size());
    for (int32_t i = 0; i < count; ++i)
      s.symbols.push_back({s.ids[i], i - 1, i + 1 < count ? i + 1 : -1, 0, s.sizes[i]});
    const auto consider = [&](int32_t left, bool sorted) {
      if (left < 0 || s.symbols[left].next < 0) return;
      const PairTable::Merge merge = pairs_.find(s.symbols[left].id, s.symbols[s.symbols[left].next].id);
      if (merge.rank == kNoRank) return;
      s.heap.push_back({merge.rank, left, merge.id, 0});
      if (sorted) std::push_heap(s.heap.begin(), s.heap.end());
    };
    for (int32_t i = 0; i + 1 < count; ++i) consider(i, false);
    std::make_heap(s.heap.begin(), s.heap.end());
    while (!s.heap.empty()) {
      std::pop_heap(s.heap.begin(), s.heap.end());
      const Scratch::Merge top = s.heap.back();
      s.heap.pop_back();
      Scratch::Symbol& left = s.symbols[top.left];
      if (left.size == 0 || left.next < 0) continue;
      Scratch::Symbol& right = s.symbols[left.next];
      if (pairs_.find(left.id, right.id).id != top.id) continue;  // one of them has changed
      left.id = top.id;
      left.size += right.size;
      right.size = 0;
      left.next = right.next;
      if (left.next >= 0) s.symbols[left.next].previous = top.left;
      consider(left.previous, true);
      consider(top.left, true);
    }
    s.ids.clear();
    s.sizes.clear();
    for (int32_t at = 0; at >= 0; at = s.symbols[at].next) {
      s.ids.push_back(s.symbols[at].id);
      s.sizes.push_back(s.symbols[at].size);
    }
  }

  std::string prefix_, suffix_, unknown_name_;
  bool has_unknown_, fuse_unknown_, byte_fallback_, whole_words_, byte_level_;
  int32_t unknown_ = -1;
  int32_t byte_ids_[256], fallback_ids_[256];
  PairTable pairs_;
  std::string raw_texts_;
  std::vector<std::string_view> raw_;  // by token; of those that spell bytes
};

}  // namespace

std::unique_ptr<Model> bpe_model(Tokens tokens, const BpeSettings& settings) {
  return std::make_unique<Bpe>(std::move(tokens), settings);
}

}  // namespace cairn::tokenizer
