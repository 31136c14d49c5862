// What the CUDA backend does not do, for its conformance tests.
#pragma once
#include "tests/conformance/known.h"

namespace cairn::conformance {

// Ops that only move bytes take any dtype.
inline constexpr std::string_view kCudaMovesBytes[] = {"transpose", "slice", "slice_grad", "concat"};
inline constexpr std::string_view kOnePiece =
    "a vocabulary goes in one piece: Registry::part_rows is not there";
inline constexpr Unsupported kCudaUnsupported[] = {
    {"*", DType::kF64, "float64 graphs are for checking gradients, on the reference backend",
     kCudaMovesBytes},
    {"embedding_part", DType::kF32, kOnePiece},
    {"embedding_part", DType::kF16, kOnePiece},
    {"embedding_part", DType::kBF16, kOnePiece},
    {"embedding_part_grad", DType::kF32, kOnePiece},
    {"embedding_part_grad", DType::kF16, kOnePiece},
    {"embedding_part_grad", DType::kBF16, kOnePiece},
    {"linear_cross_entropy_max", DType::kF32, kOnePiece},
    {"linear_cross_entropy_max", DType::kF16, kOnePiece},
    {"linear_cross_entropy_max", DType::kBF16, kOnePiece},
    {"linear_cross_entropy_sum", DType::kF32, kOnePiece},
    {"linear_cross_entropy_sum", DType::kF16, kOnePiece},
    {"linear_cross_entropy_sum", DType::kBF16, kOnePiece},
    {"linear_cross_entropy_part", DType::kF32, kOnePiece},
    {"linear_cross_entropy_part", DType::kF16, kOnePiece},
    {"linear_cross_entropy_part", DType::kBF16, kOnePiece},
    {"linear_cross_entropy_loss", DType::kF32, kOnePiece},
};
// Nothing at present: every row is within its op's bound.
inline constexpr std::span<const ExpectedFailure> kCudaFailures = {};

}  // namespace cairn::conformance
