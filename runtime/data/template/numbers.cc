// Numbers from text, as Python's int() and float() read them.
#include <charconv>
#include <cmath>

#include "runtime/data/template/characters.h"
#include "runtime/data/template/run.h"

namespace cairn::templates {
namespace {

// Without underscores, which stand between digits alone; false: one stands elsewhere.
bool plain(std::string_view text, std::string& made) {
  const auto digit = [&](size_t i) {
    return i < text.size() && isalnum(static_cast<unsigned char>(text[i])) != 0;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_')
      made += text[i];
    else if (i == 0 || !digit(i - 1) || !digit(i + 1))
      return false;
  }
  return true;
}

std::string_view without_sign(std::string_view text, bool& minus) {
  minus = text.starts_with('-');
  return minus || text.starts_with('+') ? text.substr(1) : text;
}

}  // namespace

std::optional<int64_t> parsed_integer(std::string_view text, int base) {
  bool minus = false;
  text = without_sign(stripped(text, nullptr, true, true), minus);
  std::string digits;
  constexpr std::pair<char, int> kPrefixes[] = {{'x', 16}, {'o', 8}, {'b', 2}};
  for (const auto& [letter, of] : kPrefixes)
    if ((base == of || base == 0) && text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == letter) {
      text.remove_prefix(2);
      base = of;
      break;
    }
  if (base == 0) base = 10;
  if (base < 2 || base > 36 || !plain(text, digits) || digits.empty()) return std::nullopt;
  uint64_t number = 0;
  const char* end = digits.data() + digits.size();
  const auto result = std::from_chars(digits.data(), end, number, base);
  if (result.ptr != end || result.ec == std::errc::invalid_argument) return std::nullopt;
  const uint64_t most = uint64_t{1} << 63;
  require(result.ec == std::errc() && (number < most || (minus && number == most)), Code::kUnsupported,
          "a number is beyond 64 bits");
  return static_cast<int64_t>(minus ? 0 - number : number);
}

std::optional<double> parsed_real(std::string_view text) {
  bool minus = false;
  text = without_sign(stripped(text, nullptr, true, true), minus);
  std::string digits;
  if (!plain(text, digits) || digits.empty() || digits[0] == '-' || digits[0] == '+') return std::nullopt;
  if (digits.find_first_of("(xX") != std::string::npos) return std::nullopt;
  double number = 0;
  const char* end = digits.data() + digits.size();
  const auto result = std::from_chars(digits.data(), end, number);
  if (result.ptr != end || result.ec == std::errc::invalid_argument) return std::nullopt;
  if (result.ec == std::errc::result_out_of_range) number = std::strtod(digits.c_str(), nullptr);
  return minus ? -number : number;
}

}  // namespace cairn::templates
