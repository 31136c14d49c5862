// Problems whose graphs are no chain of blocks: values that are read over a long span, joins of many values, many
// branches, and no backward half at all.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/plan/problem.h"

namespace cairn::bench {

// The kinds that irregular_problem() knows:
//   unet_attention     `size` blocks per level of a U-Net of 5 levels; attention in the two lowest; a skip per block
//   dense              4 blocks of `size` layers, each of which reads all outputs of its block so far
//   encoder_decoder    `size` layers each; every layer of the decoder reads the encoder's output
//   experts            `size` transformer layers with a router and 8 experts of which each takes an uneven share
//   recurrent          `size` steps of an encoder, whose states every one of `size` steps of a decoder attends to
//   inception          `size` modules of four branches and a concatenation
//   layered            `size` ops in layers, each reads a few of the layers before; no backward half
const std::vector<std::string>& irregular_kinds();

// kInvalidArgument for a kind that is none of them. Deterministic; sizes and seconds vary with the seed.
plan::Problem irregular_problem(const std::string& kind, int size, uint32_t seed);

}  // namespace cairn::bench
