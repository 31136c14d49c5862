// The products of a fused loss over a vocabulary or a part of one: logits, for a chunk of rows at a time, and the gradients of
// input and weight once the logits were overwritten by their gradient. A part's products add up as those of the full vocabulary do.
#pragma once
#include <memory>

#include "kernels/cpu/support.h"
#include "kernels/cpu/workspace.h"

namespace cairn::kernels::cpu {

struct HeadSizes {
  int64_t rows, width;
  int64_t n, first, vocab;  // of the weight's rows: how many, from which of all of them
  int64_t chunk, ld;        // rows of logits that are there at once; elements from one to the next
  int64_t ignore;
  DType logits;  // what they are stored as

  // x and w are operands 0 and 1; the attributes first and vocab say which part w is.
  HeadSizes(const Signature& s, DType logits_as);
  int64_t count(int64_t r) const { return r + chunk <= rows ? chunk : rows - r; }
};

class HeadProducts {
 public:
  explicit HeadProducts(const HeadSizes& sizes) : z(sizes) {}
  virtual ~HeadProducts() = default;
  // Of rows [r, r + z.count(r)), in the workspace.
  virtual char* logits(const Call& call, int64_t r) const = 0;
  // dx (+)= those logits times the weight; dw (+)= their transpose times x.
  virtual void input_gradient(const Call& call, int64_t r, float* dx, bool add) const = 0;
  virtual void weight_gradient(const Call& call, int64_t r, float* dw, bool add) const = 0;
  virtual void begin(const Call&) const {}  // before the first of these in a run

  const HeadSizes z;
  Workspace space;
};

// In float32; operands of 16 bits are widened first. `gradients`: those are asked for.
std::unique_ptr<HeadProducts> float_products(const Signature& s, bool gradients);
// bfloat16, whose logits are bfloat16, too. packed_grad: operand 4 is the weight packed for the input's gradient.
std::unique_ptr<HeadProducts> bf16_products(const Signature& s, bool gradients, bool packed_grad);

// The number of rows that parts of the weight must begin at a multiple of, to have the bits of one piece; 0: there is none.
int64_t head_unit(const Signature& whole);

}  // namespace cairn::kernels::cpu
