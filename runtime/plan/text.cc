#include "runtime/plan/text.h"

#include <algorithm>
#include <charconv>

#include "runtime/base/error.h"
#include "runtime/base/text/utf8.h"

namespace cairn::plan {

namespace {

constexpr std::string_view kEllipsis = "\xe2\x80\xa6";

// Calls each(bytes) for every character; what is not UTF-8 is replaced byte by byte.
template <class Each>
void for_characters(std::string_view text, const Each& each) {
  while (!text.empty()) {
    const size_t size = utf8_size(text);
    each(size == 0 ? kReplacementCharacter : text.substr(0, size));
    text.remove_prefix(std::max<size_t>(1, size));
  }
}

bool control(std::string_view c) {
  const auto head = static_cast<unsigned char>(c[0]);
  return head < 0x20 || head == 0x7f || (head == 0xc2 && static_cast<unsigned char>(c[1]) < 0xa0);
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for_characters(text, [&](std::string_view c) {
    constexpr std::string_view kSpecial = "&<>\"'";
    constexpr std::string_view kEntities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    const size_t at = c.size() == 1 ? kSpecial.find(c[0]) : std::string_view::npos;
    out += at != std::string_view::npos ? kEntities[at] : control(c) ? " " : c;
  });
  return out;
}

std::string shortened(std::string_view text, size_t most) {
  const size_t count = characters(text);
  if (count <= most) return std::string(text);
  const size_t tail = (most - 1) / 2, head = most - 1 - tail;
  std::string out;
  size_t k = 0;
  for_characters(text, [&](std::string_view c) {
    if (k == head) out += kEllipsis;
    if (k < head || k >= count - tail) out += c;
    ++k;
  });
  return out;
}

std::string label(std::string_view text, size_t most) { return escaped(shortened(text, most)); }

size_t characters(std::string_view text) {
  size_t count = 0;
  for_characters(text, [&](std::string_view) { ++count; });
  return count;
}

void append_script_string(std::string& out, std::string_view text) {
  std::string clean, quoted;
  for_characters(text, [&](std::string_view c) { clean += control(c) ? " " : c; });
  append_string(quoted, clean);
  for (const char c : quoted) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
}

std::string fixed(double x, int decimals) {
  char text[400];
  return {text, std::to_chars(text, text + sizeof text, x, std::chars_format::fixed, decimals).ptr};
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
