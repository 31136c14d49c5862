#include "runtime/ops/known.h"

#include <algorithm>

#include "runtime/base/text/edits.h"
#include "runtime/ops/ops.h"

namespace cairn::ops {
namespace {

constexpr size_t kLongestName = 64;  // of what is compared with the names of ops

}  // namespace

std::string known_ops(std::string_view name, std::span<const std::string> own) {
  std::string_view nearest;
  size_t fewest = std::max<size_t>(1, name.size() / 3) + 1;
  std::string list;
  const auto add = [&](const char* before, std::string_view known) {
    list += cat(before, known);
    if (name.size() > kLongestName || known.size() > kLongestName) return;
    if (const size_t distance = edits(name, known); distance < fewest) {
      fewest = distance;
      nearest = known;
    }
  };
  for (const OpRow& row : all())
    if (!row.is(INTERNAL) && row.code != OpCode::k_custom) add(list.empty() ? "" : " ", row.name);
  for (const std::string& each : own) add(&each == own.data() ? "; of this graph's own: " : " ", each);
  return cat(nearest.empty() ? std::string() : cat("; did you mean '", nearest, "'?"), " (known: ", list,
             ")");
}

}  // namespace cairn::ops
