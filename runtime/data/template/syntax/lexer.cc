#include "runtime/data/template/syntax/lexer.h"

#include <algorithm>
#include <charconv>

#include "runtime/data/template/characters.h"
#include "runtime/data/tokenizer/unicode/utf8.h"

namespace cairn::templates {
namespace {

// Line ends as \n, and the last one left out.
std::string lines_of(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      text += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      text += source[i];
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

bool begins_name(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c < 0; }
bool digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : text_(lines_of(source)) {}

  std::vector<Lexeme> run() {
    while (at_ < text_.size()) {
      const size_t tag = next_tag();
      if (tag == std::string::npos) {
        data(text_.size());
        break;
      }
      const char kind = text_[tag + 1];
      char sign = tag + 2 < text_.size() ? text_[tag + 2] : 0;
      if (sign != '-' && sign != '+') sign = 0;
      const size_t after = tag + 2 + (sign != 0);
      data(data_end(tag, sign, kind == '{'));
      skip_to(after);
      if (kind == '#') {
        comment();
      } else if (kind == '%' && word_at(after) == "raw") {
        raw();
      } else {
        inside(kind == '{');
      }
    }
    push(Token::kEnd, "");
    return std::move(found_);
  }

 private:
  std::string text_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starts_ = true;  // what was read last ends with a line end
  std::vector<Lexeme> found_;

  bool here(std::string_view what) const { return text_.compare(at_, what.size(), what) == 0; }
  void push(Token token, std::string text) { found_.push_back({token, line_, std::move(text)}); }
  void skip_to(size_t end) {
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<ptrdiff_t>(at_),
                                         text_.begin() + static_cast<ptrdiff_t>(end), '\n'));
    if (end > at_) line_starts_ = text_[end - 1] == '\n';
    at_ = end;
  }
  size_t after_space(size_t at) const { return at + leading_space(std::string_view(text_).substr(at)); }

  size_t next_tag() const {
    for (size_t at = at_; (at = text_.find('{', at)) != std::string::npos; ++at)
      if (at + 1 < text_.size() && (text_[at + 1] == '{' || text_[at + 1] == '%' || text_[at + 1] == '#'))
        return at;
    return std::string::npos;
  }

  // Where the text before a tag ends, with the white space in front of the tag taken off as the rules have it.
  size_t data_end(size_t tag, char sign, bool print) const {
    const std::string_view before = std::string_view(text_).substr(at_, tag - at_);
    if (sign == '-') return at_ + before.size() - trailing_space(before);
    if (sign == '+' || print) return tag;
    const size_t newline = before.rfind('\n');
    const size_t start = newline == std::string_view::npos ? 0 : newline + 1;
    if (start == 0 && !line_starts_) return tag;
    const std::string_view last = before.substr(start);
    return leading_space(last) == last.size() ? at_ + start : tag;
  }
  void data(size_t end) {
    if (end > at_) push(Token::kData, text_.substr(at_, end - at_));
    skip_to(end);
  }

  // The name of a tag, if it is the tag's only word.
  std::string_view word_at(size_t at) const {
    const size_t begin = after_space(at);
    size_t end = begin;
    while (end < text_.size() && begins_name(text_[end])) ++end;
    const size_t close = after_space(end);
    const bool closed = text_.compare(close, 2, "%}") == 0 || text_.compare(close, 3, "-%}") == 0 ||
                        text_.compare(close, 3, "+%}") == 0;
    return closed ? std::string_view(text_).substr(begin, end - begin) : std::string_view();
  }

  // Past the end of a tag, given where its sign or its bracket is.
  void close(size_t at, bool trims) {
    const char sign = text_[at] == '-' || text_[at] == '+' ? text_[at] : 0;
    size_t end = at + (sign != 0) + 2;
    if (sign == '-') end = after_space(end);
    if (sign == 0 && trims && end < text_.size() && text_[end] == '\n') ++end;
    skip_to(end);
  }

  void comment() {
    const int line = line_;
    const size_t end = text_.find("#}", at_);
    if (end == std::string::npos) bad_syntax(line, "a comment has no end");
    const bool signed_end = end > at_ && (text_[end - 1] == '-' || text_[end - 1] == '+');
    skip_to(end - signed_end);
    close(at_, true);
  }

  void raw() {
    const int line = line_;
    size_t begin = after_space(after_space(at_) + 3);
    if (text_[begin] == '+') bad_syntax(line, "a raw block cannot begin with +%}");
    skip_to(begin);
    close(begin, false);
    for (size_t tag = at_; (tag = text_.find("{%", tag)) != std::string::npos; ++tag) {
      char sign = tag + 2 < text_.size() ? text_[tag + 2] : 0;
      if (sign != '-' && sign != '+') sign = 0;
      if (word_at(tag + 2 + (sign != 0)) != "endraw") continue;
      data(data_end(tag, sign, false));
      skip_to(after_space(after_space(tag + 2 + (sign != 0)) + 6));
      close(at_, true);
      return;
    }
    bad_syntax(line, "a raw block has no end");
  }

  void inside(bool print) {
    push(print ? Token::kPrintBegin : Token::kTagBegin, "");
    const std::string_view end = print ? "}}" : "%}";
    std::string open;  // brackets that wait for theirs
    const int line = line_;
    for (;;) {
      skip_to(after_space(at_));
      if (at_ >= text_.size()) bad_syntax(line, print ? "'{{' has no '}}'" : "'{%' has no '%}'");
      const bool signed_end = text_[at_] == '-' || (text_[at_] == '+' && !print);
      if (open.empty() && text_.compare(at_ + signed_end, 2, end) == 0) {
        push(print ? Token::kPrintEnd : Token::kTagEnd, std::string(end));
        close(at_, !print);
        return;
      }
      token(open);
    }
  }

  void token(std::string& open) {
    const char c = text_[at_];
    if (digit(c)) return number();
    if (begins_name(c)) return name();
    if (c == '"' || c == '\'') return string(c);
    for (const std::string_view op : {"//", "**", "==", "!=", ">=", "<="})
      if (here(op)) return operation(op);
    if (std::string_view("+-/*%~[](){}><=.:|,;").find(c) == std::string_view::npos)
      bad_syntax(line_,
                 cat("unexpected character '",
                     text_.substr(at_, tokenizer::unit_size(std::string_view(text_).substr(at_, 4))), "'"));
    constexpr std::string_view kOpening = "([{", kClosing = ")]}";
    if (const size_t which = kOpening.find(c); which != std::string_view::npos) open += kClosing[which];
    if (kClosing.find(c) != std::string_view::npos) {
      if (open.empty() || open.back() != c)
        bad_syntax(line_, cat("unexpected '", std::string_view(&c, 1), "'"));
      open.pop_back();
    }
    operation(std::string_view(&text_[at_], 1));
  }
  void operation(std::string_view op) {
    push(Token::kOperator, std::string(op));
    skip_to(at_ + op.size());
  }

  void name() {
    size_t end = at_;
    while (end < text_.size() && (begins_name(text_[end]) || digit(text_[end]))) ++end;
    push(Token::kName, text_.substr(at_, end - at_));
    skip_to(end);
  }

  // Digits with single underscores between them; empty: there are none.
  std::string digits(size_t& at, int base) const {
    std::string found;
    const auto fits = [&](size_t i) {
      if (i >= text_.size()) return false;
      const char c = text_[i] | 0x20;
      return digit(text_[i]) ? text_[i] - '0' < base : base == 16 && c >= 'a' && c <= 'f';
    };
    while (fits(at) || (!found.empty() && text_[at] == '_' && fits(at + 1))) {
      if (text_[at] != '_') found += text_[at];
      ++at;
    }
    return found;
  }

  void number() {
    size_t end = at_;
    const char mark =
        at_ + 1 < text_.size() && text_[at_] == '0' ? static_cast<char>(text_[at_ + 1] | 0x20) : 0;
    const int base = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 10;
    std::string all;
    bool real = false;
    if (base != 10) end += 2;
    all = digits(end, base);
    const bool after_dot =
        !found_.empty() && found_.back().token == Token::kOperator && found_.back().text == ".";
    if (base == 10 && !after_dot) {
      if (size_t at = end + 1; end < text_.size() && text_[end] == '.')
        if (const std::string fraction = digits(at, 10); !fraction.empty()) {
          all += '.' + fraction;
          end = at;
          real = true;
        }
      if (end < text_.size() && (text_[end] | 0x20) == 'e') {
        size_t at = end + 1;
        std::string sign;
        if (at < text_.size() && (text_[at] == '+' || text_[at] == '-')) sign = text_[at++];
        if (const std::string exponent = digits(at, 10); !exponent.empty()) {
          all += "e" + (sign == "-" ? sign : "") + exponent;
          end = at;
          real = true;
        }
      }
    }
    push(real ? Token::kFloat : Token::kInteger, all);
    Lexeme& made = found_.back();
    const char* last = all.data() + all.size();
    const auto result = real ? std::from_chars(all.data(), last, made.real)
                             : std::from_chars(all.data(), last, made.integer, base);
    const bool zeros = real || base != 10 || all.size() == 1 || all[0] != '0' ||
                       all.find_first_not_of('0') == std::string::npos;
    if (result.ec != std::errc() || result.ptr != last || !zeros)
      bad_syntax(line_, cat("'", text_.substr(at_, end - at_), "' is not a number of at most 64 bits"));
    skip_to(end);
  }

  void string(char quote) {
    const int line = line_;
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) bad_syntax(line, "a string has no end");
    push(Token::kText, unescaped(std::string_view(text_).substr(at_ + 1, end - at_ - 1), line));
    skip_to(end + 1);
  }

  // Python's escapes in a string.
  static std::string unescaped(std::string_view raw, int line) {
    std::string made;
    for (size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] != '\\') {
        made += raw[i];
        continue;
      }
      const char c = raw[++i];
      constexpr std::string_view kLetters = "abfnrtv\\'\"", kMeant = "\a\b\f\n\r\t\v\\'\"";
      if (const size_t which = kLetters.find(c); which != std::string_view::npos) {
        made += kMeant[which];
      } else if (c == '\n') {
      } else if (const int width = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0; width != 0) {
        uint32_t code = 0;
        const std::string_view hex = raw.substr(i + 1, static_cast<size_t>(width));
        const auto result = std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
        if (static_cast<int>(hex.size()) != width || result.ptr != hex.data() + width || code > 0x10FFFF ||
            (code >= 0xD800 && code <= 0xDFFF))
          bad_syntax(line, cat("'\\", raw.substr(i, static_cast<size_t>(width) + 1), "' names no character"));
        tokenizer::append_rune(made, code);
        i += static_cast<size_t>(width);
      } else if (c >= '0' && c <= '7') {
        uint32_t code = 0;
        size_t end = i;
        while (end < raw.size() && end < i + 3 && raw[end] >= '0' && raw[end] <= '7')
          code = code * 8 + static_cast<uint32_t>(raw[end++] - '0');
        tokenizer::append_rune(made, code);
        i = end - 1;
      } else if (c == 'N') {
        bad_syntax(line, "characters by name, '\\N{...}', are not supported");
      } else {
        made.append({'\\', c});
      }
    }
    return made;
  }
};

}  // namespace

std::string shown(const Lexeme& token) {
  switch (token.token) {
    case Token::kEnd:
      return "the end of the template";
    case Token::kTagEnd:
      return "'%}'";
    case Token::kPrintEnd:
      return "'}}'";
    default:
      return cat("'", token.text, "'");
  }
}

void bad_syntax(int line, const std::string& what) { fail(Code::kCorruptFile, "line ", line, ": ", what); }

std::vector<Lexeme> tokens_of(std::string_view source) { return Lexer(source).run(); }

}  // namespace cairn::templates
