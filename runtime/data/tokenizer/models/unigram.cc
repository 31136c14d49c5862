// The sequence of pieces with the highest sum of scores, of several the one that begins with the longest.
#include <algorithm>
#include <limits>

#include "runtime/data/tokenizer/models/model.h"
#include "runtime/data/tokenizer/unicode/utf8.h"

namespace cairn::tokenizer {
namespace {

constexpr double kUnknownPenalty = 10.0;

class Unigram final : public Model {
 public:
  Unigram(Tokens tokens, UnigramSettings settings) : settings_(std::move(settings)) {
    tokens_ = std::move(tokens);
    double least = std::numeric_limits<double>::infinity();
    for (int32_t id = 0; id < tokens_.size(); ++id) {
      trie_.add(tokens_.text(id), id);
      least = std::min(least, settings_.scores[id]);
    }
    unknown_score_ = least - kUnknownPenalty;
    for (int byte = 0; byte < 256; ++byte) {
      static constexpr char kDigits[] = "0123456789ABCDEF";
      byte_ids_[byte] = tokens_.find(std::string("<0x") + kDigits[byte >> 4] + kDigits[byte & 15] + ">");
    }
  }

  void cut(std::string_view word, uint32_t base, Scratch& scratch, std::vector<Piece>& out) const override {
    uint64_t hash = 0;
    const bool cached = word.size() <= WordCache::kMostBytes;
    if (WordCache::Found found; cached && scratch.cache.find(word, hash, found)) {
      for (uint32_t i = 0; i < found.count; base += found.sizes[i++])
        out.push_back({found.ids[i], base, base + found.sizes[i]});
      return;
    }
    find_best(word, scratch);
    const size_t before = out.size();
    bool plain = true;  // whether every token has a part of its own
    for (size_t i = scratch.path.size(); i-- > 0;) {
      const auto [begin, end] = scratch.path[i];
      plain = append(word.substr(begin, end - begin), base + begin, out) && plain;
    }
    if (cached && plain) scratch.cache.put(word, hash, out.data() + before, out.size() - before);
  }

 private:
  // Leaves the parts in scratch.path, the last one first. Neighbours that are unknown are one part.
  void find_best(std::string_view word, Scratch& scratch) const {
    auto& best = scratch.best;
    best.assign(word.size() + 1, Scratch::Best());
    for (size_t at = 0; at < word.size();) {
      const double here = best[at].score;
      const uint32_t single = rune_size(word[at]);
      bool has_single = false;
      const auto offer = [&](size_t end, double score, int32_t id) {
        Scratch::Best& target = best[end];
        if (target.begin == UINT32_MAX || score > target.score)
          target = {score, id, static_cast<uint32_t>(at)};
      };
      trie_.prefixes(word.substr(at), [&](int32_t id, size_t bytes) {
        offer(at + bytes, settings_.scores[id] + here, id);
        has_single = has_single || bytes == single;
      });
      if (!has_single) {
        require(settings_.unknown >= 0, Code::kInvalidArgument, "no token covers '", word.substr(at, single),
                "', and the vocabulary has none for what is unknown");
        offer(at + single, unknown_score_ + here, settings_.unknown);
      }
      at += single;
    }
    scratch.path.clear();
    bool was_unknown = false;
    for (auto end = static_cast<uint32_t>(word.size()); end > 0;) {
      const Scratch::Best& node = best[end];
      const bool unknown = node.id == settings_.unknown;
      if (unknown && was_unknown)
        scratch.path.back().first = node.begin;
      else
        scratch.path.emplace_back(node.begin, end);
      was_unknown = unknown;
      end = node.begin;
    }
  }

  bool append(std::string_view text, uint32_t begin, std::vector<Piece>& out) const {
    const uint32_t end = begin + static_cast<uint32_t>(text.size());
    int32_t id = tokens_.find(text);
    if (id < 0 && settings_.byte_fallback &&
        std::ranges::all_of(text, [&](char byte) { return byte_ids_[static_cast<uint8_t>(byte)] >= 0; })) {
      for (const char byte : text) out.push_back({byte_ids_[static_cast<uint8_t>(byte)], begin, end});
      return false;
    }
    if (id < 0) id = settings_.unknown;
    require(id >= 0, Code::kInvalidArgument, "no token covers '", text,
            "', and the vocabulary has none for what is unknown");
    out.push_back({id, begin, end});
    return true;
  }

  UnigramSettings settings_;
  double unknown_score_;
  int32_t byte_ids_[256];
  Trie trie_;
};

}  // namespace

std::unique_ptr<Model> unigram_model(Tokens tokens, UnigramSettings settings) {
  return std::make_unique<Unigram>(std::move(tokens), std::move(settings));
}

}  // namespace cairn::tokenizer
