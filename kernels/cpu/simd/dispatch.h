// The variant of a function that HWY_EXPORT lists, by the instruction set in use (isa.h). Not Highway's own
// dispatch: its choice is one for the process, so that a host that uses Highway, too, would share it.
#pragma once
#include "kernels/cpu/simd/targets.h"
// Must follow targets.h. Highway's other headers may only be included after foreach_target.h, so they are not here.
#include <hwy/targets.h>

namespace cairn::kernels::cpu {

const hwy::ChosenTarget& chosen_target();

}  // namespace cairn::kernels::cpu

#if (HWY_TARGETS & (HWY_TARGETS - 1)) == 0
#define CAIRN_DISPATCH(function) HWY_STATIC_DISPATCH(function)
#else
#define CAIRN_DISPATCH(function) \
  (HWY_DISPATCH_TABLE(function)[cairn::kernels::cpu::chosen_target().GetIndex()])
#endif
