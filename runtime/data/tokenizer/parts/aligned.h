// Text on its way from what was given to what is cut, with where each byte comes from.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/tokenizer/unicode/normal.h"
#include "runtime/data/tokenizer/unicode/utf8.h"

namespace cairn::tokenizer {

// A stretch of text that a normalizer may change. The rules for spans are those of the `tokenizers` library.
class Aligned {
 public:
  std::string bytes;
  std::vector<Span> spans;  // of each byte
  uint32_t shift = 0;       // where the stretch began before anything changed it

  // Characters replaced, added and removed. `removed`: how many before the first edit.
  void transform(const std::vector<Edit>& edits, size_t removed = 0);
  template <class Keep>
  void filter(const Keep& keep);
  template <class Map>
  void map(const Map& map);  // each character to one
  void prepend(std::string_view text);
  // Puts `content` in place of parts of the text, which are in order.
  void replace(const std::vector<Span>& matches, std::string_view content);

 private:
  std::vector<Edit> edits_;
  std::string new_bytes_;
  std::vector<Span> new_spans_;
};

template <class Keep>
void Aligned::filter(const Keep& keep) {
  edits_.clear();
  size_t first = 0;
  int32_t removed = 0;
  for (size_t at = 0; at < bytes.size();) {
    const Rune rune = rune_at(bytes.data() + at);
    at += rune.size;
    if (!keep(rune.code)) {
      ++removed;
      continue;
    }
    if (edits_.empty())
      first = static_cast<size_t>(removed);
    else
      edits_.back().change = -removed;
    edits_.push_back({rune.code, 0});
    removed = 0;
  }
  if (!edits_.empty()) edits_.back().change = -removed;
  transform(edits_, first);
}

template <class Map>
void Aligned::map(const Map& map) {
  edits_.clear();
  for (size_t at = 0; at < bytes.size();) {
    const Rune rune = rune_at(bytes.data() + at);
    at += rune.size;
    edits_.push_back({map(rune.code), 0});
  }
  transform(edits_);
}

// A stretch that is cut on its own, or that is one added token already.
struct Part {
  uint32_t begin, end;  // in the document's text
  uint32_t shift;       // where it began in what was given when it became a part
  int32_t token = -1;   // the added token; -1: none
};

class Document {
 public:
  // Takes text that may be broken UTF-8, and must outlive what is done with it.
  void open(std::string_view given);

  std::string_view text() const { return text_; }
  std::string_view text(const Part& part) const { return text_.substr(part.begin, part.end - part.begin); }
  // Where begin..end comes from; the characters at its ends count whole.
  Span span(uint32_t begin, uint32_t end) const;
  Span span_of_piece(const Part& part, uint32_t begin, uint32_t end) const;

  std::vector<Part> parts;

  // Gives every part without a token to change(Aligned&), unless keeps(text) says that it would stay as it is.
  template <class Keeps, class Change>
  void change(const Keeps& keeps, const Change& change);
  // Gives every part without a token to cut(part, out), which appends the parts it becomes; empty ones are left out.
  template <class Cut>
  void split(const Cut& cut);
  Part slice(uint32_t begin, uint32_t end, int32_t token = -1) const {
    return {begin, end, begin < end ? span(begin, end).begin : begin, token};
  }

 private:
  void append(std::string_view bytes, const Span* spans);

  std::string_view text_;
  std::string stores_[2];
  std::vector<Span> spans_[2];
  int current_ = 0;
  bool itself_ = true;  // the text is what was given, to the byte: no spans are kept
  Aligned aligned_;
  std::vector<Part> next_;
};

template <class Keeps, class Change>
void Document::change(const Keeps& keeps, const Change& change) {
  bool any = false;
  for (const Part& part : parts) any = any || (part.token < 0 && !keeps(text(part)));
  if (!any) return;
  const int other = 1 - current_;
  std::string& bytes = stores_[other];
  std::vector<Span>& spans = spans_[other];
  bytes.clear();
  spans.clear();
  for (Part& part : parts) {
    aligned_.bytes.assign(text(part));
    aligned_.shift = part.shift;
    aligned_.spans.resize(aligned_.bytes.size());
    for (uint32_t at = part.begin; at < part.end;) {
      const uint32_t size = rune_size(text_[at]);
      const Span from = span(at, at + size);
      for (uint32_t i = 0; i < size; ++i) aligned_.spans[at + i - part.begin] = from;
      at += size;
    }
    if (part.token < 0) change(aligned_);
    part.begin = static_cast<uint32_t>(bytes.size());
    bytes += aligned_.bytes;
    spans.insert(spans.end(), aligned_.spans.begin(), aligned_.spans.end());
    part.end = static_cast<uint32_t>(bytes.size());
  }
  current_ = other;
  text_ = bytes;
  itself_ = false;
}

template <class Cut>
void Document::split(const Cut& cut) {
  next_.clear();
  for (const Part& part : parts) {
    if (part.token >= 0)
      next_.push_back(part);
    else
      cut(part, next_);
  }
  std::erase_if(next_, [](const Part& part) { return part.token < 0 && part.begin == part.end; });
  parts.swap(next_);
}

}  // namespace cairn::tokenizer
