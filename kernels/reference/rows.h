// Declares the makers that kernels.def names.
#pragma once
#include "runtime/base/kernel.h"

namespace cairn::kernels::reference {

#define KERNEL(op, name, isa, make) std::unique_ptr<Kernel> make(const Signature&);
#include "kernels/reference/kernels.def"
#undef KERNEL

}  // namespace cairn::kernels::reference
