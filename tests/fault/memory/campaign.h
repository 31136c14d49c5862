// Every allocation of every call of a script fails once, the call is made again, and what comes out in the
// end is what comes out where nothing fails.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/fault/memory/heap.h"
#include "tests/fault/memory/script.h"

namespace fault {

struct Tally {
  int64_t points = 0;    // allocations that failed
  int64_t refused = 0;   // calls that told so
  int64_t absorbed = 0;  // calls that succeeded all the same
  std::vector<std::string> findings;
};

using MakeScript = std::function<std::unique_ptr<Script>(const std::filesystem::path& folder)>;

// One in `one_in` of the points (all of them under CAIRN_TEST=long). The runs are made by child processes, so
// that one that dies is a finding and the rest goes on.
Tally run_campaign(const MakeScript& make, heap::Failing failing, int64_t one_in);

}  // namespace fault
