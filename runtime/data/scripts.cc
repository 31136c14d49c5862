#include "runtime/data/scripts.h"

#include <algorithm>
#include <iterator>

namespace cairn::data {
namespace {

struct Range {
  char32_t begin;
  Script script;
};
constexpr Range kRanges[] = {
#define SCRIPT(name)
#define RANGE(begin, name) {begin, Script::k##name},
#include "runtime/data/scripts.def"
#undef RANGE
#undef SCRIPT
};
static_assert(kRanges[0].begin == 0);

}  // namespace

Script script_of(char32_t code_point) {
  return std::prev(std::ranges::upper_bound(kRanges, code_point, {}, &Range::begin))->script;
}

}  // namespace cairn::data
