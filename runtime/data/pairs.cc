#include "runtime/data/pairs.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/data/model.h"
#include "runtime/data/scripts.h"
#include "runtime/data/utf8.h"

namespace cairn::data {
namespace {

constexpr uint32_t kMaxCharacters = 16;
constexpr char32_t kLongVowelMark = 0x30FC;  // belongs to kana, but has no script of its own
constexpr size_t kMaxPlaces = INT32_MAX;

}  // namespace

bool may_be_piece(std::string_view text) {
  std::optional<Script> before;
  uint32_t characters = 0;
  for (size_t at = 0, length = 0; at < text.size(); at += length) {
    length = utf8_length(text.substr(at, 4));
    if (++characters > kMaxCharacters) return false;
    if (text.substr(at, length) == kSpaceMark) {
      if (at > 0) return false;
      continue;
    }
    const char32_t code = code_point(text.substr(at), length);
    std::optional<Script> script = script_of(code);
    if (script == Script::kHiragana || script == Script::kKatakana || code == kLongVowelMark)
      script = Script::kHan;
    else if (script == Script::kInherited)
      script = before;
    if (script && before && script != before) return false;
    before = script;
  }
  return true;
}

void Pairs::add_word(std::string_view word, int64_t count) {
  const auto id = static_cast<uint32_t>(counts_.size());
  counts_.push_back(count);
  bool first = true;
  for (size_t at = 0, length = 0; at < word.size(); at += length) {
    length = utf8_length(word.substr(at, 4));
    const auto place = static_cast<int32_t>(places_.size());
    require(places_.size() < kMaxPlaces, Code::kInvalidArgument, "a text with more than ", kMaxPlaces,
            " characters in different words is too large to learn from; take a part of it");
    places_.push_back({symbol_of(word.substr(at, length)), id, first ? -1 : place - 1, -1});
    if (!first) places_[place - 1].next = place;
    first = false;
  }
}

uint32_t Pairs::symbol_of(std::string_view character) {
  const auto [at, added] =
      characters_.try_emplace(std::string(character), static_cast<uint32_t>(symbols_.size()));
  if (added) symbols_.push_back({at->first, 1});
  return at->second;
}

uint32_t Pairs::pair_of(uint32_t left, uint32_t right) {
  const auto [at, added] = pair_ids_.try_emplace(uint64_t{left} << 32 | right, kNotJoined);
  if (!added) return at->second;
  std::string text = symbols_[left].text + symbols_[right].text;
  if (!may_be_piece(text)) return kNotJoined;
  at->second = static_cast<uint32_t>(pairs_.size());
  const uint32_t characters = symbols_[left].characters + symbols_[right].characters;
  pairs_.push_back({left, right, std::move(text), characters, 0, {}, false});
  fresh_.push_back(at->second);
  return at->second;
}

void Pairs::join(int32_t left) {
  if (left < 0 || places_[left].next < 0) return;
  const uint32_t id = pair_of(places_[left].symbol, places_[places_[left].next].symbol);
  if (id == kNotJoined) return;
  pairs_[id].count += counts_[places_[left].word];
  pairs_[id].places.push_back(static_cast<uint32_t>(left));
}

void Pairs::part(int32_t left) {
  if (left < 0 || places_[left].next < 0) return;
  const uint32_t id = pair_of(places_[left].symbol, places_[places_[left].next].symbol);
  if (id == kNotJoined) return;
  Pair& pair = pairs_[id];
  if (pair.left == pair.right)
    pair.recount = true;
  else
    pair.count -= counts_[places_[left].word];
}

bool Pairs::is_at(const Pair& pair, uint32_t place) const {
  const int32_t right = places_[place].next;
  return places_[place].symbol == pair.left && right >= 0 && places_[right].symbol == pair.right;
}

// In a run of one symbol every second place is a pair: the others are given up for good, as sentencepiece
// does.
void Pairs::recount(Pair& pair) {
  pair.count = 0;
  pair.recount = false;
  int32_t taken = -1;  // the right half of the place before
  std::erase_if(pair.places, [&](uint32_t place) {
    if (static_cast<int32_t>(place) == taken || !is_at(pair, place)) {
      taken = -1;
      return true;
    }
    taken = places_[place].next;
    pair.count += counts_[places_[place].word];
    return false;
  });
}

// Replaces the pair by a symbol of its own wherever it is, from left to right.
void Pairs::merge(uint32_t pair) {
  const auto symbol = static_cast<uint32_t>(symbols_.size());
  symbols_.push_back({pairs_[pair].text, pairs_[pair].characters});
  const Pair merged = std::exchange(pairs_[pair], {});  // new pairs move the others
  for (uint32_t place : merged.places) {
    if (!is_at(merged, place)) continue;
    const auto left = static_cast<int32_t>(place);
    const int32_t right = places_[left].next;
    part(places_[left].previous);
    part(right);
    places_[left].symbol = symbol;
    places_[left].next = places_[right].next;
    places_[right].symbol = kMerged;
    if (places_[left].next >= 0) places_[places_[left].next].previous = left;
    join(places_[left].previous);
    join(left);
  }
}

bool Pairs::worse(const Candidate& a, const Candidate& b) const {
  if (a.count != b.count) return a.count < b.count;
  const Pair &x = pairs_[a.pair], &y = pairs_[b.pair];
  if (x.characters != y.characters) return x.characters > y.characters;
  return x.text > y.text;
}

void Pairs::push(uint32_t pair) {
  heap_.push_back({pairs_[pair].count, pair});
  std::ranges::push_heap(heap_, [this](const Candidate& a, const Candidate& b) { return worse(a, b); });
}

std::vector<std::string> Pairs::learn(size_t merges) {
  const auto by_worth = [this](const Candidate& a, const Candidate& b) { return worse(a, b); };
  for (size_t place = 0; place < places_.size(); ++place) join(static_cast<int32_t>(place));
  std::vector<std::string> pieces;
  std::unordered_set<std::string> known;  // the same text may come from several pairs
  while (pieces.size() < merges) {
    for (uint32_t pair : fresh_) {
      if (pairs_[pair].left == pairs_[pair].right) recount(pairs_[pair]);
      push(pair);
    }
    fresh_.clear();
    if (heap_.empty()) break;
    std::ranges::pop_heap(heap_, by_worth);
    const Candidate best = heap_.back();
    heap_.pop_back();
    if (pairs_[best.pair].recount) recount(pairs_[best.pair]);
    if (best.count != pairs_[best.pair].count) {
      push(best.pair);
      continue;
    }
    if (!known.insert(pairs_[best.pair].text).second) continue;
    pieces.push_back(pairs_[best.pair].text);
    merge(best.pair);
  }
  return pieces;
}

}  // namespace cairn::data
