// The ops that a graph may be built of, for messages about one that does not exist.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace cairn::ops {

// "; did you mean 'linear'? (known: add attention ...)" for "liner"; without the question where nothing is
// near. `own`: ops of the graph's own, which are listed after those that all graphs know.
std::string known_ops(std::string_view name, std::span<const std::string> own = {});

}  // namespace cairn::ops
