// The writing system of a character.
#pragma once
#include <cstdint>

namespace cairn::data {

enum class Script : uint8_t {
#define SCRIPT(name) k##name,
#define RANGE(begin, name)
#include "runtime/data/scripts.def"
#undef RANGE
#undef SCRIPT
};

Script script_of(char32_t code_point);

}  // namespace cairn::data
