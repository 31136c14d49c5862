// Which inputs a micro-batch had, for steps that run it twice.
#pragma once
#include <array>
#include <cstdint>

#include "runtime/exec/session.h"

namespace cairn::step {

using InputDigest = std::array<uint64_t, 2>;

// XXH3-128 over the inputs that ops of kGather read, wherever they lie.
InputDigest digest_of_inputs(const engine::Session& session);

}  // namespace cairn::step
