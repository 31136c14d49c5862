// Parts of the bound's program that share nothing but the memory, and the knapsack that chooses one option from each.
// README.md, "Ops in one piece".
#pragma once
#include <cstdint>
#include <vector>

namespace cairn::plan {

struct Item {
  double bytes, seconds;  // kept on the device, and spent on recompute
};
using OptionSet = std::vector<Item>;  // one item is taken of each; rising in bytes, falling in seconds

// Drops each option for which another one has at most its bytes and at most its seconds; sorts the rest.
void keep_best(OptionSet&);

// A lower bound on the least seconds of one item of each option set, with at most these bytes in all. It is that
// least itself if the work suffices, else at least `known`, a lower bound that was found at `price` per byte. work:
// items looked at, roughly.
double choose_least(const std::vector<OptionSet>&, double bytes, double price, double known, int64_t work);

}  // namespace cairn::plan
