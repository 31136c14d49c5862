#include "runtime/data/template/characters.h"

#include <utf8proc.h>

#include <algorithm>

#include "runtime/data/tokenizer/unicode/utf8.h"

namespace cairn::templates {
namespace {

struct Special {
  char32_t code;
  std::u32string_view upper, title;
};
constexpr Special kSpecials[] = {
#define CAIRN_SPECIAL(code, upper, title) {code, upper, title},
#include "runtime/data/template/special_cases.def"
#undef CAIRN_SPECIAL
};

const Special* special(char32_t code) {
  if (code < 0xDF) return nullptr;
  const auto* found = std::lower_bound(std::begin(kSpecials), std::end(kSpecials), code,
                                       [](const Special& row, char32_t c) { return row.code < c; });
  return found != std::end(kSpecials) && found->code == code ? found : nullptr;
}

utf8proc_category_t category(char32_t code) { return utf8proc_category(static_cast<utf8proc_int32_t>(code)); }
char32_t mapped(utf8proc_int32_t (*map)(utf8proc_int32_t), char32_t code) {
  return static_cast<char32_t>(map(static_cast<utf8proc_int32_t>(code)));
}
bool between(char32_t code, char32_t first, char32_t last) { return code >= first && code <= last; }

constexpr char32_t kCapitalSigma = 0x3A3, kFinalSigma = 0x3C2, kSmallSigma = 0x3C3, kDottedI = 0x130;

void add_lower(std::u32string& to, std::u32string_view text, size_t at) {
  const char32_t code = text[at];
  if (code == kCapitalSigma) {
    const auto cased = [](char32_t c) { return is_cased(c); };
    const auto ignored = [](char32_t c) {
      const auto kind = category(c);
      return c == '\'' || c == '.' || c == ':' || c == 0xB7 || kind == UTF8PROC_CATEGORY_MN ||
             kind == UTF8PROC_CATEGORY_CF || kind == UTF8PROC_CATEGORY_LM || kind == UTF8PROC_CATEGORY_SK;
    };
    size_t before = at, after = at + 1;
    while (before > 0 && ignored(text[before - 1])) --before;
    while (after < text.size() && ignored(text[after])) ++after;
    const bool last = before > 0 && cased(text[before - 1]) && !(after < text.size() && cased(text[after]));
    to += last ? kFinalSigma : mapped(utf8proc_tolower, code);
  } else if (code == kDottedI) {
    to += U"i\u0307";
  } else {
    to += mapped(utf8proc_tolower, code);
  }
}

void add_upper(std::u32string& to, char32_t code, bool title) {
  if (const Special* row = special(code)) {
    to += title ? row->title : row->upper;
  } else {
    to += mapped(title ? utf8proc_totitle : utf8proc_toupper, code);
  }
}

char ascii_case(char c, bool upper) {
  return upper ? (c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c)
               : (c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c);
}

}  // namespace

bool is_space(char32_t code) {
  return between(code, 9, 13) || between(code, 0x1C, 0x20) || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || between(code, 0x2000, 0x200A) || code == 0x2028 || code == 0x2029 ||
         code == 0x202F || code == 0x205F || code == 0x3000;
}

bool is_printable(char32_t code) {
  if (code < 0x7F) return code >= 0x20;
  const auto kind = category(code);
  return kind != UTF8PROC_CATEGORY_CN && kind < UTF8PROC_CATEGORY_ZS;
}

bool is_lower(char32_t code) {
  return category(code) == UTF8PROC_CATEGORY_LL || code == 0xAA || code == 0xBA ||
         between(code, 0x2170, 0x217F) || between(code, 0x24D0, 0x24E9) || between(code, 0x2B0, 0x2B8);
}
bool is_upper(char32_t code) {
  return category(code) == UTF8PROC_CATEGORY_LU || between(code, 0x2160, 0x216F) ||
         between(code, 0x24B6, 0x24CF);
}
bool is_cased(char32_t code) {
  return is_lower(code) || is_upper(code) || category(code) == UTF8PROC_CATEGORY_LT;
}
bool is_letter(char32_t code) {
  const auto kind = category(code);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}
bool is_decimal(char32_t code) { return category(code) == UTF8PROC_CATEGORY_ND; }
bool is_digit(char32_t code) {
  return is_decimal(code) || code == 0xB2 || code == 0xB3 || code == 0xB9 || code == 0x2070 ||
         between(code, 0x2074, 0x2079) || between(code, 0x2080, 0x2089) || between(code, 0x2460, 0x2468) ||
         between(code, 0x2474, 0x247C) || between(code, 0x2488, 0x2490) || between(code, 0x2776, 0x277E);
}
bool is_numeric(char32_t code) {
  const auto kind = category(code);
  return kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO;
}
bool is_word(char32_t code) { return code == '_' || is_letter(code) || is_numeric(code); }

size_t leading_space(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const tokenizer::Rune rune = tokenizer::rune_at(text.data() + at);
    if (!is_space(rune.code)) break;
    at += rune.size;
  }
  return at;
}

size_t trailing_space(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    const tokenizer::Rune rune = tokenizer::rune_before(text.data(), text.data() + end);
    if (!is_space(rune.code)) break;
    end -= rune.size;
  }
  return text.size() - end;
}

std::string_view stripped(std::string_view text, const std::string_view* set, bool left, bool right) {
  const std::u32string wanted = set != nullptr ? runes_of(*set) : std::u32string();
  const auto goes = [&](char32_t code) {
    return set == nullptr ? is_space(code) : wanted.find(code) != std::u32string::npos;
  };
  while (left && !text.empty()) {
    const tokenizer::Rune rune = tokenizer::rune_at(text.data());
    if (!goes(rune.code)) break;
    text.remove_prefix(rune.size);
  }
  while (right && !text.empty()) {
    const tokenizer::Rune rune = tokenizer::rune_before(text.data(), text.data() + text.size());
    if (!goes(rune.code)) break;
    text.remove_suffix(rune.size);
  }
  return text;
}

std::string in_case(std::string_view text, Case wanted) {
  const bool ascii = std::all_of(text.begin(), text.end(), [](char c) { return c >= 0; });
  if (ascii && (wanted == Case::kLower || wanted == Case::kUpper || wanted == Case::kFold)) {
    std::string made(text);
    for (char& c : made) c = ascii_case(c, wanted == Case::kUpper);
    return made;
  }
  const std::u32string runes = runes_of(text);
  std::u32string made;
  bool inside_word = false;
  for (size_t i = 0; i < runes.size(); ++i) {
    const bool first = wanted == Case::kTitle ? !inside_word : i == 0;
    const bool upper = wanted == Case::kUpper || (wanted == Case::kSwap && is_lower(runes[i]));
    if (upper || ((wanted == Case::kTitle || wanted == Case::kCapital) && first)) {
      add_upper(made, runes[i], !upper);
    } else if (wanted == Case::kSwap && !is_upper(runes[i])) {
      made += runes[i];
    } else if (wanted == Case::kFold && (runes[i] == kCapitalSigma || runes[i] == kFinalSigma)) {
      made += kSmallSigma;
    } else if (wanted == Case::kFold && (runes[i] == 0xDF || runes[i] == 0x1E9E)) {
      made += U"ss";
    } else {
      add_lower(made, runes, i);
    }
    inside_word = is_cased(runes[i]);
  }
  return text_of(made);
}

std::u32string runes_of(std::string_view text) {
  std::u32string runes;
  runes.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const tokenizer::Rune rune = tokenizer::rune_at(text.data() + at);
    runes += rune.code;
    at += rune.size;
  }
  return runes;
}

std::string text_of(std::u32string_view runes) {
  std::string text;
  for (const char32_t code : runes) tokenizer::append_rune(text, code);
  return text;
}

size_t byte_of(std::string_view text, int64_t index) {
  size_t at = 0;
  for (; index > 0 && at < text.size(); --index) at += tokenizer::rune_size(text[at]);
  return std::min(at, text.size());
}

int64_t characters_in(std::string_view text) { return static_cast<int64_t>(tokenizer::count_runes(text)); }

std::vector<std::string_view> lines_in(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const tokenizer::Rune rune = tokenizer::rune_at(text.data() + at);
    const char32_t c = rune.code;
    size_t end = at + rune.size;
    if (between(c, 10, 13) || between(c, 0x1C, 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029) {
      if (c == '\r' && end < text.size() && text[end] == '\n') ++end;
      lines.push_back(text.substr(begin, (keep_ends ? end : at) - begin));
      begin = end;
    }
    at = end;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

}  // namespace cairn::templates
