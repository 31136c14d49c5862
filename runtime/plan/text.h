// Text for machines (numbers that read back exactly, escapes) and for people (units).
#pragma once
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace cairn::plan {

// The shortest text that reads back as the same number. A floating-point number is never written as a whole number
// beyond 64 bits, which readers of JSON refuse.
template <class Number>
void append_number(std::string& out, Number x) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, x + Number{0});  // adding 0 turns -0 into 0
  out.append(text, end.ptr);
  if constexpr (std::is_floating_point_v<Number>) {
    const bool whole = std::string_view(text, end.ptr).find_first_of(".en") == std::string_view::npos;
    if (whole && (x >= 0x1p64 || x < -0x1p63)) out += ".0";
  }
}

void append_string(std::string& out, std::string_view text);  // quoted and escaped

// Quoted and escaped for JSON inside of a <script> element: nothing in it ends the element.
void append_script_string(std::string& out, std::string_view text);

// For HTML and SVG, text and attributes. Bytes that are not UTF-8 become U+FFFD, control characters spaces.
std::string escaped(std::string_view text);
// At most `most` characters; of longer texts the middle is left out.
std::string shortened(std::string_view text, size_t most);
// escaped(shortened()): for names of any length.
std::string label(std::string_view text, size_t most = 120);
size_t characters(std::string_view text);  // number of UTF-8 characters
std::string human_bytes(int64_t);          // "12.3 MiB"
std::string human_seconds(double);         // "4.56 ms"
std::string fixed(double, int decimals);

inline constexpr std::string_view kPolicyNames[] = {"PLANNER_DECIDES", "KEEP", "RECOMPUTE", "OFFLOAD"};

}  // namespace cairn::plan
