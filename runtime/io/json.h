// Writing JSON, for headers and for inspect.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "runtime/base/text/cat.h"
#include "runtime/base/text/utf8.h"

namespace cairn::io {

// A quoted JSON text. What is not UTF-8 is replaced byte by byte (U+FFFD): metadata may hold any bytes.
inline std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (size_t size = 0; !text.empty(); text.remove_prefix(std::max<size_t>(1, size))) {
    size = utf8_size(text);
    const char c = text[0];
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", c);
      out += escape;
    } else {
      out += size == 0 ? kReplacementCharacter : text.substr(0, size);
    }
  }
  return out + '"';
}

// Numbers that JSON cannot hold become null.
inline std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  std::string text;
  append_text(text, value, 17);
  return text;
}

// Grows an object or a list member by member: Json('{').add("a", "1").add("b", json_text("x")).text().
class Json {
 public:
  explicit Json(char open) : text_(1, open) {}
  Json& add(std::string_view key, const std::string& value) {
    if (text_.size() > 1) text_ += ", ";
    text_ += json_text(key) + ": " + value;
    return *this;
  }
  Json& add(const std::string& value) {
    if (text_.size() > 1) text_ += ", ";
    text_ += value;
    return *this;
  }
  std::string text() const { return text_ + (text_[0] == '{' ? '}' : ']'); }

 private:
  std::string text_;
};

}  // namespace cairn::io
