// Reads the CSV form of public layout instances (MiniMalloc): a header line `id,lower,upper,size`, then one
// buffer per line, alive from `lower` up to, not including, `upper`.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/plan/layout/layout.h"

namespace cairn::bench {

struct Instance {
  std::vector<plan::Block> blocks;
  int64_t capacity = 0;  // 0: none
};

// kInvalidArgument naming `name` and the line, for anything that is not of this form. Columns may come in any
// order; others are ignored.
Instance parse_minimalloc_csv(std::string_view text, const std::string& name);

// The same from a file; the capacity is the number before ".csv" in its name ("A.1048576.csv").
Instance read_minimalloc_csv(const std::string& path);

}  // namespace cairn::bench
