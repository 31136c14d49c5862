#include "runtime/base/text/cat.h"

#include <charconv>

namespace cairn {
namespace {

// Enough for 64-bit integers and for doubles of 17 digits with sign, point and exponent.
constexpr size_t kLongest = 40;

template <class... Form>
void append_number(std::string& out, Form... form) {
  char text[kLongest];
  out.append(text, std::to_chars(text, text + sizeof text, form...).ptr);
}

}  // namespace

void append_text(std::string& out, std::string_view text) { out.append(text); }
void append_text(std::string& out, char character) { out.push_back(character); }
void append_text(std::string& out, long long number) { append_number(out, number); }
void append_text(std::string& out, unsigned long long number) { append_number(out, number); }
void append_text(std::string& out, double number, int digits) {
  append_number(out, number, std::chars_format::general, digits);
}

void append_address(std::string& out, uintptr_t address) {
  out += "0x";
  append_number(out, address, 16);
}

}  // namespace cairn
