// What the CUDA backend does not do, for its conformance tests.
#pragma once
#include "tests/conformance/known.h"

namespace cairn::conformance {

// Ops that only move bytes take any dtype; losses, which are float64, are added up and weighed by arithmetic.
inline constexpr std::string_view kCudaMovesBytes[] = {
    "transpose", "slice", "slice_grad", "concat", "scale", "cast",
#define ARITHMETIC(op, ...) #op,
#include "runtime/base/arithmetic.def"
};
inline constexpr Unsupported kCudaUnsupported[] = {
    {"*", DType::kF64, "float64 graphs are for checking gradients, on the reference backend",
     kCudaMovesBytes},
};
// Nothing at present: every row is within its op's bound.
inline constexpr std::span<const ExpectedFailure> kCudaFailures = {};

}  // namespace cairn::conformance
