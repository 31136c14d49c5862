#include "runtime/data/tokenizer/parts/splitting.h"

#include <algorithm>

namespace cairn::tokenizer {
namespace {

struct Row {
  std::string_view name;
  Behavior behavior;
};
constexpr Row kRows[] = {
    {"Removed", Behavior::kRemoved},
    {"Isolated", Behavior::kIsolated},
    {"MergedWithPrevious", Behavior::kMergedWithPrevious},
    {"MergedWithNext", Behavior::kMergedWithNext},
    {"Contiguous", Behavior::kContiguous},
};

// Makes one of neighbours (a, b) where joins(a before, b).
template <class Joins>
void join(std::vector<Match>& matches, const Joins& joins) {
  size_t kept = 0;
  bool before = false;  // whether the stretch before was a match
  for (const Match& match : matches) {
    if (kept > 0 && joins(before, match.is_match)) {
      matches[kept - 1].begin = std::min(matches[kept - 1].begin, match.begin);
      matches[kept - 1].end = std::max(matches[kept - 1].end, match.end);
    } else {
      matches[kept++] = match;
    }
    before = match.is_match;
  }
  matches.resize(kept);
}

}  // namespace

Behavior read_behavior(const Json& json) {
  const std::string_view name = json.text();
  for (const Row& row : kRows)
    if (row.name == name) return row.behavior;
  json.bad("there is no behavior '", name,
           "'; known: Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous");
}

void arrange(Behavior behavior, std::vector<Match>& matches) {
  const auto match_after_other = [](bool before, bool now) { return now && !before; };
  switch (behavior) {
    case Behavior::kIsolated:
      break;
    case Behavior::kRemoved:
      std::erase_if(matches, [](const Match& match) { return match.is_match; });
      break;
    case Behavior::kContiguous:
      join(matches, [](bool before, bool now) { return before == now; });
      break;
    case Behavior::kMergedWithPrevious:
      join(matches, match_after_other);
      break;
    case Behavior::kMergedWithNext:
      std::reverse(matches.begin(), matches.end());
      join(matches, match_after_other);
      std::reverse(matches.begin(), matches.end());
      break;
  }
}

}  // namespace cairn::tokenizer
