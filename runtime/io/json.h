// Writing JSON, for headers and for inspect.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "runtime/base/cat.h"

namespace cairn::io {

// A quoted JSON text. Bytes that are not printable ASCII are escaped or, from 0x80 on, passed as they are
// (UTF-8).
inline std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", c);
      out += escape;
    } else {
      out += c;
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
