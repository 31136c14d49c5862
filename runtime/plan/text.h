// Text for machines (numbers that read back exactly, escapes) and for people (units).
#pragma once
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace cairn::plan {

// The shortest text that reads back as the same number.
template <class Number>
void append_number(std::string& out, Number x) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, x);
  out.append(text, end.ptr);
}

void append_string(std::string& out, std::string_view text);  // quoted and escaped

std::string escaped(std::string_view text);  // for HTML and SVG
std::string human_bytes(int64_t);            // "12.3 MiB"
std::string human_seconds(double);           // "4.56 ms"
std::string fixed(double, int decimals);

inline constexpr std::string_view kPolicyNames[] = {"PLANNER_DECIDES", "KEEP", "RECOMPUTE", "OFFLOAD"};

}  // namespace cairn::plan
