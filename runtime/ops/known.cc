#include "runtime/ops/known.h"

#include <algorithm>

#include "runtime/base/text/edits.h"
#include "runtime/ops/ops.h"

namespace cairn::ops {
namespace {

constexpr size_t kLongestName = 64;  // of what is compared with the names of ops

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
