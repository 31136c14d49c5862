// What a directory's disk gives the disk tier, in about a tenth of a second.
#pragma once
#include <optional>
#include <string>

#include "runtime/plan/problem.h"

namespace cairn::costs {

// Writes and reads a file of 64 MiB there, without a name, as the disk tier does: past the page cache where that can
// be, several transfers at once, each direction alone and both together. The link has no capacity. A directory is
// measured once a process. nullopt: no such file can be made or moved there; a plan that goes there says why. Any
// thread; threads that ask at the same time wait for one measurement. Other work on the disk makes it look slower.
std::optional<plan::Link> probe_disk(const std::string& directory);

}  // namespace cairn::costs
