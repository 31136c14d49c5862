// Text by characters, as Python's str has it: white space, letters' case, places. All text here is well-formed UTF-8.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::templates {

bool is_space(char32_t code);
bool is_printable(char32_t code);  // repr() shows it as it is
bool is_cased(char32_t code);
bool is_upper(char32_t code);
bool is_lower(char32_t code);
bool is_letter(char32_t code);
bool is_decimal(char32_t code);
bool is_digit(char32_t code);
bool is_numeric(char32_t code);
bool is_word(char32_t code);  // \w of Python's re

// Bytes of white space at the ends.
size_t leading_space(std::string_view text);
size_t trailing_space(std::string_view text);
// Without characters of `set` at the ends; white space where set is null.
std::string_view stripped(std::string_view text, const std::string_view* set, bool left, bool right);

enum class Case { kLower, kUpper, kTitle, kSwap, kCapital, kFold };
std::string in_case(std::string_view text, Case wanted);

std::u32string runes_of(std::string_view text);
std::string text_of(std::u32string_view runes);
// The byte at which character number `index` begins, at most the text's end.
size_t byte_of(std::string_view text, int64_t index);
int64_t characters_in(std::string_view text);

// str.splitlines().
std::vector<std::string_view> lines_in(std::string_view text, bool keep_ends);

}  // namespace cairn::templates
