// The planner behind the JSON form of problems: whatever is read from it is solved, if it is small, and the
// plan replayed.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace cairn::fuzz {

// Throws std::logic_error if a plan breaks the rules, or if the smallest budget named is not enough;
// cairn::Error as problem_from_json() and solve() do.
void solve_problem(std::string_view text);
std::vector<std::string> problem_seeds();

}  // namespace cairn::fuzz
