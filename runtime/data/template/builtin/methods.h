// What methods and filters have in common.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/template/run.h"

namespace cairn::templates {

extern const Row kTextMethods[];
extern const size_t kTextMethodCount;

// The pairs of a dict, a tuple each.
std::vector<Value> pairs_as_tuples(Run& run, const Dict& dict);
// str.replace(); most < 0: all.
std::string replaced(Run& run, std::string_view text, std::string_view old, std::string_view fresh,
                     int64_t most);

}  // namespace cairn::templates
