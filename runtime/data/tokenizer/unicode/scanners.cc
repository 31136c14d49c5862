#include "runtime/data/tokenizer/unicode/scanners.h"

#include "runtime/data/tokenizer/unicode/classes.h"

namespace cairn::tokenizer {

// What the expressions differ in. All are alternatives, in this order: contractions ('s, 't ...), words, numbers, symbols, white
// space up to its last newline, white space but for the last of it, white space.
struct Scanner {
  std::string_view expression;
  enum Contractions : uint8_t { kNone, kExact, kAnyCase, kBehindWords } contractions;
  enum Words : uint8_t {
    kAfterSpace,
    kAfterAnything,
    kByCase
  } words;                          // ` ?x+`, `[^\r\n x]?x+`, the same with its capitals first
  uint16_t letters;                 // what x is
  uint8_t most_digits;              // of a number; 0: any number, after a space if there is one
  uint16_t no_symbols;              // what symbols are not, beside white space
  std::string_view behind_symbols;  // characters that stay with symbols before them
  bool newlines;                    // whether white space ends behind newlines
};

#define CAIRN_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define CAIRN_SPACES R"(|\s+(?!\S)|\s+)"
#define CAIRN_NEWLINES R"(|\s*[\r\n]+)" CAIRN_SPACES
#define CAIRN_CAPITALS R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define CAIRN_SMALL R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"

namespace {

constexpr Scanner kScanners[] = {
    // GPT-2
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+)" CAIRN_SPACES, Scanner::kExact,
     Scanner::kAfterSpace, kLetter, 0, kLetter | kNumber, "", false},
    // Llama 3, cl100k
    {CAIRN_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)" CAIRN_NEWLINES,
     Scanner::kAnyCase, Scanner::kAfterAnything, kLetter, 3, kLetter | kNumber, "\r\n", true},
    // Qwen 2 and 3
    {CAIRN_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)" CAIRN_NEWLINES,
     Scanner::kAnyCase, Scanner::kAfterAnything, kLetter, 1, kLetter | kNumber, "\r\n", true},
    // Qwen 3.5
    {CAIRN_CONTRACTIONS
     R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)" CAIRN_NEWLINES,
     Scanner::kAnyCase, Scanner::kAfterAnything, kLetter | kMark, 1, kLetter | kMark | kNumber, "\r\n", true},
    // o200k: gpt-oss, Phi 4 mini
    {CAIRN_CAPITALS "*" CAIRN_SMALL "+" CAIRN_CONTRACTIONS "?|" CAIRN_CAPITALS "+" CAIRN_SMALL
                    "*" CAIRN_CONTRACTIONS R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" CAIRN_NEWLINES,
     Scanner::kBehindWords, Scanner::kByCase, kLetter, 3, kLetter | kNumber, "\r\n/", true},
    // tekken: Mistral Nemo and later
    {CAIRN_CAPITALS "*" CAIRN_SMALL "+|" CAIRN_CAPITALS "+" CAIRN_SMALL
                    R"(*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" CAIRN_NEWLINES,
     Scanner::kNone, Scanner::kByCase, kLetter, 1, kLetter | kNumber, "\r\n/", true},
};

// Reads pieces from the head of a text.
class Reader {
 public:
  Reader(const Scanner& scanner, std::string_view text)
      : scanner_(scanner), classes_(Classes::get()), begin_(text.data()), end_(text.data() + text.size()) {}

  // The end of the piece that begins at `at`, which is not the end of the text.
  const char* next(const char* at) const {
    if (*at == '\'' &&
        (scanner_.contractions == Scanner::kExact || scanner_.contractions == Scanner::kAnyCase))
      if (const char* const end = contraction(at); end != nullptr) return end;
    const char* end = scanner_.words == Scanner::kByCase ? word_by_case(at) : word(at);
    if (end == nullptr) end = number(at);
    if (end == nullptr) end = symbols(at);
    return end == nullptr ? spaces(at) : end;
  }

 private:
  uint16_t bits(const char* at, uint32_t& size) const {
    const auto head = static_cast<uint8_t>(*at);
    if (head < 0x80) {
      size = 1;
      return classes_.ascii()[head];
    }
    const Rune rune = rune_at(at);
    size = rune.size;
    return classes_.of(rune.code);
  }

  // The end of as many characters with one of these bits as there are.
  const char* run(const char* at, uint16_t wanted) const {
    uint32_t size;
    while (at < end_ && (bits(at, size) & wanted) != 0) at += size;
    return at;
  }

  const char* contraction(const char* at) const {
    if (at + 1 >= end_) return nullptr;
    const bool any_case = scanner_.contractions != Scanner::kExact;
    const auto letter = [&](const char* p) {
      return p >= end_ ? '\0' : any_case && *p >= 'A' && *p <= 'Z' ? *p + 32 : *p;
    };
    const char first = static_cast<char>(letter(at + 1)), second = static_cast<char>(letter(at + 2));
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
    if ((first == 'r' || first == 'v') && second == 'e') return at + 3;
    if (first == 'l' && second == 'l') return at + 3;
    // U+017F is an s where case does not count.
    if (any_case && end_ - at >= 3 && at[1] == '\xC5' && at[2] == '\xBF') return at + 3;
    return nullptr;
  }

  // Behind the character that may stand before a word; `at` if there is none.
  const char* before_word(const char* at) const {
    if (scanner_.words == Scanner::kAfterSpace) return *at == ' ' ? at + 1 : at;
    uint32_t size;
    const bool other = (bits(at, size) & (kLetter | kNumber)) == 0 && *at != '\r' && *at != '\n';
    return other ? at + size : at;
  }

  const char* word(const char* at) const {
    const char* const begin = before_word(at);
    if (const char* const end = run(begin, scanner_.letters); end > begin) return end;
    // What may stand before a word may be a part of one itself: marks.
    const char* const end = run(at, scanner_.letters);
    return end > at ? end : nullptr;
  }

  const char* word_by_case(const char* at) const {
    const char* const after = before_word(at);
    const char* end = nullptr;
    // The expression is greedy and gives back: first with a character before the word, then without; first those with a small
    // letter.
    for (const bool small : {true, false}) {
      if (end == nullptr && after != at) end = cased(after, small);
      if (end == nullptr) end = cased(at, small);
    }
    if (end == nullptr) return nullptr;
    if (scanner_.contractions == Scanner::kBehindWords && end < end_ && *end == '\'')
      if (const char* const longer = contraction(end); longer != nullptr) return longer;
    return end;
  }

  // `capitals* small+` or `capitals+ small*`; null: no match.
  const char* cased(const char* at, bool small) const {
    const char* const capitals = run(at, kUpperLike);
    if (!small) return capitals > at ? run(capitals, kLowerLike) : nullptr;
    if (const char* const end = run(capitals, kLowerLike); end > capitals) return end;
    // Characters that are both are given back until one of them can be the small one.
    for (const char* end = capitals; end > at;) {
      const Rune last = rune_before(at, end);
      if (classes_.is(last.code, kLowerLike)) return end;
      end -= last.size;
    }
    return nullptr;
  }

  const char* number(const char* at) const {
    if (scanner_.most_digits == 0) {
      const char* const begin = *at == ' ' ? at + 1 : at;
      const char* const end = run(begin, kNumber);
      return end > begin ? end : nullptr;
    }
    const char* end = at;
    uint32_t size;
    for (int digits = 0; digits < scanner_.most_digits && end < end_ && (bits(end, size) & kNumber) != 0;
         ++digits)
      end += size;
    return end > at ? end : nullptr;
  }

  const char* symbols(const char* at) const {
    const char* const begin = *at == ' ' ? at + 1 : at;
    const char* end = begin;
    uint32_t size;
    while (end < end_ && (bits(end, size) & (kSpace | scanner_.no_symbols)) == 0) end += size;
    if (end == begin) return nullptr;
    while (end < end_ && scanner_.behind_symbols.find(*end) != std::string_view::npos) ++end;
    return end;
  }

  const char* spaces(const char* at) const {
    const char* end = at;
    const char *last = at, *newline = nullptr;  // where the last one begins; behind the last newline
    for (uint32_t size; end < end_ && (bits(end, size) & kSpace) != 0; end += size) {
      last = end;
      if (*end == '\r' || *end == '\n') newline = end + 1;
    }
    if (end == at) return at + rune_size(*at);  // no expression leaves anything; never reached
    if (scanner_.newlines && newline != nullptr) return newline;
    return end == end_ || last == at ? end : last;
  }

  const Scanner& scanner_;
  const Classes& classes_;
  const char *const begin_, *const end_;
};

}  // namespace

const std::string_view kGpt2Expression = kScanners[0].expression;

const Scanner* scanner_of(std::string_view expression) {
  for (const Scanner& scanner : kScanners)
    if (scanner.expression == expression) return &scanner;
  return nullptr;
}

void scan(const Scanner& scanner, std::string_view text, uint32_t base, std::vector<uint32_t>& ends) {
  const Reader reader(scanner, text);
  for (const char *at = text.data(), *const end = at + text.size(); at < end;) {
    at = reader.next(at);
    ends.push_back(base + static_cast<uint32_t>(at - text.data()));
  }
}

}  // namespace cairn::tokenizer
