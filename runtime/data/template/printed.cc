// How Python writes values: str(), repr(), json.dumps().
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "runtime/data/template/characters.h"
#include "runtime/data/template/run.h"
#include "runtime/data/tokenizer/unicode/utf8.h"

namespace cairn::templates {
namespace {

constexpr size_t kMostText = size_t{1} << 26;

void append_hex(std::string& to, char mark, int width, uint32_t code) {
  char digits[16];
  std::snprintf(digits, sizeof(digits), "%0*x", width, code);
  to += '\\';
  to += mark;
  to += digits;
}

void write(std::string& to, const Value& value, bool top);

void write_list(std::string& to, std::string_view begin, const std::vector<Value>& values,
                std::string_view end) {
  to += begin;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) to += ", ";
    write(to, values[i], false);
  }
  to += end;
}

void write_dict(std::string& to, const Dict& dict) {
  to += '{';
  for (size_t i = 0; i < dict.pairs.size(); ++i) {
    if (i > 0) to += ", ";
    write(to, dict.pairs[i].first, false);
    to += ": ";
    write(to, dict.pairs[i].second, false);
  }
  to += '}';
}

void write_range(std::string& to, const std::vector<Value>& values) {
  const auto at = [&](size_t i) { return values[i].integer(); };
  const int64_t begin = values.empty() ? 0 : at(0), step = values.size() < 2 ? 1 : at(1) - at(0);
  to += cat("range(", begin, ", ", values.empty() ? 0 : at(values.size() - 1) + step,
            step == 1 ? "" : cat(", ", step), ")");
}

void write(std::string& to, const Value& value, bool top) {
  require(to.size() <= kMostText, Code::kUnsupported, "a value's text has more than ", kMostText, " bytes");
  switch (value.kind()) {
    case Kind::kMissing:
      break;
    case Kind::kUndefined:
      to += top ? "" : "Undefined";
      break;
    case Kind::kNone:
      to += "None";
      break;
    case Kind::kBool:
      to += value.integer() != 0 ? "True" : "False";
      break;
    case Kind::kInt:
      to += std::to_string(value.integer());
      break;
    case Kind::kFloat:
      to += float_text(value.real());
      break;
    case Kind::kText:
      to += top            ? value.text()
            : value.safe() ? cat("Markup(", shown_text(value.text()), ")")
                           : shown_text(value.text());
      break;
    case Kind::kList:
      write_list(to, "[", value.items(), "]");
      break;
    case Kind::kTuple:
      write_list(to, "(", value.items(), value.items().size() == 1 ? ",)" : ")");
      break;
    case Kind::kDict:
      write_dict(to, value.dict());
      break;
    case Kind::kView:
      write_list(to, cat(static_cast<const Items*>(value.object())->type, "(["), value.items(), "])");
      break;
    case Kind::kRange:
      write_range(to, value.items());
      break;
    case Kind::kIterator:
      to += cat("<", static_cast<const Items*>(value.object())->type, " object>");
      break;
    case Kind::kNamespace:
      to += "<Namespace>";
      break;
    case Kind::kLoop: {
      auto* loop = static_cast<Loop*>(value.object());
      to += cat("<LoopContext ", loop->index0 + 1, "/", loop->length(), ">");
      break;
    }
    case Kind::kFunction:
      to += static_cast<const Function*>(value.object())->shown();
      break;
  }
}

class Json {
 public:
  Json(bool ascii, const Value& indent, const Value& separators, bool sorted)
      : ascii_(ascii), sorted_(sorted) {
    lines_ = !indent.none_or_missing();
    if (indent.is_text()) {
      indent_ = indent.text();
    } else if (lines_) {
      if (!indent.whole()) wrong("tojson: indent is of the type ", type_name(indent));
      indent_ = std::string(static_cast<size_t>(std::clamp<int64_t>(indent.integer(), 0, 1000)), ' ');
    }
    if (lines_) item_ = ",";
    if (separators.none_or_missing()) return;
    const bool right = (separators.is(Kind::kTuple) || separators.is(Kind::kList)) &&
                       separators.items().size() == 2 && separators.items()[0].is_text() &&
                       separators.items()[1].is_text();
    if (!right) wrong("tojson: separators are two strings");
    item_ = separators.items()[0].text();
    key_ = separators.items()[1].text();
  }

  std::string made(const Value& value) {
    write(value, 0);
    return std::move(out_);
  }

 private:
  std::string out_, indent_, item_ = ", ", key_ = ": ";
  bool ascii_, sorted_, lines_ = false;

  void line(size_t depth) {
    if (!lines_) return;
    out_ += '\n';
    for (size_t i = 0; i < depth; ++i) out_ += indent_;
  }

  static std::string number(double real) {
    return std::isnan(real)   ? "NaN"
           : std::isinf(real) ? (real < 0 ? "-Infinity" : "Infinity")
                              : float_text(real);
  }

  void string(std::string_view text) {
    out_ += '"';
    for (size_t at = 0; at < text.size();) {
      const tokenizer::Rune rune = tokenizer::rune_at(text.data() + at);
      constexpr std::string_view kPlain = "\"\\\n\r\t\f\b", kLetters = "\"\\nrtfb";
      const size_t which =
          rune.code < 0x80 ? kPlain.find(static_cast<char>(rune.code)) : std::string_view::npos;
      if (which != std::string_view::npos) {
        out_.append({'\\', kLetters[which]});
      } else if (rune.code < 0x20 || (ascii_ && rune.code > 0x7E && rune.code < 0x10000)) {
        append_hex(out_, 'u', 4, rune.code);
      } else if (ascii_ && rune.code >= 0x10000) {
        append_hex(out_, 'u', 4, 0xD800 + ((rune.code - 0x10000) >> 10));
        append_hex(out_, 'u', 4, 0xDC00 + ((rune.code - 0x10000) & 0x3FF));
      } else {
        out_ += text.substr(at, rune.size);
      }
      at += rune.size;
    }
    out_ += '"';
  }

  void key(const Value& value) {
    switch (value.kind()) {
      case Kind::kText:
        return string(value.text());
      case Kind::kBool:
        return string(value.integer() != 0 ? "true" : "false");
      case Kind::kNone:
        return string("null");
      case Kind::kInt:
        return string(std::to_string(value.integer()));
      case Kind::kFloat:
        return string(number(value.real()));
      default:
        wrong("tojson: a key of the type ", type_name(value), " has no JSON");
    }
  }

  void write(const Value& value, size_t depth) {
    require(out_.size() <= kMostText, Code::kUnsupported, "a value's JSON has more than ", kMostText,
            " bytes");
    switch (value.kind()) {
      case Kind::kNone:
        out_ += "null";
        return;
      case Kind::kBool:
        out_ += value.integer() != 0 ? "true" : "false";
        return;
      case Kind::kInt:
        out_ += std::to_string(value.integer());
        return;
      case Kind::kFloat:
        out_ += number(value.real());
        return;
      case Kind::kText:
        return string(value.text());
      case Kind::kList:
      case Kind::kTuple:
        return block("[]", value.items().size(), depth,
                     [&](size_t i) { write(value.items()[i], depth + 1); });
      case Kind::kDict:
        return dict(value.dict(), depth);
      default:
        wrong("tojson: a value of the type ", type_name(value), " has no JSON",
              value.undefined() ? cat(": ", value.text()) : "");
    }
  }

  template <class Write>
  void block(std::string_view brackets, size_t count, size_t depth, const Write& one) {
    out_ += brackets[0];
    for (size_t i = 0; i < count; ++i) {
      if (i > 0) out_ += item_;
      line(depth + 1);
      one(i);
    }
    if (count > 0) line(depth);
    out_ += brackets[1];
  }

  void dict(const Dict& dict, size_t depth) {
    std::vector<const Pair*> pairs;
    for (const Pair& pair : dict.pairs) pairs.push_back(&pair);
    if (sorted_)
      std::stable_sort(pairs.begin(), pairs.end(),
                       [](auto* a, auto* b) { return compared(a->first, b->first) < 0; });
    block("{}", pairs.size(), depth, [&](size_t i) {
      key(pairs[i]->first);
      out_ += key_;
      write(pairs[i]->second, depth + 1);
    });
  }
};

}  // namespace

std::string shown_text(std::string_view text) {
  const char quote =
      text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string made(1, quote);
  for (size_t at = 0; at < text.size();) {
    const tokenizer::Rune rune = tokenizer::rune_at(text.data() + at);
    const char32_t c = rune.code;
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      made.append({'\\', static_cast<char>(c)});
    } else if (c == '\n' || c == '\r' || c == '\t') {
      made.append({'\\', c == '\n' ? 'n' : c == '\r' ? 'r' : 't'});
    } else if (is_printable(c)) {
      made += text.substr(at, rune.size);
    } else if (c < 0x100) {
      append_hex(made, 'x', 2, c);
    } else if (c < 0x10000) {
      append_hex(made, 'u', 4, c);
    } else {
      append_hex(made, 'U', 8, c);
    }
    at += rune.size;
  }
  return made + quote;
}

// The shortest digits that give the number again; with an exponent below 1e-4 and from 1e16 on.
std::string float_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), number, std::chars_format::scientific).ptr;
  const std::string_view text(buffer, static_cast<size_t>(end - buffer));
  const size_t e = text.find('e');
  int exponent = 0;
  const std::string_view digits = text.substr(e + 1);
  std::from_chars(digits.data() + (digits[0] == '+'), digits.data() + digits.size(), exponent);
  if (number == 0 || (exponent >= -4 && exponent < 16)) {
    const auto fixed = std::to_chars(buffer, buffer + sizeof(buffer), number, std::chars_format::fixed).ptr;
    std::string made(buffer, static_cast<size_t>(fixed - buffer));
    return made.find('.') == std::string::npos ? made + ".0" : made;
  }
  return std::string(text);
}

std::string printed(const Value& value) {
  std::string made;
  write(made, value, true);
  return made;
}

std::string shown(const Value& value) {
  std::string made;
  write(made, value, false);
  return made;
}

std::string as_json(const Value& value, bool ascii, const Value& indent, const Value& separators,
                    bool sorted) {
  return Json(ascii, indent, separators, sorted).made(value);
}

}  // namespace cairn::templates
