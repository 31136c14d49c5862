// Patterns of region paths, as "h*/attn".
#pragma once
#include <string_view>

namespace cairn::engine {

// Whether the whole path matches. Between the '/' of a pattern, '*' stands for any text, '?' for one character, and
// "[0-3]" for one of some, "[!0-3]" for one of all others; none of them stands for a '/'. A "**" between two '/' stands
// for any number of names, none included: "**/attn" is "attn" and "h0/attn". A path matches itself, whatever is in
// it. Both must be UTF-8.
bool matches_region(std::string_view pattern, std::string_view path);

}  // namespace cairn::engine
