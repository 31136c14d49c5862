// What a directory's disk gives the disk tier, in a quarter of a second.
#pragma once
#include <optional>
#include <string>

#include "runtime/plan/problem.h"

namespace cairn::costs {

// Writes and reads a file of 64 MiB there, without a name, as the disk tier does: past the page cache where that can
// be, several transfers at once, each direction alone and both together; of three rounds the fastest counts, as other work
// on the disk makes it look slower. The link has no capacity. nullopt: no such file can be made or moved there. Any
// thread, one at a time.
std::optional<plan::Link> probe_disk(const std::string& directory);

}  // namespace cairn::costs
