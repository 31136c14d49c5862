// The functions of arithmetic.def on float32, dispatched to the best instruction set at run time.
#pragma once
#include <cstdint>

#include "runtime/base/broadcast.h"

namespace cairn::kernels::cpu {

enum class Arithmetic : uint8_t {
#define ARITHMETIC(op, ...) k_##op,
#include "runtime/base/arithmetic.def"
};

struct Parameters {
  float p, q;
};

// y[i] = f(in[0][i], in[1][i], in[2][i]) of as many operands as f has; y may lie on one of them.
void calculate(Arithmetic f, const float* const in[kMostOperands], float* y, int64_t n, const Parameters& m);

}  // namespace cairn::kernels::cpu
