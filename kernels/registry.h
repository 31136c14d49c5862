// All that the runtime sees of the kernels: one registry per backend.
#pragma once
#include <memory>

#include "runtime/base/kernel.h"

namespace cairn::kernels {

const Registry& reference_registry();  // slow, obvious, double accumulators; f32, bf16 and f64; the oracle
const Registry& cpu_registry();        // AMX + Highway; gaps are filled by select()
const Registry& cuda_registry();       // NVIDIA GPUs; in the plugin libcairn_cuda.so, and in tests' emulation

// A kernel for the signature from `registry`, or from the reference rows when it has none (a row of the
// printed table says so); kUnsupported with op, dtypes and shapes if neither has one.
std::unique_ptr<Kernel> select(const Registry& registry, const Signature& signature);

}  // namespace cairn::kernels
