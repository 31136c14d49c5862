#include <algorithm>

#include "runtime/data/tokenizer/parts/part.h"
#include "runtime/data/tokenizer/parts/pattern.h"
#include "runtime/data/tokenizer/parts/splitting.h"
#include "runtime/data/tokenizer/unicode/classes.h"
#include "runtime/data/tokenizer/unicode/scanners.h"

namespace cairn::tokenizer {
namespace {

bool never(std::string_view) { return false; }

// Cuts at characters with some of these bits.
class ByClass final : public PreTokenizer {
 public:
  ByClass(uint16_t bits, Behavior behavior) : bits_(bits), behavior_(behavior) {}
  void apply(Document& document) const override {
    const Classes& classes = Classes::get();
    cut_at_characters(document, behavior_, [&](char32_t code) { return classes.is(code, bits_); });
  }

 private:
  uint16_t bits_;
  Behavior behavior_;
};

// Cuts with one of the expressions that have a scanner, which match all there is.
void cut_by_scanner(Document& document, const Scanner& scanner) {
  std::vector<uint32_t> ends;
  document.split([&](const Part& part, std::vector<Part>& out) {
    ends.clear();
    scan(scanner, document.text(part), part.begin, ends);
    uint32_t begin = part.begin;
    for (const uint32_t end : ends) {
      out.push_back(document.slice(begin, end));
      begin = end;
    }
  });
}

class Split final : public PreTokenizer {
 public:
  explicit Split(const Json& json)
      : Split(Pattern(json.at("pattern")), read_behavior(json.at("behavior")), json.flag("invert", false)) {}
  Split(Pattern pattern, Behavior behavior, bool invert)
      : pattern_(std::move(pattern)),
        behavior_(behavior),
        invert_(invert),
        scanner_(pattern_.is_expression() ? scanner_of(pattern_.expression()) : nullptr) {}

  void apply(Document& document) const override {
    if (scanner_ != nullptr && (invert_ ? behavior_ == Behavior::kRemoved : behavior_ == Behavior::kIsolated))
      return cut_by_scanner(document, *scanner_);
    std::vector<Span> found;
    cut(document, behavior_, [&](std::string_view text, std::vector<Match>& matches) {
      pattern_.find_all(text, found);
      uint32_t at = 0;
      for (const Span& span : found) {
        if (at != span.begin) matches.push_back({at, span.begin, invert_});
        matches.push_back({span.begin, span.end, !invert_});
        at = span.end;
      }
      if (at != text.size()) matches.push_back({at, static_cast<uint32_t>(text.size()), invert_});
    });
  }

 private:
  Pattern pattern_;
  Behavior behavior_;
  bool invert_;
  const Scanner* scanner_;
};

class ByteLevel final : public PreTokenizer {
 public:
  explicit ByteLevel(const Json& json)
      : prefix_space_(json.flag("add_prefix_space", true)), use_regex_(json.flag("use_regex", true)) {}
  void apply(Document& document) const override {
    if (prefix_space_)
      document.change([](std::string_view text) { return text.empty() || text[0] == ' '; },
                      [](Aligned& text) {
                        if (text.bytes.empty() || text.bytes[0] != ' ') text.prepend(" ");
                      });
    if (use_regex_) cut_by_scanner(document, *scanner_of(kGpt2Expression));
    if (!leaves_bytes_) document.change(never, [](Aligned& text) { spell(text); });
  }
  bool leave_bytes() override { return leaves_bytes_ = true; }
  bool spells_bytes() const override { return true; }

 private:
  static void spell(Aligned& text) {
    std::string bytes;
    std::vector<Span> spans;
    for (size_t at = 0; at < text.bytes.size(); ++at) {
      append_rune(bytes, character_of_byte(static_cast<uint8_t>(text.bytes[at])));
      spans.resize(bytes.size(), text.spans[at]);
    }
    text.bytes.swap(bytes);
    text.spans.swap(spans);
  }

  bool prefix_space_, use_regex_, leaves_bytes_ = false;
};

class Metaspace final : public PreTokenizer {
 public:
  explicit Metaspace(const Json& json)
      : mark_(json.text("replacement")), scheme_(read_scheme(json)), split_(json.flag("split", true)) {
    code_ = only_rune(mark_);
    if (code_ < 0) json.bad("its replacement '", mark_, "' is not one character");
  }
  void apply(Document& document) const override {
    // Parts are changed one after the other, so that "first" sees where each began.
    document.change(never, [&](Aligned& text) {
      std::vector<Span> spaces;
      for (uint32_t at = 0; at < text.bytes.size(); ++at)
        if (text.bytes[at] == ' ') spaces.push_back({at, at + 1});
      text.replace(spaces, mark_);
      const bool wanted = scheme_ == Scheme::kAlways || (scheme_ == Scheme::kFirst && text.shift == 0);
      if (wanted && !text.bytes.starts_with(mark_)) text.prepend(mark_);
    });
    if (split_)
      cut_at_characters(document, Behavior::kMergedWithNext,
                        [&](char32_t code) { return code == static_cast<char32_t>(code_); });
  }

 private:
  enum class Scheme { kAlways, kFirst, kNever };
  static Scheme read_scheme(const Json& json) {
    const std::string_view name = json.text("prepend_scheme", "always");
    const bool prefix = json.flag("add_prefix_space", true);
    if (!prefix && json.has("prepend_scheme") && name != "never")
      json.bad("its add_prefix_space contradicts its prepend_scheme");
    if (!prefix || name == "never") return Scheme::kNever;
    if (name == "first") return Scheme::kFirst;
    if (name != "always") json.bad("there is no prepend_scheme '", name, "'; known: always, first, never");
    return Scheme::kAlways;
  }

  std::string mark_;
  int32_t code_;
  Scheme scheme_;
  bool split_;
};

class Whitespace final : public PreTokenizer {
 public:
  // Runs of letters, and runs of what is neither that nor white space.
  void apply(Document& document) const override {
    const Classes& classes = Classes::get();
    cut(document, Behavior::kRemoved, [&](std::string_view text, std::vector<Match>& matches) {
      const auto kind = [&](char32_t code) {
        return classes.is(code, kWord) ? 0 : classes.is(code, kSpace) ? 1 : 2;
      };
      for (uint32_t at = 0, end; at < text.size(); at = end) {
        const int first = kind(rune_at(text.data() + at).code);
        for (end = at; end < text.size();) {
          const Rune rune = rune_at(text.data() + end);
          if (kind(rune.code) != first) break;
          end += rune.size;
        }
        matches.push_back({at, end, first == 1});
      }
    });
  }
};

class Bert final : public PreTokenizer {
 public:
  void apply(Document& document) const override {
    ByClass(kSpace, Behavior::kRemoved).apply(document);
    ByClass(kPunctuation, Behavior::kIsolated).apply(document);
  }
};

class FixedLength final : public PreTokenizer {
 public:
  explicit FixedLength(const Json& json) : length_(json.has("length") ? json.at("length").whole() : 5) {
    if (length_ < 1) json.bad("its length is ", length_);
  }
  void apply(Document& document) const override {
    cut(document, Behavior::kIsolated, [&](std::string_view text, std::vector<Match>& matches) {
      for (uint32_t at = 0, end = 0; at < text.size(); at = end) {
        for (int64_t left = length_; left > 0 && end < text.size(); --left) end += rune_size(text[end]);
        matches.push_back({at, end, true});
      }
    });
  }

 private:
  int64_t length_;
};

class Sequence final : public PreTokenizer {
 public:
  explicit Sequence(const Json& json) {
    for (const Json& item : json.at("pretokenizers").list()) parts_.push_back(read_pre_tokenizer(item));
  }
  void apply(Document& document) const override {
    for (const auto& part : parts_) part->apply(document);
  }
  bool leave_bytes() override { return !parts_.empty() && parts_.back()->leave_bytes(); }
  bool spells_bytes() const override {
    const auto spelling =
        std::ranges::count_if(parts_, [](const auto& part) { return part->spells_bytes(); });
    return spelling == 1 && parts_.back()->spells_bytes();
  }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> parts_;
};

struct Row {
  std::string_view name;
  std::unique_ptr<PreTokenizer> (*make)(const Json&);
};
template <class Part>
std::unique_ptr<PreTokenizer> of(const Json& json) {
  return std::make_unique<Part>(json);
}
template <class Part>
std::unique_ptr<PreTokenizer> plain(const Json&) {
  return std::make_unique<Part>();
}

std::unique_ptr<PreTokenizer> digits(const Json& json) {
  const bool each = json.flag("individual_digits", false);
  return std::make_unique<ByClass>(kNumeric, each ? Behavior::kIsolated : Behavior::kContiguous);
}
std::unique_ptr<PreTokenizer> punctuation(const Json& json) {
  return std::make_unique<ByClass>(
      kPunctuation, json.has("behavior") ? read_behavior(json.at("behavior")) : Behavior::kIsolated);
}
std::unique_ptr<PreTokenizer> whitespace_split(const Json&) {
  return std::make_unique<ByClass>(kSpace, Behavior::kRemoved);
}

constexpr Row kRows[] = {
    {"BertPreTokenizer", plain<Bert>},
    {"ByteLevel", of<ByteLevel>},
    {"Digits", digits},
    {"FixedLength", of<FixedLength>},
    {"Metaspace", of<Metaspace>},
    {"Punctuation", punctuation},
    {"Sequence", of<Sequence>},
    {"Split", of<Split>},
    {"Whitespace", plain<Whitespace>},
    {"WhitespaceSplit", whitespace_split},
};

}  // namespace

std::unique_ptr<PreTokenizer> splitting_into_bytes(std::string_view expression, const std::string& place) {
  return std::make_unique<Split>(Pattern(expression, place), Behavior::kIsolated, false);
}

std::unique_ptr<PreTokenizer> read_pre_tokenizer(const Json& json) {
  return json.made(kRows, "pre-tokenizer");
}

}  // namespace cairn::tokenizer
