// Filters of texts and of single values.
#include <algorithm>
#include <cmath>

#include "runtime/data/template/builtin/filters.h"
#include "runtime/data/template/builtin/methods.h"
#include "runtime/data/template/characters.h"
#include "runtime/data/tokenizer/unicode/utf8.h"

namespace cairn::templates {
namespace {

// What soft_str makes of a value: a text stays what it is.
Value soft(Run& run, const Value& value) { return value.is_text() ? value : run.text(printed(value)); }

template <Case kCase>
Value cased(Run& run, const Value& value, Given&) {
  const Value text = soft(run, value);
  return run.text(in_case(text.text(), kCase), text.safe());
}

// Words begin after white space and after - ( { [ <.
Value title(Run& run, const Value& value, Given&) {
  const std::u32string runes = runes_of(soft(run, value).text());
  constexpr std::u32string_view kOpening = U"-({[<";
  std::string made, word;
  const auto flush = [&] {
    const size_t first = word.empty() ? 0 : tokenizer::rune_size(word[0]);
    made += in_case(std::string_view(word).substr(0, first), Case::kUpper);
    made += in_case(std::string_view(word).substr(first), Case::kLower);
    word.clear();
  };
  bool parting = false;
  for (const char32_t c : runes) {
    const bool parts = is_space(c) || kOpening.find(c) != std::u32string_view::npos;
    if (parts != parting) flush();
    parting = parts;
    tokenizer::append_rune(word, c);
  }
  flush();
  return run.text(std::move(made));
}

Value trim(Run& run, const Value& value, Given& given) {
  const Value text = soft(run, value);
  if (!given[0].none_or_missing() && !given[0].is_text()) wrong("trim: the characters are no string");
  const std::string_view set = given[0].is_text() ? std::string_view(given[0].text()) : std::string_view();
  return run.text(std::string(stripped(text.text(), given[0].is_text() ? &set : nullptr, true, true)),
                  text.safe());
}

Value replace(Run& run, const Value& value, Given& given) {
  const int64_t most = given[2].none_or_missing() ? -1 : given.integer(2, -1);
  return run.text(replaced(run, printed(value), printed(given[0]), printed(given[1]), most));
}

Value string(Run& run, const Value& value, Given&) { return soft(run, value); }
Value safe(Run& run, const Value& value, Given&) { return run.text(printed(value), true); }
Value escape(Run& run, const Value& value, Given&) {
  return value.safe() ? value : run.text(html_escaped(printed(value)), true);
}
Value force_escape(Run& run, const Value& value, Given&) {
  return run.text(html_escaped(printed(value)), true);
}

Value indent(Run& run, const Value& value, Given& given) {
  if (value.undefined()) wrong(value.text());
  if (!value.is_text()) wrong("indent: a value of the type ", type_name(value), " is no string");
  const int64_t width = given[0].is_text() ? 0 : std::clamp<int64_t>(given.integer(0, 4), 0, 10000);
  const std::string space =
      given[0].is_text() ? given[0].text() : std::string(static_cast<size_t>(width), ' ');
  const std::string text = value.text() + "\n";
  std::string made;
  bool first = true;
  for (const std::string_view line : lines_in(text, false)) {
    if (!first) made += '\n';
    if (first ? given.flag(1) : given.flag(2) || !line.empty()) made += space;
    first = false;
    made += line;
    run.meter.step(1 + made.size() / (size_t{1} << 20));
  }
  return run.text(std::move(made), value.safe());
}

Value truncate(Run& run, const Value& value, Given& given) {
  const int64_t length = given.integer(0, 255), leeway = given[3].none_or_missing() ? 5 : given.integer(3, 5);
  const std::string end = given[2].missing() ? "..." : printed(given[2]);
  if (length < characters_in(end) || leeway < 0) wrong("truncate: the length is below that of the end");
  if (run.length(value) <= length + leeway) return value;
  if (!value.is_text()) wrong("truncate: a value of the type ", type_name(value), " is no string");
  std::string_view kept =
      std::string_view(value.text()).substr(0, byte_of(value.text(), length - characters_in(end)));
  if (!given.flag(1)) kept = kept.substr(0, std::min(kept.rfind(' '), kept.size()));
  return run.text(cat(kept, end), value.safe());
}

Value center(Run& run, const Value& value, Given& given) {
  Arguments width;
  width.positional.push_back(Value::integer(given.integer(0, 80)));
  return run.call(run.attribute(soft(run, value), "center"), std::move(width));
}

Value format(Run& run, const Value& value, Given& given) {
  if (!given.positional.empty() && !given.named.empty())
    wrong("format: values by place and by name together");
  if (given.named.empty()) return percent(run, soft(run, value), run.tuple(std::move(given.positional)));
  Pairs pairs;
  for (auto& [name, each] : given.named) pairs.add(run.text(name), each);
  return percent(run, soft(run, value), run.dict(pairs.take()));
}

Value word_count(Run& run, const Value& value, Given&) {
  int64_t words = 0;
  bool inside = false;
  for (const char32_t c : runes_of(soft(run, value).text())) {
    words += is_word(c) && !inside;
    inside = is_word(c);
  }
  return Value::integer(words);
}

std::string quoted(std::string_view text, std::string_view plain) {
  std::string made;
  for (const char c : text) {
    const bool kept = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      plain.find(c) != std::string_view::npos;
    constexpr std::string_view kHex = "0123456789ABCDEF";
    const auto byte = static_cast<uint8_t>(c);
    if (kept)
      made += c;
    else
      made.append({'%', kHex[byte >> 4], kHex[byte & 15]});
  }
  return made;
}
std::string in_query(const Value& value) {
  std::string made = quoted(printed(value), "_.-~ ");
  std::replace(made.begin(), made.end(), ' ', '+');
  return made;
}
Value urlencode(Run& run, const Value& value, Given&) {
  if (value.is_text() || value.number() || value.is(Kind::kNone))
    return run.text(quoted(printed(value), "_.-~/"));
  std::string made;
  for (const Value& each : value.is(Kind::kDict) ? pairs_as_tuples(run, value.dict()) : run.each(value)) {
    const std::vector<Value> two = run.each(each);
    if (two.size() != 2) wrong("urlencode: pairs are awaited");
    made += (made.empty() ? "" : "&") + in_query(two[0]) + "=" + in_query(two[1]);
  }
  return run.text(std::move(made));
}

Value json(Run& run, const Value& value, Given& given) {
  return run.text(as_json(value, given.flag(0), given[1], given[2], given.flag(3)));
}

Value otherwise(Run& run, const Value& value, Given& given) {
  if (!value.undefined() && !(given.flag(1) && !value.truth())) return value;
  return given[0].missing() ? run.text("") : given[0];
}

Value whole_of(double number) {
  if (!std::isfinite(number)) return Value();
  require(std::fabs(number) < 9.2e18, Code::kUnsupported, "a number is beyond 64 bits");
  return Value::integer(static_cast<int64_t>(number));
}

Value as_integer(Run&, const Value& value, Given& given) {
  if (value.undefined()) wrong(value.text());
  const Value other = given[0].missing() ? Value::integer(0) : given[0];
  if (value.whole()) return Value::integer(value.integer());
  if (value.is(Kind::kFloat)) {
    if (std::isinf(value.real())) wrong("int: infinity is no whole number");
    const Value made = whole_of(value.real());
    return made.missing() ? other : made;
  }
  if (!value.is_text()) return other;
  if (const auto number = parsed_integer(value.text(), static_cast<int>(given.integer(1, 10))))
    return Value::integer(*number);
  const auto real = parsed_real(value.text());
  const Value made = real ? whole_of(*real) : Value();
  return made.missing() ? other : made;
}

Value as_real(Run&, const Value& value, Given& given) {
  if (value.undefined()) wrong(value.text());
  if (value.number()) return Value::real(value.real());
  const auto number = value.is_text() ? parsed_real(value.text()) : std::nullopt;
  return number ? Value::real(*number) : given[0].missing() ? Value::real(0) : given[0];
}

Value absolute(Run&, const Value& value, Given&) {
  if (value.undefined()) wrong(value.text());
  if (!value.number()) wrong("abs: a value of the type ", type_name(value));
  if (!value.whole()) return Value::real(std::fabs(value.real()));
  return value.integer() < 0 ? negated(value, true) : Value::integer(value.integer());
}

// Python's round(): the nearest decimal, ties of the binary number to even.
Value rounded(const Value& value, int64_t digits) {
  if (value.whole() && digits >= 0) return Value::integer(value.integer());
  digits = std::clamp<int64_t>(digits, -400, 400);
  char text[1024];
  const double scale = std::pow(10.0, static_cast<double>(-digits));
  if (digits >= 0) {
    std::snprintf(text, sizeof(text), "%.*f", static_cast<int>(digits), value.real());
    return Value::real(std::strtod(text, nullptr));
  }
  const double made = std::isfinite(scale) ? std::nearbyint(value.real() / scale) * scale : 0;
  return value.whole() ? Value::integer(static_cast<int64_t>(made)) : Value::real(made);
}

Value round_to(Run&, const Value& value, Given& given) {
  if (value.undefined()) wrong(value.text());
  if (!value.number()) wrong("round: a value of the type ", type_name(value));
  const std::string method = given[1].missing() ? "common" : printed(given[1]);
  const int64_t digits = given.integer(0, 0);
  if (method == "common") return rounded(value, digits);
  if (method != "ceil" && method != "floor")
    wrong("round: the method is common, ceil or floor, not ", method);
  const double scale = std::pow(10.0, static_cast<double>(digits)), scaled = value.real() * scale;
  return Value::real((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

Value attribute(Run& run, const Value& value, Given& given) {
  if (value.undefined()) wrong(value.text());
  const std::string name = printed(given[0]);
  return value.is(Kind::kDict) && find_method(value, name) == nullptr
             ? run.undefined(cat("a dict has no attribute '", name, "'"))
             : run.attribute(value, name);
}

}  // namespace

const Row kTextFilters[] = {
    {"abs", "", absolute},
    {"attr", "name!", attribute},
    {"capitalize", "", cased<Case::kCapital>},
    {"center", "width", center},
    {"d", "default_value boolean", otherwise},
    {"default", "default_value boolean", otherwise},
    {"e", "", escape},
    {"escape", "", escape},
    {"float", "default", as_real},
    {"forceescape", "", force_escape},
    {"format", "* **", format},
    {"indent", "width first blank", indent},
    {"int", "default base", as_integer},
    {"lower", "", cased<Case::kLower>},
    {"replace", "old! new! count", replace},
    {"round", "precision method", round_to},
    {"safe", "", safe},
    {"string", "", string},
    {"title", "", title},
    {"tojson", "ensure_ascii indent separators sort_keys", json},
    {"trim", "chars", trim},
    {"truncate", "length killwords end leeway", truncate},
    {"upper", "", cased<Case::kUpper>},
    {"urlencode", "", urlencode},
    {"wordcount", "", word_count},
};
const size_t kTextFilterCount = std::size(kTextFilters);

std::string html_escaped(std::string_view text) {
  std::string made;
  for (const char c : text) {
    constexpr std::pair<char, std::string_view> kNames[] = {
        {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&#34;"}, {'\'', "&#39;"}};
    const auto* row =
        std::find_if(std::begin(kNames), std::end(kNames), [&](const auto& name) { return name.first == c; });
    if (row == std::end(kNames))
      made += c;
    else
      made += row->second;
  }
  return made;
}

}  // namespace cairn::templates
