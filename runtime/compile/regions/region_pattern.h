// Patterns of region paths, as "h*/attn".
#pragma once
#include <string_view>

namespace cairn::engine {

// True: the pattern matches the complete path. Between the '/' of a pattern, '*' stands for any text, '?' for one
// character, "[0-3]" for one of several, "[!0-3]" for one of all others. None of them stands for a '/'. A "**"
// between two '/' stands for any number of names, also none: "**/attn" matches "attn" and "h0/attn". A path matches
// itself, whatever characters it has. Both must be UTF-8.
bool matches_region(std::string_view pattern, std::string_view path);

}  // namespace cairn::engine
