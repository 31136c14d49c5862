// Words of a text, as tables write their lists.
#pragma once
#include <algorithm>
#include <string_view>

namespace cairn {

// Calls take(word) for each blank-separated word.
template <class Take>
void for_words(std::string_view text, const Take& take) {
  while (!text.empty()) {
    const size_t begin = text.find_first_not_of(' ');
    if (begin == text.npos) return;
    const size_t end = std::min(text.find(' ', begin), text.size());
    take(text.substr(begin, end - begin));
    text.remove_prefix(end);
  }
}

}  // namespace cairn
