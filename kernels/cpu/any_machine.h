// Registry::any_machine of the CPU's.
#pragma once
#include "runtime/base/kernel.h"

namespace cairn::kernels::cpu {

const Registry& any_machine_registry();

}  // namespace cairn::kernels::cpu
