// Text from parts, for messages, names and digests: what an output stream in the "C" locale would print, and
// unlike a stream independent of the host's locale. A stream swallows a failed allocation and goes on with
// half a text; here it is std::bad_alloc.
#pragma once
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace cairn {

void append_text(std::string& out, std::string_view text);
void append_text(std::string& out, char character);
void append_text(std::string& out, long long number);
void append_text(std::string& out, unsigned long long number);
void append_text(std::string& out, double number, int digits = 6);  // as %.*g; a stream prints six

template <std::integral Number>
void append_text(std::string& out, Number number) {
  static_assert(sizeof(Number) > 1 || std::same_as<Number, bool>,
                "a byte: a number or a character? Cast it to int or char");
  append_text(
      out, static_cast<std::conditional_t<std::is_signed_v<Number>, long long, unsigned long long>>(number));
}

// Where something lies: 0x and hexadecimal digits.
void append_address(std::string& out, uintptr_t address);
template <class Pointer>
requires std::same_as<Pointer, const void*> || std::same_as<Pointer, void*>
void append_text(std::string& out, Pointer pointer) {
  append_address(out, reinterpret_cast<uintptr_t>(pointer));
}

template <class Enum>
requires std::is_enum_v<Enum> && std::convertible_to<Enum, int>
void append_text(std::string& out, Enum value) { append_text(out, static_cast<long long>(value)); }

// Concatenates: cat("op '", name, "' has ", n, " inputs").
template <class... Parts>
std::string cat(const Parts&... parts) {
  std::string out;
  (append_text(out, parts), ...);
  return out;
}

}  // namespace cairn
