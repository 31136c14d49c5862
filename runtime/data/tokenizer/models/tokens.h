// The texts of tokens by number, and their numbers by text.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"

namespace cairn::tokenizer {

inline constexpr int32_t kMostTokens = 1 << 24;
inline constexpr size_t kMostTokenBytes = 4096;  // of one whose parts are looked for
inline constexpr size_t kMostFileBytes = size_t{1} << 28;

// A hash table with open addressing, whose searches are bounded: a file may be made so that all of it collides.
class Index {
 public:
  static constexpr size_t kMostSteps = 4096;

  // Calls is_it(value) for values of that hash until it is true; returns that value, or -1.
  template <class IsIt>
  int32_t find(uint64_t hash, const IsIt& is_it) const {
    if (slots_.empty()) return -1;
    for (size_t at = hash & mask_; slots_[at].value >= 0; at = (at + 1) & mask_)
      if (slots_[at].check == static_cast<uint32_t>(hash >> 32) && is_it(slots_[at].value))
        return slots_[at].value;
    return -1;
  }
  void insert(uint64_t hash, int32_t value);
  void replace(uint64_t hash, int32_t old, int32_t value);

 private:
  struct Slot {
    uint32_t check = 0;
    int32_t value = -1;  // -1: free
  };
  void grow();

  std::vector<Slot> slots_;
  std::vector<uint32_t> low_;  // the low halves of hashes, for growing
  size_t mask_ = 0, used_ = 0;
};

class Tokens {
 public:
  // kCorruptFile: the text or the number is another's, or the number is out of bounds.
  void add(std::string_view text, int32_t id);
  // The same, but of several tokens with one text the last is found.
  void add_again(std::string_view text, int32_t id);
  int32_t find(std::string_view text) const;  // -1: none
  bool has(int32_t id) const { return id >= 0 && id < size() && places_[id].begin != kNone; }
  std::string_view text(int32_t id) const {
    return has(id) ? std::string_view(texts_).substr(places_[id].begin, places_[id].size)
                   : std::string_view();
  }
  int32_t size() const { return static_cast<int32_t>(places_.size()); }  // the highest number and 1
  int32_t count() const { return count_; }                               // how many texts there are

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Place {
    uint32_t begin = kNone, size = 0;
  };
  void put(std::string_view text, int32_t id);

  std::string texts_;
  std::vector<Place> places_;
  Index index_;
  int32_t count_ = 0;
};

// Finds all tokens that some text begins with.
class Trie {
 public:
  Trie();
  void add(std::string_view text, int32_t value);
  // Calls visit(value, bytes) for each, the shortest first, from where `from` leads to.
  template <class Visit>
  void prefixes(std::string_view text, const Visit& visit, uint32_t from = 0) const {
    uint32_t node = from;
    for (size_t at = 0; at < text.size(); ++at) {
      if (!step(node, text[at])) return;
      if (values_[node] >= 0) visit(values_[node], at + 1);
    }
  }
  // The longest: its bytes, 0 for none.
  size_t longest(std::string_view text, int32_t& value, uint32_t from = 0) const;
  bool follow(std::string_view text, uint32_t& node) const;  // the node behind a text; false: there is none
  bool begins(char first) const { return first_[static_cast<uint8_t>(first)] != 0; }
  bool empty() const { return values_.size() == 1; }

 private:
  bool step(uint32_t& node, char byte) const {
    if (node == 0) return (node = first_[static_cast<uint8_t>(byte)]) != 0;
    const uint64_t key = uint64_t{node} << 8 | static_cast<uint8_t>(byte);
    for (size_t at = slot(key);; at = (at + 1) & mask_) {
      if (edges_[at].key == key) {
        node = edges_[at].node;
        return true;
      }
      if (edges_[at].key == 0) return false;
    }
  }
  size_t slot(uint64_t key) const { return static_cast<size_t>((key * 0x9E3779B97F4A7C15u) >> 32) & mask_; }
  uint32_t child(uint32_t node, char byte);

  struct Edge {
    uint64_t key = 0;
    uint32_t node = 0;
  };
  std::vector<uint32_t> first_;  // the root's
  std::vector<Edge> edges_;
  std::vector<int32_t> values_;  // by node, -1: none
  size_t mask_, used_ = 0;
};

}  // namespace cairn::tokenizer
