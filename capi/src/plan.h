// A plan handle: the compiled plan, and what its tables need to be read by row.
#pragma once
#include <memory>
#include <vector>

#include "cairn/cairn.h"
#include "capi/src/handle.h"
#include "runtime/engine/compile/program.h"

struct cairn_plan : cairn::capi::Handle<cairn_plan> {
  explicit cairn_plan(std::shared_ptr<const cairn::engine::CompiledPlan> compiled);

  std::shared_ptr<const cairn::engine::CompiledPlan> compiled;
  std::vector<const char*> category;  // per value of the problem
  std::vector<int32_t> region;        // per value of the problem: the region it is made in, or -1
  int64_t activation_peak_bytes = 0;
};

namespace cairn::capi {

// CAIRN_RENDER_* of a plan (render.cc).
std::string render(const plan::Problem& problem, const plan::Plan& plan, uint32_t kind, const char* title,
                   const std::vector<const char*>& categories);

}  // namespace cairn::capi
