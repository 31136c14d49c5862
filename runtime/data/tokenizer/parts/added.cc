#include "runtime/data/tokenizer/parts/added.h"

#include <algorithm>

#include "runtime/data/tokenizer/unicode/classes.h"

namespace cairn::tokenizer {
namespace {

bool is(char32_t code, uint16_t bits) { return Classes::get().is(code, bits); }

bool ends_with_word(std::string_view text) {
  return !text.empty() && is(rune_before(text.data(), text.data() + text.size()).code, kWord);
}
bool begins_with_word(std::string_view text) { return !text.empty() && is(rune_at(text.data()).code, kWord); }

uint32_t spaces_at_end(std::string_view text) {
  size_t size = text.size();
  while (size > 0) {
    const Rune last = rune_before(text.data(), text.data() + size);
    if (!is(last.code, kSpace)) break;
    size -= last.size;
  }
  return static_cast<uint32_t>(size);
}
uint32_t spaces_at_head(std::string_view text) {
  uint32_t size = 0;
  while (size < text.size()) {
    const Rune rune = rune_at(text.data() + size);
    if (!is(rune.code, kSpace)) break;
    size += rune.size;
  }
  return size;
}

}  // namespace

void AddedTokens::add(const std::vector<AddedToken>& tokens, const Tokens& vocabulary,
                      const Normalizer* normalizer) {
  int32_t next = vocabulary.count();
  for (const AddedToken& token : tokens) {
    if (token.content.empty()) continue;
    int32_t id = find(token.content);
    if (id < 0) id = vocabulary.find(token.content);
    if (id < 0) id = next++;
    require(id < kMostTokens, Code::kCorruptFile, "there are more than ", kMostTokens, " tokens");
    Row row{token, token.content};
    if (token.normalized && normalizer != nullptr) {
      Aligned text;
      text.bytes = token.content;
      text.spans.assign(text.bytes.size(), Span());
      normalizer->apply(text);
      row.normal = text.bytes;
    }
    (token.normalized ? normalized_ : plain_).add(row.normal, id);
    numbers_[token.content] = id;
    if (token.special) specials_.insert(token.content);
    rows_[id] = std::move(row);
    size_ = std::max(size_, id + 1);
  }
}

int32_t AddedTokens::find(std::string_view content) const {
  const auto at = numbers_.find(std::string(content));
  return at == numbers_.end() ? -1 : at->second;
}

const std::string* AddedTokens::text(int32_t id) const {
  const auto at = rows_.find(id);
  return at == rows_.end() ? nullptr : &at->second.normal;
}
const std::string* AddedTokens::content(int32_t id) const {
  const auto at = rows_.find(id);
  return at == rows_.end() ? nullptr : &at->second.token.content;
}

void AddedTokens::extract(Document& document, bool normalized) const {
  const Trie& trie = normalized ? normalized_ : plain_;
  document.split([&](const Part& part, std::vector<Part>& out) {
    if (trie.empty())
      out.push_back(document.slice(part.begin, part.end));
    else
      cut(document, part, trie, out);
  });
}

void AddedTokens::cut(const Document& document, const Part& part, const Trie& trie,
                      std::vector<Part>& out) const {
  const std::string_view text = document.text(part);
  uint32_t done = 0;  // behind the last part
  for (size_t at = 0; at < text.size();) {
    int32_t id = -1;
    const size_t size = trie.begins(text[at]) ? trie.longest(text.substr(at), id) : 0;
    if (size == 0) {
      ++at;
      continue;
    }
    auto begin = static_cast<uint32_t>(at), end = static_cast<uint32_t>(at + size);
    at = end;
    const AddedToken& token = rows_.find(id)->second.token;
    if (token.single_word && (ends_with_word(text.substr(0, begin)) || begins_with_word(text.substr(end))))
      continue;
    if (token.lstrip) begin = std::max(spaces_at_end(text.substr(0, begin)), done);
    if (token.rstrip) end += spaces_at_head(text.substr(end));
    if (done < begin) out.push_back(document.slice(part.begin + done, part.begin + begin));
    out.push_back(document.slice(part.begin + begin, part.begin + end, id));
    done = end;
  }
  if (done < text.size()) out.push_back(document.slice(part.begin + done, part.end));
}

}  // namespace cairn::tokenizer
