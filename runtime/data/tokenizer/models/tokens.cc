#include "runtime/data/tokenizer/models/tokens.h"

#include <xxhash.h>

namespace cairn::tokenizer {
namespace {

constexpr uint32_t kMostNodes = 1 << 24;

uint64_t hash_of(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

}  // namespace

void Index::grow() {
  std::vector<Slot> old = std::move(slots_);
  std::vector<uint32_t> low = std::move(low_);
  const size_t size = old.empty() ? 64 : old.size() * 2;
  slots_.assign(size, Slot());
  low_.assign(size, 0);
  mask_ = size - 1;
  for (size_t i = 0; i < old.size(); ++i) {
    if (old[i].value < 0) continue;
    size_t at = low[i] & mask_;
    while (slots_[at].value >= 0) at = (at + 1) & mask_;
    slots_[at] = old[i];
    low_[at] = low[i];
  }
}

void Index::insert(uint64_t hash, int32_t value) {
  if (2 * used_ >= slots_.size()) grow();
  size_t at = hash & mask_, steps = 0;
  for (; slots_[at].value >= 0; at = (at + 1) & mask_)
    require(++steps < kMostSteps, Code::kCorruptFile,
            "a vocabulary whose tokens all have one hash is not read");
  slots_[at] = {static_cast<uint32_t>(hash >> 32), value};
  low_[at] = static_cast<uint32_t>(hash);
  ++used_;
}

void Index::replace(uint64_t hash, int32_t old, int32_t value) {
  for (size_t at = hash & mask_; slots_[at].value >= 0; at = (at + 1) & mask_)
    if (slots_[at].value == old) slots_[at].value = value;
}

int32_t Tokens::find(std::string_view text) const {
  return index_.find(hash_of(text), [&](int32_t id) { return this->text(id) == text; });
}

void Tokens::put(std::string_view text, int32_t id) {
  require(id >= 0 && id < kMostTokens, Code::kCorruptFile, "token '", text.substr(0, 64), "' has the number ",
          id, "; it must be in 0..", kMostTokens - 1);
  require(texts_.size() + text.size() < kNone, Code::kCorruptFile, "the tokens' texts have more than 4 GiB");
  if (id >= size()) places_.resize(static_cast<size_t>(id) + 1);
  require(places_[id].begin == kNone, Code::kCorruptFile, "tokens '", this->text(id).substr(0, 64), "' and '",
          text.substr(0, 64), "' have one number, ", id);
  places_[id] = {static_cast<uint32_t>(texts_.size()), static_cast<uint32_t>(text.size())};
  texts_ += text;
}

void Tokens::add(std::string_view text, int32_t id) {
  require(find(text) < 0, Code::kCorruptFile, "the token '", text.substr(0, 64), "' appears twice");
  put(text, id);
  index_.insert(hash_of(text), id);
  ++count_;
}

void Tokens::add_again(std::string_view text, int32_t id) {
  const int32_t before = find(text);
  if (before < 0) return add(text, id);
  put(text, id);
  index_.replace(hash_of(text), before, id);
}

Trie::Trie() : first_(256, 0), edges_(64), values_(1, -1), mask_(63) {}

uint32_t Trie::child(uint32_t node, char byte) {
  if (uint32_t there = node; step(there, byte)) return there;
  const auto fresh = static_cast<uint32_t>(values_.size());
  require(fresh < kMostNodes, Code::kCorruptFile, "the tokens' texts are too long together");
  values_.push_back(-1);
  if (node == 0) return first_[static_cast<uint8_t>(byte)] = fresh;
  if (2 * ++used_ > edges_.size()) {
    std::vector<Edge> old(edges_.size() * 2);
    old.swap(edges_);
    mask_ = edges_.size() - 1;
    for (const Edge& edge : old) {
      if (edge.key == 0) continue;
      size_t at = slot(edge.key);
      while (edges_[at].key != 0) at = (at + 1) & mask_;
      edges_[at] = edge;
    }
  }
  const uint64_t key = uint64_t{node} << 8 | static_cast<uint8_t>(byte);
  size_t at = slot(key);
  while (edges_[at].key != 0) at = (at + 1) & mask_;
  edges_[at] = {key, fresh};
  return fresh;
}

void Trie::add(std::string_view text, int32_t value) {
  uint32_t node = 0;
  for (const char byte : text) node = child(node, byte);
  if (!text.empty()) values_[node] = value;
}

size_t Trie::longest(std::string_view text, int32_t& value, uint32_t from) const {
  size_t found = 0;
  prefixes(
      text,
      [&](int32_t here, size_t bytes) {
        value = here;
        found = bytes;
      },
      from);
  return found;
}

bool Trie::follow(std::string_view text, uint32_t& node) const {
  for (const char byte : text)
    if (!step(node, byte)) return false;
  return true;
}

}  // namespace cairn::tokenizer
