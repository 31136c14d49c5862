// Parts of the bound's program that share nothing but the memory, and the knapsack over whole choices from
// each. README.md, "Whole ops".
#pragma once
#include <cstdint>
#include <vector>

namespace cairn::plan {

struct Item {
  double bytes, seconds;  // that stay, that are spent making again
};
using OptionSet = std::vector<Item>;  // one item is taken of each; rising in bytes, falling in seconds

// Drops what costs no less and takes no less than another; sorts.
void keep_best(OptionSet&);

// A lower bound on the least seconds of one item of each option set with at most these bytes together: that
// least itself if the work suffices, else at least `known`, a lower bound got at `price` per byte. work:
// items looked at, roughly.
double choose_least(const std::vector<OptionSet>&, double bytes, double price, double known, int64_t work);

}  // namespace cairn::plan
