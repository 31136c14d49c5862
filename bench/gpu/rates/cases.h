// Every kernel that a training step may launch, at the sizes of a few GPT-2 models: bfloat16 activations,
// float32 weights behind packed copies, as under --amp bf16.
#pragma once
#include "bench/kernels/cases.h"

namespace cairn::bench {

struct Model {
  std::string name;
  int64_t batch, length, width, heads, vocab;
};

std::vector<Model> gpu_models();
Model emulated_model();  // the same cases where each takes a blink of an emulated GPU

// Memory-bound cases have no flops; `bytes` counts every operand once, those updated in place twice, and of a
// table the rows that are looked up.
std::vector<Case> model_cases(const Model& model, const kernels::Registry& registry);

// The same op over several tensors, as one launch: operands of the first op, then of the second, and so on.
struct BatchCase {
  Case all;
  std::vector<Case> ops;
};
// Of a layer and its neighbours: updates of weights with their packed weights, and the sum of squares.
std::vector<BatchCase> batch_cases(const Model& model, const kernels::Registry& registry);

}  // namespace cairn::bench
