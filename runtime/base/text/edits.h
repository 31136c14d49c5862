// How far two words are apart, for messages that guess what was meant.
#pragma once
#include <cstddef>
#include <string_view>

namespace cairn {

// Bytes added, left out or changed that turn a into b. Takes a's size times b's.
size_t edits(std::string_view a, std::string_view b);

}  // namespace cairn
