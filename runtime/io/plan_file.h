// A plan as a file of its own (plan.cairn).
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "runtime/plan/plan.h"

namespace cairn::io {

std::vector<std::byte> encode_plan(const plan::Problem& problem, const plan::Plan& plan);
struct DecodedPlan {
  plan::Problem problem;
  plan::Plan plan;  // replayed and found valid
};
DecodedPlan decode_plan(std::span<const std::byte> bytes);

}  // namespace cairn::io
