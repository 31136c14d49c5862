#include "runtime/compile/regions/region_pattern.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/base/text/utf8.h"

namespace cairn::engine {
namespace {

std::vector<std::string_view> split(std::string_view path) {
  std::vector<std::string_view> names;
  for (size_t begin = 0;;) {
    const size_t end = path.find('/', begin);
    names.push_back(path.substr(begin, end - begin));
    if (end == std::string_view::npos) return names;
    begin = end + 1;
  }
}

// Takes the first character off the text.
std::string_view take(std::string_view& text) {
  const size_t size = std::max<size_t>(1, utf8_size(text));
  const std::string_view head = text.substr(0, size);
  text.remove_prefix(head.size());
  return head;
}

// Takes a class "[...]" off the begin of `pattern`. True: `c` is one of its characters. A '[' that no ']' closes is
// an ordinary character. Characters are compared as bytes, whose order is the order of UTF-8's characters.
bool in_class(std::string_view& pattern, std::string_view c) {
  const size_t negation = pattern.size() > 1 && pattern[1] == '!' ? 1 : 0;
  const size_t end = pattern.find(']', 2 + negation);  // a ']' in the first place is one of the characters
  if (end == std::string_view::npos) return take(pattern) == c;
  std::string_view list = pattern.substr(1 + negation, end - 1 - negation);
  pattern.remove_prefix(end + 1);
  bool found = false;
  while (!list.empty()) {
    const std::string_view first = take(list);
    std::string_view last = first;
    if (list.size() > 1 && list.front() == '-') {
      list.remove_prefix(1);
      last = take(list);
    }
    found = found || (first <= c && c <= last);
  }
  return found == (negation == 0);
}

bool matches_name(std::string_view pattern, std::string_view name) {
  std::string_view after_star, retry;
  bool starred = false;
  while (!name.empty()) {
    if (!pattern.empty() && pattern.front() == '*') {
      pattern.remove_prefix(1);
      after_star = pattern, retry = name;
      starred = true;
      continue;
    }
    bool one = false;
    if (!pattern.empty()) {
      const std::string_view c = take(name);
      if (pattern.front() == '?') {
        pattern.remove_prefix(1);
        one = true;
      } else {
        one = pattern.front() == '[' ? in_class(pattern, c) : take(pattern) == c;
      }
    }
    if (one) continue;
    if (!starred) return false;
    take(retry);  // the last '*' stands for one more character
    name = retry, pattern = after_star;
  }
  return pattern.find_first_not_of('*') == std::string_view::npos;
}

}  // namespace

bool matches_region(std::string_view pattern, std::string_view path) {
  if (pattern == path) return true;
  const std::vector<std::string_view> names = split(path);
  // matched[n]: the parts of the pattern so far match the first n names of the path.
  std::vector<uint8_t> matched(names.size() + 1);
  matched[0] = 1;
  for (const std::string_view part : split(pattern)) {
    std::vector<uint8_t> next(names.size() + 1);
    const bool any = part == "**";
    for (size_t i = 0; i <= names.size(); ++i) {
      if (any)
        next[i] = matched[i] || (i > 0 && next[i - 1]);
      else if (i > 0)
        next[i] = matched[i - 1] && matches_name(part, names[i - 1]);
    }
    matched = std::move(next);
  }
  return matched.back() != 0;
}

}  // namespace cairn::engine
