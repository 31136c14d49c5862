#include "runtime/ops/known.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "runtime/ops/ops.h"

namespace cairn::ops {
namespace {

constexpr size_t kLongestName = 64;  // of what is compared with the names of ops

// Letters added, left out or changed that turn a into b.
size_t edits(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = diagonal + (a[i - 1] != b[j - 1] ? 1 : 0);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string known_ops(std::string_view name) {
  std::string_view nearest;
  size_t fewest = std::max<size_t>(1, name.size() / 3) + 1;
  std::string list;
  for (const OpRow& row : all()) {
    if (row.is(INTERNAL) || row.code == OpCode::k_custom) continue;
    list += cat(list.empty() ? "" : " ", row.name);
    if (name.size() > kLongestName) continue;
    if (const size_t distance = edits(name, row.name); distance < fewest) {
      fewest = distance;
      nearest = row.name;
    }
  }
  return cat(nearest.empty() ? std::string() : cat("; did you mean '", nearest, "'?"), " (known: ", list,
             ")");
}

}  // namespace cairn::ops
