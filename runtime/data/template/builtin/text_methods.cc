// Methods of Python's str.
#include <algorithm>

#include "runtime/data/template/builtin/methods.h"
#include "runtime/data/template/characters.h"
#include "runtime/data/template/search.h"
#include "runtime/data/tokenizer/unicode/utf8.h"

namespace cairn::templates {
namespace {

const std::string& text_argument(const Given& given, size_t index) {
  const Value& value = given[index];
  if (value.undefined()) wrong(value.text());
  if (!value.is_text()) wrong("an argument must be a string, not of the type ", type_name(value));
  return value.text();
}

template <Case kCase>
Value cased(Run& run, const Value& self, Given&) {
  return run.text(in_case(self.text(), kCase), self.safe());
}

template <bool kLeft, bool kRight>
Value strip(Run& run, const Value& self, Given& given) {
  const bool all = given[0].none_or_missing();
  const std::string_view set = all ? std::string_view() : std::string_view(text_argument(given, 0));
  return run.text(std::string(stripped(self.text(), all ? nullptr : &set, kLeft, kRight)), self.safe());
}

// The part of the text between two places that count characters, as Python's optional start and end.
std::string_view part_of(const Value& self, const Given& given, size_t first, int64_t& begin) {
  const Text& text = self.text_object();
  const auto place = [&](size_t index, int64_t otherwise) {
    if (index >= given.values.size() || given[index].none_or_missing()) return otherwise;
    const int64_t at = given.integer(index, 0);
    return at < 0 ? std::max<int64_t>(at + text.length, 0) : at;
  };
  begin = place(first, 0);
  const int64_t end = std::min(place(first + 1, text.length), text.length);
  if (begin > end) return {nullptr, 0};
  const size_t from = byte_of(text.bytes, begin), to = byte_of(text.bytes, end);
  return std::string_view(text.bytes).substr(from, to - from);
}

template <bool kEnd>
Value begins(Run&, const Value& self, Given& given) {
  int64_t begin = 0;
  const std::string_view text = part_of(self, given, 1, begin);
  const auto fits = [&](const Value& part) {
    if (!part.is_text())
      wrong("startswith() and endswith() take a string or a tuple of strings, not ", type_name(part));
    return text.data() != nullptr && (kEnd ? text.ends_with(part.text()) : text.starts_with(part.text()));
  };
  if (!given[0].is(Kind::kTuple)) {
    if (given[0].undefined()) wrong(given[0].text());
    return Value::boolean(fits(given[0]));
  }
  return Value::boolean(std::any_of(given[0].items().begin(), given[0].items().end(), fits));
}

template <bool kLast, bool kMust>
Value find(Run&, const Value& self, Given& given) {
  int64_t begin = 0;
  const std::string_view text = part_of(self, given, 1, begin);
  const std::string& part = text_argument(given, 0);
  const size_t at = text.data() == nullptr ? std::string_view::npos
                    : kLast                ? found_last(text, part)
                                           : found_at(text, part, 0);
  if (at == std::string_view::npos && kMust) wrong("index(): the string is not there");
  return Value::integer(at == std::string_view::npos ? -1 : begin + characters_in(text.substr(0, at)));
}

Value count(Run&, const Value& self, Given& given) {
  int64_t begin = 0, found = 0;
  const std::string_view text = part_of(self, given, 1, begin);
  const std::string& part = text_argument(given, 0);
  if (text.data() == nullptr) return Value::integer(0);
  if (part.empty()) return Value::integer(characters_in(text) + 1);
  for (size_t at = 0; (at = found_at(text, part, at)) != std::string_view::npos; at += part.size()) ++found;
  return Value::integer(found);
}

Value replace(Run& run, const Value& self, Given& given) {
  const std::string& old = text_argument(given, 0);
  const std::string fresh =
      self.safe() && !given[1].safe() ? html_escaped(text_argument(given, 1)) : text_argument(given, 1);
  return run.text(replaced(run, self.text(), old, fresh, given.integer(2, -1)), self.safe());
}

Value as_list(Run& run, const std::vector<std::string_view>& parts, bool safe) {
  run.meter.step(parts.size());
  std::vector<Value> values;
  for (const std::string_view part : parts) values.push_back(run.text(std::string(part), safe));
  return run.list(std::move(values));
}

std::vector<std::string_view> by_space(std::string_view text, int64_t most, bool from_right) {
  std::vector<std::string_view> parts;
  text = stripped(text, nullptr, true, true);
  while (!text.empty()) {
    if (most == 0) {
      parts.push_back(text);
      break;
    }
    --most;
    size_t cut = from_right ? text.size() : 0;
    while (from_right ? cut > 0 : cut < text.size()) {
      const tokenizer::Rune rune = from_right ? tokenizer::rune_before(text.data(), text.data() + cut)
                                              : tokenizer::rune_at(text.data() + cut);
      if (is_space(rune.code)) break;
      cut = from_right ? cut - rune.size : cut + rune.size;
    }
    parts.push_back(from_right ? text.substr(cut) : text.substr(0, cut));
    text = from_right ? stripped(text.substr(0, cut), nullptr, false, true)
                      : stripped(text.substr(cut), nullptr, true, false);
  }
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

template <bool kRight>
Value split(Run& run, const Value& self, Given& given) {
  const std::string_view text = self.text();
  int64_t most = given.integer(1, -1);
  if (given[0].none_or_missing()) return as_list(run, by_space(text, most, kRight), self.safe());
  const std::string& by = text_argument(given, 0);
  if (by.empty()) wrong("split(): the separator is empty");
  std::vector<std::string_view> parts;
  std::string_view rest = text;
  if (kRight && most >= 0) {
    for (; most > 0; --most) {
      run.meter.step(rest.size() / 64);
      const size_t at = found_last(rest, by);
      if (at == std::string_view::npos) break;
      parts.push_back(rest.substr(at + by.size()));
      rest = rest.substr(0, at);
    }
    parts.push_back(rest);
    std::reverse(parts.begin(), parts.end());
    return as_list(run, parts, self.safe());
  }
  size_t begin = 0;
  for (size_t at; most != 0 && (at = found_at(text, by, begin)) != std::string_view::npos; --most) {
    parts.push_back(text.substr(begin, at - begin));
    begin = at + by.size();
  }
  parts.push_back(text.substr(begin));
  return as_list(run, parts, self.safe());
}

template <bool kLast>
Value partition(Run& run, const Value& self, Given& given) {
  const std::string& by = text_argument(given, 0);
  if (by.empty()) wrong("partition(): the separator is empty");
  const std::string_view text = self.text();
  const size_t at = kLast ? found_last(text, by) : found_at(text, by, 0);
  const auto made = [&](std::string_view part) { return run.text(std::string(part), self.safe()); };
  if (at == std::string_view::npos)
    return kLast ? run.tuple({made(""), made(""), made(text)}) : run.tuple({made(text), made(""), made("")});
  return run.tuple({made(text.substr(0, at)), made(by), made(text.substr(at + by.size()))});
}

Value lines(Run& run, const Value& self, Given& given) {
  return as_list(run, lines_in(self.text(), given.flag(0)), self.safe());
}

Value join(Run& run, const Value& self, Given& given) {
  std::string made;
  bool first = true;
  for (const Value& each : run.each(given[0])) {
    if (!each.is_text()) wrong("join(): an item is no string but of the type ", type_name(each));
    if (!first) made += self.text();
    first = false;
    made += self.safe() && !each.safe() ? html_escaped(each.text()) : each.text();
  }
  return run.text(std::move(made), self.safe());
}

template <int kWhere>  // 0: ljust, 1: center, 2: rjust
Value pad(Run& run, const Value& self, Given& given) {
  const std::string fill = given[1].missing() ? " " : text_argument(given, 1);
  if (characters_in(fill) != 1) wrong("the fill must be one character");
  const int64_t width = given.integer(0, 0), missing = width - self.text_object().length;
  if (missing <= 0) return self;
  require(missing <= (int64_t{1} << 24), Code::kUnsupported, "a text is padded to ", width, " characters");
  const int64_t left = kWhere == 0 ? 0 : kWhere == 2 ? missing : missing / 2 + (missing & width & 1);
  std::string made;
  for (int64_t i = 0; i < left; ++i) made += fill;
  made += self.text();
  for (int64_t i = left; i < missing; ++i) made += fill;
  return run.text(std::move(made), self.safe());
}

Value zfill(Run& run, const Value& self, Given& given) {
  const int64_t missing = given.integer(0, 0) - self.text_object().length;
  if (missing <= 0) return self;
  require(missing <= (int64_t{1} << 24), Code::kUnsupported, "zfill() of ", missing, " characters");
  const std::string& text = self.text();
  const size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+');
  return run.text(text.substr(0, sign) + std::string(static_cast<size_t>(missing), '0') + text.substr(sign),
                  self.safe());
}

template <bool kSuffix>
Value without(Run& run, const Value& self, Given& given) {
  const std::string &text = self.text(), &part = text_argument(given, 0);
  if (!(kSuffix ? text.ends_with(part) : text.starts_with(part))) return self;
  return run.text(kSuffix ? text.substr(0, text.size() - part.size()) : text.substr(part.size()),
                  self.safe());
}

Value expandtabs(Run& run, const Value& self, Given& given) {
  const int64_t size = std::min<int64_t>(given.integer(0, 8), 1000);
  std::string made;
  int64_t column = 0;
  for (const char32_t c : runes_of(self.text())) {
    if (c == '\t') {
      const int64_t spaces = size > 0 ? size - column % size : 0;
      made.append(static_cast<size_t>(spaces), ' ');
      column += spaces;
    } else {
      tokenizer::append_rune(made, c);
      column = c == '\n' || c == '\r' ? 0 : column + 1;
    }
  }
  return run.text(std::move(made), self.safe());
}

template <bool (*kIs)(char32_t), bool kEmpty = false>
Value all_are(Run&, const Value& self, Given&) {
  const std::u32string runes = runes_of(self.text());
  return Value::boolean(runes.empty() ? kEmpty : std::all_of(runes.begin(), runes.end(), kIs));
}
bool is_alnum(char32_t c) { return is_letter(c) || is_decimal(c) || is_digit(c) || is_numeric(c); }
bool is_ascii(char32_t c) { return c < 0x80; }

template <bool (*kWanted)(char32_t)>
Value cased_all(Run&, const Value& self, Given&) {
  bool any = false;
  for (const char32_t c : runes_of(self.text())) {
    if (is_cased(c) && !kWanted(c)) return Value::boolean(false);
    any = any || is_cased(c);
  }
  return Value::boolean(any);
}

Value istitle(Run&, const Value& self, Given&) {
  bool any = false, inside = false;
  for (const char32_t c : runes_of(self.text())) {
    if (is_cased(c)) {
      if (is_lower(c) != inside) return Value::boolean(false);
      any = true;
    }
    inside = is_cased(c);
  }
  return Value::boolean(any);
}

Value isidentifier(Run&, const Value& self, Given&) {
  const std::u32string runes = runes_of(self.text());
  const bool good = !runes.empty() && (runes[0] == '_' || is_letter(runes[0]));
  return Value::boolean(good && std::all_of(runes.begin(), runes.end(), is_word));
}

Value format(Run& run, const Value& self, Given& given) {
  if (self.safe()) fail(Code::kUnsupported, "format() of a text that is marked safe is not supported");
  return run.text(formatted(run, self.text(), given));
}

}  // namespace

const Row kTextMethods[] = {
    {"capitalize", "", cased<Case::kCapital>},
    {"casefold", "", cased<Case::kFold>},
    {"center", "width! fillchar", pad<1>},
    {"count", "sub! start end", count},
    {"endswith", "suffix! start end", begins<true>},
    {"expandtabs", "tabsize", expandtabs},
    {"find", "sub! start end", find<false, false>},
    {"format", "* **", format},
    {"index", "sub! start end", find<false, true>},
    {"isalnum", "", all_are<is_alnum>},
    {"isalpha", "", all_are<is_letter>},
    {"isascii", "", all_are<is_ascii, true>},
    {"isdecimal", "", all_are<is_decimal>},
    {"isdigit", "", all_are<is_digit>},
    {"isidentifier", "", isidentifier},
    {"islower", "", cased_all<is_lower>},
    {"isnumeric", "", all_are<is_numeric>},
    {"isprintable", "", all_are<is_printable, true>},
    {"isspace", "", all_are<is_space>},
    {"istitle", "", istitle},
    {"isupper", "", cased_all<is_upper>},
    {"join", "iterable!", join},
    {"ljust", "width! fillchar", pad<0>},
    {"lower", "", cased<Case::kLower>},
    {"lstrip", "chars", strip<true, false>},
    {"partition", "sep!", partition<false>},
    {"removeprefix", "prefix!", without<false>},
    {"removesuffix", "suffix!", without<true>},
    {"replace", "old! new! count", replace},
    {"rfind", "sub! start end", find<true, false>},
    {"rindex", "sub! start end", find<true, true>},
    {"rjust", "width! fillchar", pad<2>},
    {"rpartition", "sep!", partition<true>},
    {"rsplit", "sep maxsplit", split<true>},
    {"rstrip", "chars", strip<false, true>},
    {"split", "sep maxsplit", split<false>},
    {"splitlines", "keepends", lines},
    {"startswith", "prefix! start end", begins<false>},
    {"strip", "chars", strip<true, true>},
    {"swapcase", "", cased<Case::kSwap>},
    {"title", "", cased<Case::kTitle>},
    {"upper", "", cased<Case::kUpper>},
    {"zfill", "width!", zfill},
};
const size_t kTextMethodCount = std::size(kTextMethods);

std::string replaced(Run& run, std::string_view text, std::string_view old, std::string_view fresh,
                     int64_t most) {
  std::string made;
  const auto room = [&] {
    require(made.size() <= Meter::kMostBytes, Code::kUnsupported, "replace() makes more than ",
            Meter::kMostBytes, " bytes");
    run.meter.step();
  };
  size_t begin = 0;
  if (old.empty()) {
    while (most != 0) {
      made += fresh;
      room();
      --most;
      if (begin >= text.size()) return made;
      const size_t size = tokenizer::rune_size(text[begin]);
      made += text.substr(begin, size);
      begin += size;
    }
    return made.append(text.substr(begin));
  }
  for (size_t at; most != 0 && (at = found_at(text, old, begin)) != std::string_view::npos; --most) {
    made.append(text.substr(begin, at - begin)).append(fresh);
    begin = at + old.size();
    room();
  }
  return made.append(text.substr(begin));
}

}  // namespace cairn::templates
