#include <algorithm>

#include "runtime/data/tokenizer/parts/base64.h"
#include "runtime/data/tokenizer/parts/part.h"
#include "runtime/data/tokenizer/parts/pattern.h"
#include "runtime/data/tokenizer/unicode/classes.h"

namespace cairn::tokenizer {
namespace {

// A normalizer that is a function of the text alone.
template <auto kApply>
class Plain final : public Normalizer {
 public:
  void apply(Aligned& text) const override { kApply(text); }
};

template <const NormalForm& kForm>
void to_form(Aligned& text) {
  std::vector<Edit> edits;
  normalize(kForm, text.bytes, edits);
  text.transform(edits);
}

class Nfc final : public Normalizer {
 public:
  void apply(Aligned& text) const override { to_form<kNfc>(text); }
  bool keeps(std::string_view text) const override { return is_nfc(text); }
};

void to_lowercase(Aligned& text) {
  std::vector<Edit> edits;
  for (size_t at = 0; at < text.bytes.size();) {
    const Rune rune = rune_at(text.bytes.data() + at);
    at += rune.size;
    char32_t small[2];
    for (int i = 0, count = lowercase(rune.code, small); i < count; ++i) edits.push_back({small[i], i > 0});
  }
  text.transform(edits);
}

void strip_accents(Aligned& text) {
  text.filter([&](char32_t code) { return !Classes::get().is(code, kCombining); });
}

bool is_any_of(char32_t code, std::initializer_list<std::pair<char32_t, char32_t>> ranges) {
  return std::ranges::any_of(ranges,
                             [&](const auto& range) { return code >= range.first && code <= range.second; });
}

void nmt(Aligned& text) {
  text.filter([](char32_t c) {
    return !is_any_of(c, {{1, 8}, {0x0B, 0x0B}, {0x0E, 0x1F}, {0x7F, 0x7F}, {0x8F, 0x8F}, {0x9F, 0x9F}});
  });
  text.map([](char32_t c) -> char32_t {
    const bool space = is_any_of(c, {{9, 0x0A},
                                     {0x0C, 0x0D},
                                     {0x1680, 0x1680},
                                     {0x200B, 0x200F},
                                     {0x2028, 0x2029},
                                     {0x2581, 0x2581},
                                     {0xFEFF, 0xFEFF},
                                     {0xFFFD, 0xFFFD}});
    return space ? ' ' : c;
  });
}

void to_byte_characters(Aligned& text) {
  std::vector<Edit> edits;
  for (size_t at = 0; at < text.bytes.size(); ++at)
    edits.push_back({character_of_byte(static_cast<uint8_t>(text.bytes[at])),
                     (static_cast<uint8_t>(text.bytes[at]) & 0xC0) == 0x80});
  text.transform(edits);
}

class Bert final : public Normalizer {
 public:
  explicit Bert(const Json& json)
      : clean_(json.flag("clean_text", true)),
        chinese_(json.flag("handle_chinese_chars", true)),
        lowercase_(json.flag("lowercase", true)),
        accents_(json.flag("strip_accents", lowercase_)) {}

  void apply(Aligned& text) const override {
    const Classes& classes = Classes::get();
    if (clean_) {
      text.filter([&](char32_t c) { return c != 0 && c != 0xFFFD && !classes.is(c, kControl); });
      text.map([&](char32_t c) -> char32_t { return classes.is(c, kSpace) ? ' ' : c; });
    }
    if (chinese_) part_chinese(text);
    if (accents_) {
      to_form<kNfd>(text);
      text.filter([&](char32_t c) { return !classes.is(c, kNonspacing); });
    }
    if (lowercase_) to_lowercase(text);
  }

 private:
  static void part_chinese(Aligned& text) {
    std::vector<Edit> edits;
    for (size_t at = 0; at < text.bytes.size();) {
      const Rune rune = rune_at(text.bytes.data() + at);
      at += rune.size;
      // The library's own ranges: its last but two begins at U+2B920.
      if (is_any_of(rune.code, {{0x4E00, 0x9FFF},
                                {0x3400, 0x4DBF},
                                {0x20000, 0x2A6DF},
                                {0x2A700, 0x2B73F},
                                {0x2B740, 0x2B81F},
                                {0x2B920, 0x2CEAF},
                                {0xF900, 0xFAFF},
                                {0x2F800, 0x2FA1F}}))
        edits.insert(edits.end(), {{U' ', 0}, {rune.code, 1}, {U' ', 1}});
      else
        edits.push_back({rune.code, 0});
    }
    text.transform(edits);
  }

  bool clean_, chinese_, lowercase_, accents_;
};

class Strip final : public Normalizer {
 public:
  explicit Strip(const Json& json)
      : left_(json.at("strip_left").flag()), right_(json.at("strip_right").flag()) {}

  void apply(Aligned& text) const override {
    const Classes& classes = Classes::get();
    size_t begin = 0, end = text.bytes.size();
    while (left_ && begin < end && classes.is(rune_at(text.bytes.data() + begin).code, kSpace))
      begin += rune_size(text.bytes[begin]);
    while (right_ && end > begin) {
      const Rune last = rune_before(text.bytes.data(), text.bytes.data() + end);
      if (!classes.is(last.code, kSpace)) break;
      end -= last.size;
    }
    text.bytes = text.bytes.substr(begin, end - begin);
    text.spans = {text.spans.begin() + static_cast<ptrdiff_t>(begin),
                  text.spans.begin() + static_cast<ptrdiff_t>(end)};
  }

 private:
  bool left_, right_;
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(const Json& json) : text_(json.text("prepend")) {}
  void apply(Aligned& text) const override { text.prepend(text_); }

 private:
  std::string text_;
};

class Replace final : public Normalizer {
 public:
  explicit Replace(const Json& json) : pattern_(json.at("pattern")), content_(json.text("content")) {}
  void apply(Aligned& text) const override {
    std::vector<Span> matches;
    pattern_.find_all(text.bytes, matches);
    text.replace(matches, content_);
  }
  bool keeps(std::string_view text) const override { return pattern_.surely_misses(text); }

 private:
  Pattern pattern_;
  std::string content_;
};

class Sequence final : public Normalizer {
 public:
  explicit Sequence(const Json& json) {
    for (const Json& item : json.at("normalizers").list()) parts_.push_back(read_normalizer(item));
  }
  void apply(Aligned& text) const override {
    for (const auto& part : parts_) part->apply(text);
  }
  bool keeps(std::string_view text) const override {
    return std::ranges::all_of(parts_, [&](const auto& part) { return part->keeps(text); });
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> parts_;
};

struct Row {
  std::string_view name;
  std::unique_ptr<Normalizer> (*make)(const Json&);
};
template <class Part>
std::unique_ptr<Normalizer> of(const Json& json) {
  return std::make_unique<Part>(json);
}
template <class Part>
std::unique_ptr<Normalizer> plain(const Json&) {
  return std::make_unique<Part>();
}

constexpr Row kRows[] = {
    {"BertNormalizer", of<Bert>},
    {"ByteLevel", plain<Plain<to_byte_characters>>},
    {"Lowercase", plain<Plain<to_lowercase>>},
    {"NFC", plain<Nfc>},
    {"NFD", plain<Plain<to_form<kNfd>>>},
    {"NFKC", plain<Plain<to_form<kNfkc>>>},
    {"NFKD", plain<Plain<to_form<kNfkd>>>},
    {"Nmt", plain<Plain<nmt>>},
    {"Precompiled",
     [](const Json& json) { return charsmap_normalizer(from_base64(json.at("precompiled_charsmap"))); }},
    {"Prepend", of<Prepend>},
    {"Replace", of<Replace>},
    {"Sequence", of<Sequence>},
    {"Strip", of<Strip>},
    {"StripAccents", plain<Plain<strip_accents>>},
};

}  // namespace

std::unique_ptr<Normalizer> read_normalizer(const Json& json) { return json.made(kRows, "normalizer"); }

}  // namespace cairn::tokenizer
