// Forward ops whose outputs a planner would want to free, in several sizes: what making one again costs.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "bench/kernels/cases.h"

namespace cairn::bench {

struct Remade {
  Case op;              // ready for bench::Runner; flops and bytes as an analytic model counts them
  std::string name;     // "linear 768->3072"
  int64_t rows;         // tokens
  int64_t freed_bytes;  // of its outputs
};

std::vector<Remade> remade_ops(DType compute, int threads);

// The product that copies run beside when they are to be hidden: 768->3072 over 1024 rows.
Case covering_op(DType compute, int threads);

}  // namespace cairn::bench
