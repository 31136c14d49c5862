// The rules of sentencepiece's normalizers: a double array of what is replaced, and the texts that replace it. Applied as the
// `tokenizers` library does: clusters of at most 5 bytes at once, others character by character, the shortest rule first.
#include "runtime/data/tokenizer/parts/charsmap.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstring>

#include "runtime/data/tokenizer/parts/part.h"

namespace cairn::tokenizer {

Charsmap::Charsmap(std::string blob, const std::string& where) {
  uint32_t bytes = 0;
  require(blob.size() >= sizeof bytes, Code::kCorruptFile, where, ": a precompiled_charsmap of ", blob.size(),
          " bytes is cut off");
  std::memcpy(&bytes, blob.data(), sizeof bytes);
  require(bytes % 4 == 0 && bytes > 0 && bytes <= blob.size() - sizeof bytes, Code::kCorruptFile, where,
          ": its precompiled_charsmap says that it has ", bytes, " bytes of rules, of ",
          blob.size() - sizeof bytes);
  units_.resize(bytes / 4);
  std::memcpy(units_.data(), blob.data() + sizeof bytes, bytes);
  texts_ = blob.substr(sizeof bytes + bytes);
  require(is_well_formed(texts_), Code::kCorruptFile, where,
          ": what its precompiled_charsmap replaces with is not UTF-8");
}

bool Charsmap::find(std::string_view text, bool longest, size_t& size, std::string_view& replacement) const {
  const auto offset = [](uint32_t unit) {
    return static_cast<size_t>(unit >> 10) << ((unit & (1u << 9)) >> 6);
  };
  size_t node = offset(units_[0]), value = SIZE_MAX;
  for (size_t i = 0; i < text.size() && text[i] != '\0'; ++i) {
    node ^= static_cast<uint8_t>(text[i]);
    if (node >= units_.size()) break;
    const uint32_t unit = units_[node];
    if ((unit & (1u << 31 | 0xFF)) != static_cast<uint8_t>(text[i])) break;
    node ^= offset(unit);
    if (node >= units_.size()) break;
    if ((unit >> 8 & 1) == 0) continue;
    value = units_[node] & ((1u << 31) - 1);
    size = i + 1;
    if (!longest) break;
  }
  if (value == SIZE_MAX || value >= texts_.size()) return false;
  // A rule may point into a character; what it begins with is then no text.
  if ((static_cast<uint8_t>(texts_[value]) & 0xC0) == 0x80) return false;
  const size_t end = texts_.find('\0', value);
  replacement = std::string_view(texts_).substr(value, end == std::string::npos ? end : end - value);
  return true;
}

namespace {

class Precompiled final : public Normalizer {
 public:
  explicit Precompiled(std::string blob) : rules_(std::move(blob), "Precompiled") {}

  void apply(Aligned& text) const override {
    std::vector<Edit> edits;
    const std::string_view bytes = text.bytes;
    bool changed = false;
    for (size_t at = 0; at < bytes.size();) {
      const size_t end = cluster_end(bytes, at);
      if (end - at < 6 && put(bytes.substr(at, end - at), edits)) {
        changed = true;
        at = end;
        continue;
      }
      while (at < end) {
        const Rune rune = rune_at(bytes.data() + at);
        if (put(bytes.substr(at, rune.size), edits))
          changed = true;
        else
          edits.push_back({rune.code, 0});
        at += rune.size;
      }
    }
    if (changed) text.transform(edits);
  }

 private:
  static size_t cluster_end(std::string_view bytes, size_t at) {
    utf8proc_int32_t state = 0;
    Rune before = rune_at(bytes.data() + at);
    for (at += before.size; at < bytes.size(); at += before.size) {
      const Rune next = rune_at(bytes.data() + at);
      if (before.code < 0x80 && next.code < 0x80 && !(before.code == '\r' && next.code == '\n')) break;
      if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(before.code),
                                           static_cast<utf8proc_int32_t>(next.code), &state))
        break;
      before = next;
    }
    return at;
  }

  bool put(std::string_view part, std::vector<Edit>& edits) const {
    size_t size;
    std::string_view made;
    if (!rules_.find(part, false, size, made)) return false;
    const auto old_count = static_cast<int32_t>(count_runes(part)),
               new_count = static_cast<int32_t>(count_runes(made));
    for (size_t at = 0; at < made.size();) {
      const Rune rune = rune_at(made.data() + at);
      edits.push_back({rune.code, 0});
      at += rune.size;
    }
    const int32_t more = new_count - old_count;
    if (more > 0)
      for (auto edit = edits.end() - more; edit != edits.end(); ++edit) edit->change = 1;
    else if (more < 0 && !edits.empty())
      edits.back().change += more;
    return true;
  }

  Charsmap rules_;
};

}  // namespace

std::unique_ptr<Normalizer> charsmap_normalizer(std::string blob) {
  return std::make_unique<Precompiled>(std::move(blob));
}

}  // namespace cairn::tokenizer
