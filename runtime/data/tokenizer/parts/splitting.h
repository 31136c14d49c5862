// Cutting parts where something matches: what becomes of the matches.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/data/tokenizer/parts/aligned.h"
#include "runtime/data/tokenizer/parts/json.h"

namespace cairn::tokenizer {

enum class Behavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };
Behavior read_behavior(const Json& json);

// A stretch of a text, and whether it is a match. The stretches of a text cover it.
struct Match {
  uint32_t begin, end;
  bool is_match;
};
// Leaves those that parts are made of.
void arrange(Behavior behavior, std::vector<Match>& matches);

// find(text, matches) appends the stretches of a part's text.
template <class Find>
void cut(Document& document, Behavior behavior, const Find& find) {
  std::vector<Match> matches;
  document.split([&](const Part& part, std::vector<Part>& out) {
    matches.clear();
    find(document.text(part), matches);
    arrange(behavior, matches);
    for (const Match& match : matches)
      out.push_back(document.slice(part.begin + match.begin, part.begin + match.end));
  });
}

template <class IsMatch>
void cut_at_characters(Document& document, Behavior behavior, const IsMatch& is_match) {
  cut(document, behavior, [&](std::string_view text, std::vector<Match>& matches) {
    uint32_t begin = 0, at = 0;
    while (at < text.size()) {
      const Rune rune = rune_at(text.data() + at);
      if (is_match(rune.code)) {
        if (begin < at) matches.push_back({begin, at, false});
        matches.push_back({at, at + rune.size, true});
        begin = at + rune.size;
      }
      at += rune.size;
    }
    if (begin < at) matches.push_back({begin, at, false});
  });
}

}  // namespace cairn::tokenizer
