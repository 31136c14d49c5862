// Parts of the bound's program that share nothing but the memory, and the knapsack over whole choices from
// each. README.md, section "The bound", "Whole ops".
#pragma once
#include <cstdint>
#include <vector>

namespace cairn::plan {

struct Dish {
  double bytes, seconds;  // that stay, that are spent making again
};
using Menu = std::vector<Dish>;  // one dish is taken of each; rising in bytes, falling in seconds

// Drops what costs no less and takes no less than another; sorts.
void keep_best(Menu&);

// A lower bound on the least seconds of one dish of each menu with at most these bytes together: that least
// itself if the work suffices, else at least `known`, a lower bound got at `price` per byte. work: dishes
// looked at, roughly.
double choose_least(const std::vector<Menu>&, double bytes, double price, double known, int64_t work);

}  // namespace cairn::plan
