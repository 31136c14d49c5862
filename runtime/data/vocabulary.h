// What each token stands for, and which pieces text may be matched against.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/model.h"

namespace cairn::data {

class Vocabulary {
 public:
  explicit Vocabulary(const Model& model);

  int32_t size() const { return static_cast<int32_t>(pieces_.size()); }
  // The bytes of a token: one for a byte token, none for control and unknown.
  std::string_view text(int32_t id) const { return {texts_.data() + pieces_[id].begin, pieces_[id].size}; }
  int32_t byte_token(char byte) const { return byte_token_[static_cast<uint8_t>(byte)]; }
  PieceType type(int32_t id) const { return pieces_[id].type; }
  float score(int32_t id) const { return pieces_[id].score; }
  // Bytes of a piece as the file spells it, where a space takes three.
  size_t spelled_bytes(int32_t id) const { return pieces_[id].spelled; }

  // Pieces that text is matched against: normal, user-defined and unused ones that can occur in it. The text
  // of each is different.
  const std::vector<int32_t>& matchable() const { return matchable_; }
  std::vector<int32_t> matchable(PieceType type) const;
  uint64_t digest() const;  // of all texts
  // The reserved characters (see split_text) that pieces have, as a mask: those are cut like any other character.
  uint64_t reserved_in_pieces() const { return reserved_in_pieces_; }

 private:
  struct Entry {
    uint32_t begin, size, spelled;
    float score;
    PieceType type;
  };
  std::string texts_;
  std::vector<Entry> pieces_;
  std::vector<int32_t> matchable_;
  std::array<int32_t, 256> byte_token_{};
  uint64_t reserved_in_pieces_ = 0;
};

// Finds the piece that is exactly some text.
class ExactIndex {
 public:
  // kCorruptFile: two pieces are the same.
  ExactIndex(const Vocabulary& vocabulary, const std::string& where);
  int32_t find(std::string_view text) const;  // -1: none

 private:
  struct Slot {
    uint32_t hash;
    int32_t id;  // -1: free
  };
  uint64_t hash(std::string_view text) const;

  const Vocabulary& vocabulary_;
  uint64_t seed_;  // depends on every piece, so that no file can be made whose pieces all collide
  std::vector<Slot> slots_;
  size_t mask_;
};

// Finds all pieces that some text begins with.
class PrefixIndex {
 public:
  PrefixIndex(const Vocabulary& vocabulary, std::vector<int32_t> ids);
  // Calls visit(id, bytes) for each, the longest first, until it returns false.
  template <class Visit>
  void prefixes(std::string_view text, const Visit& visit) const {
    int32_t at = last_not_above(text);
    if (at < 0) return;
    const std::string_view nearest = vocabulary_.text(ids_[at]);
    const size_t most = nearest.size() < text.size() ? nearest.size() : text.size();
    size_t common = 0;
    while (common < most && nearest[common] == text[common]) ++common;
    for (; at >= 0; at = parent_[at]) {
      const size_t bytes = vocabulary_.text(ids_[at]).size();
      if (bytes <= common && !visit(ids_[at], bytes)) return;
    }
  }
  bool empty() const { return ids_.empty(); }

 private:
  int32_t last_not_above(std::string_view text) const;

  const Vocabulary& vocabulary_;
  std::vector<int32_t> ids_;      // by text
  std::vector<uint64_t> keys_;    // the first 8 bytes of each text as a big-endian number
  std::vector<int32_t> parent_;   // the longest other piece that the piece begins with, or -1
  std::vector<int32_t> buckets_;  // where the pieces with each first two bytes begin; none for few pieces
};

}  // namespace cairn::data
