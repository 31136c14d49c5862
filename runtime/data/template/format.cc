// Python's "%s" % values and "{}".format(values).
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "runtime/data/template/characters.h"
#include "runtime/data/template/run.h"
#include "runtime/data/tokenizer/unicode/utf8.h"

namespace cairn::templates {
namespace {

constexpr int kMostWidth = 1 << 20, kMostPrecision = 300;

// How one value is written.
struct Spec {
  std::string fill = " ";
  char align = 0;  // < > = ^; 0: as the kind of value has it
  char sign = '-';
  bool alternate = false, comma = false;
  int width = 0, precision = -1;
  char type = 0;
};

std::string grouped(std::string digits) {
  const size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
  for (size_t at = whole; at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string aligned(const Spec& spec, const std::string& sign, const std::string& text, char align) {
  const int64_t missing = spec.width - characters_in(text) - characters_in(sign);
  if (missing <= 0) return sign + text;
  const auto pad = [&](int64_t count) {
    std::string made;
    for (int64_t i = 0; i < count; ++i) made += spec.fill;
    return made;
  };
  if (align == '=') return sign + pad(missing) + text;
  const int64_t left = align == '>' ? missing : align == '^' ? missing / 2 : 0;
  return pad(left) + sign + text + pad(missing - left);
}

std::string sign_of(const Spec& spec, bool minus) {
  return minus ? "-" : spec.sign == '+' ? "+" : spec.sign == ' ' ? " " : "";
}

std::string whole_number(const Spec& spec, int64_t number) {
  const auto magnitude = number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
  std::string digits;
  std::string prefix;
  const int base = spec.type == 'x' || spec.type == 'X' ? 16
                   : spec.type == 'o'                   ? 8
                   : spec.type == 'b'                   ? 2
                                                        : 10;
  for (uint64_t rest = magnitude; rest > 0 || digits.empty(); rest /= static_cast<uint64_t>(base))
    digits.insert(digits.begin(), "0123456789abcdef"[rest % static_cast<uint64_t>(base)]);
  if (spec.alternate && base != 10) prefix = cat("0", std::string(1, spec.type == 'X' ? 'x' : spec.type));
  if (spec.precision > static_cast<int>(digits.size()))
    digits.insert(0, static_cast<size_t>(spec.precision) - digits.size(), '0');
  if (spec.comma) digits = grouped(digits);
  if (spec.type == 'X') {
    digits = in_case(digits, Case::kUpper);
    prefix = in_case(prefix, Case::kUpper);
  }
  return aligned(spec, sign_of(spec, number < 0) + prefix, digits, spec.align != 0 ? spec.align : '>');
}

std::string real_number(const Spec& spec, double number) {
  const bool minus = std::signbit(number) && !std::isnan(number);
  std::string digits;
  if (!std::isfinite(number)) {
    digits = std::isnan(number) ? "nan" : "inf";
    if (spec.type == 'E' || spec.type == 'F' || spec.type == 'G') digits = in_case(digits, Case::kUpper);
  } else if (spec.type == 0 && spec.precision < 0) {
    digits = float_text(std::fabs(number));
  } else {
    const char type = spec.type == 0 ? 'g' : spec.type == '%' ? 'f' : spec.type;
    const std::string way = cat(spec.alternate ? "%#" : "%", ".*", std::string(1, type));
    char text[1024];
    const double shown = std::fabs(number) * (spec.type == '%' ? 100 : 1);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    std::snprintf(text, sizeof(text), way.c_str(), spec.precision < 0 ? 6 : spec.precision, shown);
#pragma GCC diagnostic pop
    digits = text;
    if (spec.type == '%') digits += '%';
  }
  if (spec.comma) digits = grouped(digits);
  return aligned(spec, sign_of(spec, minus), digits, spec.align != 0 ? spec.align : '>');
}

std::string text_value(const Spec& spec, std::string text) {
  if (spec.precision >= 0) text.resize(byte_of(text, spec.precision));
  return aligned(spec, "", text, spec.align != 0 ? spec.align : '<');
}

class Percent {
 public:
  Percent(Run& run, const Value& format, const Value& given)
      : run_(run),
        safe_(format.safe()),
        text_(format.text()),
        given_(given),
        several_(given.is(Kind::kTuple)) {}

  std::string made() {
    std::string out;
    while (at_ < text_.size()) {
      if (text_[at_] != '%') {
        out += text_[at_++];
        continue;
      }
      ++at_;
      if (peek() == '%') {
        out += text_[at_++];
        continue;
      }
      out += one();
      run_.meter.step(1 + out.size() / 65536);
      require(out.size() <= Meter::kMostBytes, Code::kUnsupported, "'%' makes more than ", Meter::kMostBytes,
              " bytes");
    }
    const bool all = several_ ? used_ == given_.items().size()
                              : used_ == 1 || mapped_ || given_.undefined() || given_.is(Kind::kDict) ||
                                    given_.is(Kind::kRange) || given_.is(Kind::kList);
    if (!all) wrong("'%': not all values are written");
    return out;
  }

 private:
  Run& run_;
  bool safe_;
  std::string_view text_;
  const Value& given_;
  bool several_, mapped_ = false;
  size_t at_ = 0, used_ = 0;

  char peek() const { return at_ < text_.size() ? text_[at_] : 0; }

  Value next() {
    if (several_) {
      if (used_ >= given_.items().size()) wrong("'%': there are too few values");
      return given_.items()[used_++];
    }
    if (used_++ > 0) wrong("'%': there are too few values");
    return given_;
  }

  int number() {
    if (peek() == '*') {
      ++at_;
      const Value value = next();
      if (!value.whole()) wrong("'%': '*' wants a whole number");
      return static_cast<int>(std::clamp<int64_t>(value.integer(), -kMostWidth, kMostWidth));
    }
    int made = 0;
    while (peek() >= '0' && peek() <= '9') made = std::min(made * 10 + (text_[at_++] - '0'), kMostWidth);
    return made;
  }

  std::string one() {
    Spec spec;
    Value value;
    bool keyed = false;
    if (peek() == '(') {
      const size_t end = text_.find(')', at_);
      if (end == std::string_view::npos) wrong("'%': a name has no end");
      if (!given_.is(Kind::kDict)) wrong("'%': names want a mapping");
      const Value* found = given_.dict().find(text_.substr(at_ + 1, end - at_ - 1));
      if (found == nullptr) wrong("'%': there is no value '", text_.substr(at_ + 1, end - at_ - 1), "'");
      value = *found;
      at_ = end + 1;
      mapped_ = keyed = true;
    }
    bool left = false, zero = false;
    for (; peek() != 0 && std::string_view("-+ #0").find(peek()) != std::string_view::npos; ++at_) {
      if (peek() == '-') left = true;
      if (peek() == '0') zero = true;
      if (peek() == '#') spec.alternate = true;
      if (peek() == '+' || (peek() == ' ' && spec.sign != '+')) spec.sign = peek();
    }
    spec.width = number();
    if (spec.width < 0) {
      left = true;
      spec.width = -spec.width;
    }
    if (peek() == '.') {
      ++at_;
      spec.precision = std::clamp(number(), 0, kMostPrecision);
    }
    while (peek() == 'l' || peek() == 'h' || peek() == 'L') ++at_;
    const char type = peek();
    if (type == 0) wrong("'%': the format has no end");
    ++at_;
    if (!keyed) value = next();
    spec.align = left ? '<' : '>';
    return written(spec, type, value, zero && !left);
  }

  std::string written(Spec& spec, char type, const Value& value, bool zero) {
    if (type == 's' || type == 'r' || type == 'a') {
      std::string text = type == 's' ? printed(value) : shown(value);
      if (safe_ && !value.safe()) text = html_escaped(text);
      return text_value(spec, std::move(text));
    }
    if (type == 'c') {
      if (value.is_text() && value.text_object().length == 1) return text_value(spec, value.text());
      if (!value.whole() || value.integer() < 0 || value.integer() > 0x10FFFF ||
          (value.integer() >= 0xD800 && value.integer() < 0xE000))
        wrong("'%c' wants a character");
      std::string text;
      tokenizer::append_rune(text, static_cast<char32_t>(value.integer()));
      return text_value(spec, std::move(text));
    }
    if (zero) {
      spec.fill = "0";
      spec.align = '=';
    }
    if (value.undefined()) wrong(value.text());
    if (!value.number())
      wrong("'%", std::string(1, type), "' wants a number, not a value of the type ", type_name(value));
    if (type == 'd' || type == 'i' || type == 'u') {
      if (!value.whole() && !(std::fabs(value.real()) < 9.2e18)) wrong("'%d': the number is beyond 64 bits");
      return whole_number(spec, value.whole() ? value.integer() : static_cast<int64_t>(value.real()));
    }
    spec.type = type;
    if (type == 'x' || type == 'X' || type == 'o') {
      if (!value.whole()) wrong("'%", std::string(1, type), "' wants a whole number");
      return whole_number(spec, value.integer());
    }
    if (std::string_view("eEfFgG").find(type) == std::string_view::npos)
      wrong("'%': there is no format '", std::string(1, type), "'");
    return real_number(spec, value.real());
  }
};

std::string by_spec(std::string_view text, const Value& value) {
  Spec spec;
  const std::string_view all = text;
  const auto aligns = [](std::string_view c) {
    return !c.empty() && std::string_view("<>=^").find(c[0]) != std::string_view::npos;
  };
  const size_t first = text.empty() ? 0 : tokenizer::rune_size(text[0]);
  if (first > 0 && aligns(text.substr(std::min(first, text.size())))) {
    spec.fill = std::string(text.substr(0, first));
    spec.align = text[first];
    text.remove_prefix(first + 1);
  } else if (aligns(text)) {
    spec.align = text[0];
    text.remove_prefix(1);
  }
  const auto skip = [&](std::string_view any) -> char {
    if (text.empty() || any.find(text[0]) == std::string_view::npos) return 0;
    const char c = text[0];
    text.remove_prefix(1);
    return c;
  };
  const auto number = [&](int most) {
    int made = 0;
    while (const char c = skip("0123456789")) made = std::min(made * 10 + (c - '0'), most);
    return made;
  };
  if (const char sign = skip("+- ")) spec.sign = sign;
  spec.alternate = skip("#") != 0;
  if (!text.empty() && text[0] == '0') {
    skip("0");
    if (spec.align == 0) {
      spec.fill = "0";
      spec.align = value.number() ? '=' : '<';
    }
  }
  spec.width = number(kMostWidth);
  spec.comma = skip(",") != 0;
  if (skip(".") != 0) spec.precision = number(kMostPrecision);
  spec.type = skip("bdeEfFgGosxX%");
  if (!text.empty()) fail(Code::kUnsupported, "format(): '", all, "' is not supported");
  if (value.is_text() || spec.type == 's') {
    if (!value.is_text())
      wrong("format(): '", all, "' is not possible for a value of the type ", type_name(value));
    return text_value(spec, value.text());
  }
  if (!value.number()) {
    if (!all.empty())
      wrong("format(): '", all, "' is not possible for a value of the type ", type_name(value));
    return printed(value);
  }
  if (value.is(Kind::kBool) && all.empty()) return printed(value);
  const bool as_real =
      spec.type != 0 && std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
  if (value.whole() && !as_real) return whole_number(spec, value.integer());
  if (!as_real && spec.type != 0) wrong("format(): '", all, "' is not possible for a float");
  return real_number(spec, value.real());
}

}  // namespace

Value percent(Run& run, const Value& format, const Value& given) {
  run.meter.step(weight_of(given));
  return run.text(Percent(run, format, given).made(), format.safe());
}

std::string formatted(Run& run, std::string_view format, const Arguments& given) {
  std::string out;
  size_t automatic = 0;
  for (size_t at = 0; at < format.size(); ++at) {
    const char c = format[at];
    if (c != '{' && c != '}') {
      out += c;
      continue;
    }
    if (at + 1 < format.size() && format[at + 1] == c) {
      out += c;
      ++at;
      continue;
    }
    const size_t end = format.find('}', at);
    if (c == '}' || end == std::string_view::npos) wrong("format(): a single '", std::string(1, c), "'");
    std::string_view field = format.substr(at + 1, end - at - 1), spec;
    if (field.find('{') != std::string_view::npos)
      fail(Code::kUnsupported, "format(): fields within fields are not supported");
    if (const size_t colon = field.find(':'); colon != std::string_view::npos) {
      spec = field.substr(colon + 1);
      field = field.substr(0, colon);
    }
    char conversion = 0;
    if (field.size() >= 2 && field[field.size() - 2] == '!') {
      conversion = field.back();
      field.remove_suffix(2);
    }
    if (field.find_first_of(".[") != std::string_view::npos)
      fail(Code::kUnsupported, "format(): attributes and elements in fields are not supported");
    const bool number = field.empty() || field.find_first_not_of("0123456789") == std::string_view::npos;
    const Value* value = nullptr;
    if (number) {
      const size_t index =
          field.empty() ? automatic++ : static_cast<size_t>(parsed_integer(field, 10).value_or(-1));
      if (index < given.positional.size()) value = &given.positional[index];
    } else {
      for (const auto& [name, each] : given.named)
        if (name == field) value = &each;
    }
    if (value == nullptr) wrong("format(): there is no value '", field, "'");
    out += conversion == 0 ? by_spec(spec, *value)
                           : by_spec(spec, run.text(conversion == 's' ? printed(*value) : shown(*value)));
    require(out.size() <= Meter::kMostBytes, Code::kUnsupported, "format() makes more than ",
            Meter::kMostBytes, " bytes");
    run.meter.step(1 + weight_of(*value));
    at = end;
  }
  return out;
}

}  // namespace cairn::templates
