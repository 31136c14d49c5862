#include "runtime/data/tokenizer/parts/aligned.h"

#include "runtime/base/error.h"

namespace cairn::tokenizer {

void Aligned::transform(const std::vector<Edit>& edits, size_t removed) {
  new_bytes_.clear();
  new_spans_.clear();
  size_t at = 0;  // behind the characters that edits have taken
  const auto skip = [&](size_t characters) {
    for (; characters > 0 && at < bytes.size(); --characters) at += rune_size(bytes[at]);
  };
  skip(removed);
  for (const Edit& edit : edits) {
    const bool added = edit.change > 0;
    const Span from = added               ? (at == 0 ? Span{shift, shift} : spans[at - 1])
                      : at < spans.size() ? spans[at]
                                          : Span{shift, shift};
    if (!added) skip(1 + static_cast<size_t>(-edit.change));
    append_rune(new_bytes_, edit.code);
    new_spans_.resize(new_bytes_.size(), from);
  }
  bytes.swap(new_bytes_);
  spans.swap(new_spans_);
}

void Aligned::prepend(std::string_view text) {
  if (bytes.empty()) return;
  spans.insert(spans.begin(), text.size(), Span(spans[0]));
  bytes.insert(0, text);
}

void Aligned::replace(const std::vector<Span>& matches, std::string_view content) {
  if (matches.empty()) return;
  new_bytes_.clear();
  new_spans_.clear();
  size_t at = 0;
  const auto keep = [&](size_t end) {
    new_bytes_.append(bytes, at, end - at);
    new_spans_.insert(new_spans_.end(), spans.begin() + static_cast<ptrdiff_t>(at),
                      spans.begin() + static_cast<ptrdiff_t>(end));
  };
  for (const Span& match : matches) {
    keep(match.begin);
    new_bytes_ += content;
    new_spans_.resize(new_bytes_.size(), match.end == 0 ? Span{shift, shift} : spans[match.end - 1]);
    at = match.end;
  }
  keep(bytes.size());
  bytes.swap(new_bytes_);
  spans.swap(new_spans_);
}

void Document::open(std::string_view given) {
  require(given.size() < UINT32_MAX / 4, Code::kInvalidArgument, "a text of ", given.size(),
          " bytes is tokenized in parts of at most ", UINT32_MAX / 4 - 1);
  current_ = 0;
  itself_ = is_well_formed(given);
  if (itself_) {
    text_ = given;
  } else {
    spans_[0].clear();
    stores_[0] = repaired(given, &spans_[0]);
    text_ = stores_[0];
  }
  parts.assign(1, {0, static_cast<uint32_t>(text_.size()), 0, -1});
}

Span Document::span(uint32_t begin, uint32_t end) const {
  if (!itself_) return {spans_[current_][begin].begin, spans_[current_][end - 1].end};
  const auto inside = [&](uint32_t at) {
    return at < text_.size() && (static_cast<uint8_t>(text_[at]) & 0xC0) == 0x80;
  };
  while (begin > 0 && inside(begin)) --begin;
  while (inside(end)) ++end;
  return {begin, end};
}

Span Document::span_of_piece(const Part& part, uint32_t begin, uint32_t end) const {
  if (begin == end) return {part.shift + begin - part.begin, part.shift + begin - part.begin};
  if (end > part.end) return {begin - part.begin, end - part.begin};
  return span(begin, end);
}

}  // namespace cairn::tokenizer
