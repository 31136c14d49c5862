// Finding one text in another, in time that is linear in both.
#pragma once
#include <string.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace cairn::templates {

inline size_t found_at(std::string_view text, std::string_view part, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  const void* at = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return at == nullptr ? std::string_view::npos
                       : static_cast<size_t>(static_cast<const char*>(at) - text.data());
}

inline size_t found_last(std::string_view text, std::string_view part) {
  const std::string back(text.rbegin(), text.rend()), wanted(part.rbegin(), part.rend());
  const size_t at = found_at(back, wanted, 0);
  return at == std::string_view::npos ? at : text.size() - at - part.size();
}

}  // namespace cairn::templates
