// The tables of filters.
#pragma once
#include "runtime/data/template/run.h"

namespace cairn::templates {

extern const Row kTextFilters[];
extern const size_t kTextFilterCount;

}  // namespace cairn::templates
