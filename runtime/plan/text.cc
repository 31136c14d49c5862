#include "runtime/plan/text.h"

#include <cstdio>

#include "runtime/base/error.h"

namespace cairn::plan {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

std::string fixed(double x, int decimals) {
  char text[400];
  std::snprintf(text, sizeof text, "%.*f", decimals, x);
  return text;
}

std::string human_bytes(int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto x = static_cast<double>(bytes);
  int unit = 0;
  while (x >= 1024 && unit < 6) {
    x /= 1024;
    ++unit;
  }
  return cat(fixed(x, unit == 0 || x >= 100 ? 0 : x >= 10 ? 1 : 2), " ", kUnits[unit]);
}

std::string human_seconds(double s) {
  if (s >= 1) return cat(fixed(s, 3), " s");
  if (s >= 1e-3) return cat(fixed(s * 1e3, 2), " ms");
  return cat(fixed(s * 1e6, 1), " µs");
}

void append_string(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace cairn::plan
