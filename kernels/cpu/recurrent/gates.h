// What a step of lstm and gru makes of the products of one sample, and their gradients; rows of `hidden` numbers or of several such
// parts. A null pointer to what came before stands for zeros. Dispatched to the best instruction set at run time.
#pragma once
#include "runtime/base/tensor.h"

namespace cairn::kernels::cpu {

// What the next product reads of a result: the numbers as they were stored, in bfloat16 or float32.
struct Factor {
  void* to;
  bool narrow;
};

struct LstmStep {
  DType type;  // of gates, y and saved
  int64_t hidden;
  const void* gates;
  const float* products;
  float* cell;                // becomes this step's
  void *y, *saved = nullptr;  // saved: or nobody wants it
  float* cells = nullptr;     // likewise
  Factor factor;              // y
};
void lstm_step(const LstmStep& s);

struct LstmStepGrad {
  DType type;  // of dy, saved and dgates
  int64_t hidden;
  const void* dy;
  const float* dc;
  const float* products;  // what reaches y from the step after
  const void* saved;
  const float *cells, *before;  // this step's cell, and that of the step before
  float* dcell;                 // what reaches this step's cell; becomes what reaches the one before
  void* dgates;
  Factor factor;  // dgates
};
void lstm_step_grad(const LstmStepGrad& s);

struct GruStep {
  DType type;
  int64_t hidden;
  const void* gates;
  const float *products, *bias;
  float* state;  // becomes this step's
  void *y, *saved = nullptr;
  Factor factor;  // y
};
void gru_step(const GruStep& s);

struct GruStepGrad {
  DType type;
  int64_t hidden;
  const void* dy;
  const float* products;
  const void *saved, *before;  // before: y of the step before
  float* dstate;               // what reaches y otherwise than by products; becomes that of the step before
  void *dgates, *dhidden;
  Factor factor;  // dhidden
};
void gru_step_grad(const GruStepGrad& s);

// to[n] = a + b, rounded.
void add_rounded(DType type, const float* a, const float* b, void* to, int64_t n);

}  // namespace cairn::kernels::cpu
