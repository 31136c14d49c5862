// Problems for the planner's benchmarks, by kind and size: forward ops of a model, the backward ops derived
// from them, seconds from a roofline. Deterministic. Budgets are 0 (no limit): the caller sets them.
#pragma once
#include <cstdint>
#include <string>

#include "runtime/plan/problem.h"

namespace cairn::bench {

// `length` ops in a row, sizes up to 20:1, seconds and what backward reads drawn from the seed.
plan::Problem chain_problem(int length, uint32_t seed = 1);

struct TransformerShape {
  int layers = 24;
  int64_t width = 768, heads = 12, sequence = 1024, batch = 8, vocabulary = 50304;
  int64_t element_bytes = 2;
};
// A GPT: per layer norm, qkv, attention, projection, residual, norm, two linears around a gelu, residual;
// an embedding before, a norm and a linear loss in chunks behind. Regions "h<layer>".
plan::Problem transformer_problem(const TransformerShape&);

// `levels` down and up, two convolutions each, skips across.
plan::Problem unet_problem(int levels, int64_t side = 256, int64_t batch = 8);

// Branches, joins, second outputs, workspaces, a few ops that may not run twice.
plan::Problem random_problem(int ops, uint32_t seed);

// "transformer/24" and so on, for names in benchmarks: chain, transformer, unet, random (seed 1).
plan::Problem make_problem(const std::string& kind, int size);

}  // namespace cairn::bench
