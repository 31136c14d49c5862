// The ops that a graph may be built of, for messages about one that does not exist.
#pragma once
#include <string>
#include <string_view>

namespace cairn::ops {

// "; did you mean 'linear'? (known: add attention ...)" for "liner"; without the question where nothing is
// near.
std::string known_ops(std::string_view name);

}  // namespace cairn::ops
