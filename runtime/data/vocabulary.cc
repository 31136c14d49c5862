#include "runtime/data/vocabulary.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>

#include "runtime/data/utf8.h"

namespace cairn::data {
namespace {

constexpr size_t kWorthBuckets = 1000;

// Whether text as split_text() hands it over can contain the piece: in a model that spells spaces as a mark,
// a space itself is none; without marks, U+2581 would be the character, which never is plain text.
bool can_occur(std::string_view spelled, bool escape_whitespaces) {
  const bool wrong_space = escape_whitespaces ? spelled.find(' ') != std::string_view::npos
                                              : spelled.find(kSpaceMark) != std::string_view::npos;
  return !wrong_space;
}

void append_with_spaces(std::string& texts, std::string_view piece) {
  for (size_t at = 0; at < piece.size();) {
    const bool mark = piece.substr(at, kSpaceMark.size()) == kSpaceMark;
    texts += mark ? ' ' : piece[at];
    at += mark ? kSpaceMark.size() : 1;
  }
}

// The reserved characters in a piece; U+2581 never is text.
uint64_t reserved_in(std::string_view text) {
  uint64_t mask = 0;
  for (size_t length; !text.empty(); text.remove_prefix(length)) {
    length = utf8_length(text);
    if (const int number = reserved(text.substr(0, length)); number >= 0) mask |= uint64_t{1} << number;
  }
  return mask & ~kSpaceMarkBit;
}

uint64_t key_of(std::string_view text) {
  uint64_t key = 0;
  for (size_t i = 0; i < 8; ++i) key = key << 8 | (i < text.size() ? static_cast<uint8_t>(text[i]) : 0u);
  return key;
}

}  // namespace

Vocabulary::Vocabulary(const Model& model) {
  pieces_.reserve(model.pieces.size());
  for (const Piece& piece : model.pieces) {
    const auto id = static_cast<int32_t>(pieces_.size());
    const auto begin = static_cast<uint32_t>(texts_.size());
    if (piece.type == PieceType::kByte) {
      const int byte = byte_of(piece.text);
      byte_token_[byte] = id;
      texts_ += static_cast<char>(byte);
    } else if (piece.type != PieceType::kControl && piece.type != PieceType::kUnknown) {
      append_with_spaces(texts_, piece.text);
      if (can_occur(piece.text, model.escape_whitespaces) && texts_.size() - begin <= kPieceBytes) {
        matchable_.push_back(id);
        reserved_in_pieces_ |= reserved_in(std::string_view(texts_).substr(begin));
      }
    }
    pieces_.push_back({begin, static_cast<uint32_t>(texts_.size()) - begin,
                       static_cast<uint32_t>(piece.text.size()), piece.score, piece.type});
  }
}

std::vector<int32_t> Vocabulary::matchable(PieceType type) const {
  std::vector<int32_t> ids;
  std::ranges::copy_if(matchable_, std::back_inserter(ids),
                       [&](int32_t id) { return pieces_[id].type == type; });
  return ids;
}

uint64_t Vocabulary::digest() const { return XXH3_64bits(texts_.data(), texts_.size()); }

uint64_t ExactIndex::hash(std::string_view text) const {
  return XXH3_64bits_withSeed(text.data(), text.size(), seed_);
}

ExactIndex::ExactIndex(const Vocabulary& vocabulary, const std::string& where)
    : vocabulary_(vocabulary),
      seed_(vocabulary.digest()),
      slots_(std::bit_ceil(2 * vocabulary.matchable().size() + 1), Slot{0, -1}),
      mask_(slots_.size() - 1) {
  for (int32_t id : vocabulary.matchable()) {
    const uint64_t hash = this->hash(vocabulary.text(id));
    size_t at = hash & mask_;
    for (; slots_[at].id >= 0; at = (at + 1) & mask_)
      require(slots_[at].hash != hash >> 32 || vocabulary.text(slots_[at].id) != vocabulary.text(id),
              Code::kCorruptFile, where, ": pieces ", slots_[at].id, " and ", id, " are the same");
    slots_[at] = {static_cast<uint32_t>(hash >> 32), id};
  }
}

int32_t ExactIndex::find(std::string_view text) const {
  const uint64_t hash = this->hash(text);
  for (size_t at = hash & mask_; slots_[at].id >= 0; at = (at + 1) & mask_)
    if (slots_[at].hash == hash >> 32 && vocabulary_.text(slots_[at].id) == text) return slots_[at].id;
  return -1;
}

PrefixIndex::PrefixIndex(const Vocabulary& vocabulary, std::vector<int32_t> ids)
    : vocabulary_(vocabulary), ids_(std::move(ids)) {
  std::ranges::sort(ids_, {}, [&](int32_t id) { return vocabulary_.text(id); });
  for (int32_t id : ids_) keys_.push_back(key_of(vocabulary_.text(id)));
  if (ids_.size() >= kWorthBuckets) {
    buckets_.assign(65537, 0);
    for (uint64_t key : keys_) ++buckets_[(key >> 48) + 1];
    for (size_t i = 1; i < buckets_.size(); ++i) buckets_[i] += buckets_[i - 1];
  }
  for (size_t i = 0; i < ids_.size(); ++i) {
    auto parent = static_cast<int32_t>(i) - 1;
    while (parent >= 0 && !vocabulary_.text(ids_[i]).starts_with(vocabulary_.text(ids_[parent])))
      parent = parent_[parent];
    parent_.push_back(parent);
  }
}

// The last piece in order that is not above the text: every piece that the text begins with is a prefix of
// it.
int32_t PrefixIndex::last_not_above(std::string_view text) const {
  const uint64_t key = key_of(text);
  const auto begin = buckets_.empty() ? keys_.begin() : keys_.begin() + buckets_[key >> 48];
  const auto end = buckets_.empty() ? keys_.end() : keys_.begin() + buckets_[(key >> 48) + 1];
  auto at = std::upper_bound(begin, end, key) - keys_.begin();
  // Among equal keys the rest decides; few pieces share 8 bytes.
  const auto first = std::lower_bound(begin, end, key) - keys_.begin();
  at = std::upper_bound(ids_.begin() + first, ids_.begin() + at, text,
                        [&](std::string_view t, int32_t id) { return t < vocabulary_.text(id); }) -
       ids_.begin();
  return static_cast<int32_t>(at) - 1;
}

}  // namespace cairn::data
