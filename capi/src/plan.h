// A plan handle: the compiled plan, and what its tables need to be read by row.
#pragma once
#include <memory>
#include <vector>

#include "cairn/cairn.h"
#include "capi/src/handle.h"
#include "runtime/compile/compile.h"
#include "runtime/costs/model.h"

struct cairn_plan : cairn::capi::Handle<cairn_plan> {
  cairn_plan(std::shared_ptr<const cairn::engine::CompiledPlan> compiled,
             const cairn::device::DeviceInfo& device);

  std::shared_ptr<const cairn::engine::CompiledPlan> compiled;
  std::vector<const char*> category;  // per value of the problem
  std::vector<int32_t> region;        // per value of the problem: the region it is made in, or -1
  int64_t activation_peak_bytes = 0;
  cairn::costs::Sustained sustained;  // that it was made with
};

namespace cairn::capi {

// CAIRN_RENDER_* of a plan (render.cc).
std::string render(const plan::Problem& problem, const plan::Plan& plan, uint32_t kind, const char* title,
                   const std::vector<const char*>& categories, const plan::Problem* other_form = nullptr);

}  // namespace cairn::capi
